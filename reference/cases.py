"""The inputs of the reference values: partly labelled draws with posteriors of a known Gaussian model."""

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Case:
    name: str
    description: str
    seed: int
    n: int
    prior: np.ndarray
    phi: np.ndarray
    signal: float
    kind: str = "labelled"  # which posterior Bayes' rule gives: that of the population, or of the labelled rows
    form: str = "soft"  # soft | onehot (of the truth) | argmax (one-hot of the prediction) | peaked (0.999)
    folds: int = 1
    counts: dict = field(default_factory=dict)  # class -> exact number of labels
    quiet: int | None = None  # a class that is almost absent from the posteriors of the unlabelled rows


def whole(rows):
    """Rounds rows to 8 decimals so that they sum to one: the largest entry absorbs the rounding."""
    units = np.rint(np.asarray(rows) * 1e8).astype(np.int64)
    top = units.argmax(axis=1)
    units[np.arange(len(units)), top] += 100_000_000 - units.sum(axis=1)
    out = units / 1e8
    out /= out.sum(axis=1, keepdims=True)
    return out


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def draw(case):
    rng = np.random.default_rng(case.seed)
    prior = np.asarray(case.prior, float)
    prior = prior / prior.sum()
    k = prior.size
    phi = np.asarray(case.phi, float)
    y = rng.choice(k, size=case.n, p=prior)
    for j in range(k):  # every class has at least two rows
        while (y == j).sum() < 2:
            y[rng.integers(case.n)] = j
    r = rng.random(case.n) < phi[y]
    for j in range(k):
        rows = np.flatnonzero(y == j)
        if j in case.counts:
            r[rows] = False
            r[rng.choice(rows, size=min(case.counts[j], rows.size), replace=False)] = True
        elif not r[rows].any():
            r[rng.choice(rows)] = True
    x = rng.standard_normal((case.n, k)) + case.signal * np.eye(k)[y]
    z = np.log(prior) + case.signal * x + (np.log(phi) if case.kind == "labelled" else 0.0)
    p = softmax(z)
    if case.form == "onehot":
        p = np.eye(k)[y]
    elif case.form == "argmax":
        p = np.eye(k)[p.argmax(axis=1)]
    elif case.form == "peaked":
        p = 0.999 * np.eye(k)[p.argmax(axis=1)] + 0.001 * softmax(rng.standard_normal((case.n, k)))
    if case.quiet is not None:
        p[~r, case.quiet] *= 0.02
        p /= p.sum(axis=1, keepdims=True)
    p = whole(p)
    folds = rng.permutation(np.arange(case.n) % case.folds)
    losses = np.round(rng.exponential(1.0, size=(2, case.n)), 4)
    units = np.rint(prior * 1e6).astype(np.int64)
    units[units.argmax()] += 1_000_000 - units.sum()
    return {
        "posteriors": p.tolist(),
        "labels": [int(c) if seen else None for c, seen in zip(y, r)],
        "folds": [int(f) for f in folds],
        "known_shares": (units / 1e6).tolist(),
        "true_phi": phi.tolist(),
        "labelled_losses": losses[0].tolist(),
        "unlabelled_losses": losses[1].tolist(),
        "lambda": 0.7,
    }


def ladder(low, high, k):
    return np.round(np.geomspace(low, high, k), 4)


def tilt(k, ratio):
    p = np.geomspace(1.0, ratio, k)
    return p / p.sum()


def cases():
    flat = lambda k, v: np.full(k, v)  # noqa: E731
    return [
        Case("k02_mcar", "two classes, missing completely at random", 101, 200, tilt(2, 0.6), flat(2, 0.3), 1.5),
        Case("k02_mnar", "two classes, strong mechanism, population posterior", 102, 240, tilt(2, 1.4), np.array([0.02, 0.9]), 2.0, "population", counts={0: 4}),
        Case("k02_rare", "one label of a rare class", 103, 300, np.array([0.95, 0.05]), np.array([0.4, 0.1]), 2.0, counts={1: 1}),
        Case("k02_useless", "posteriors barely better than the prior", 104, 400, tilt(2, 0.7), np.array([0.5, 0.25]), 0.2),
        Case("k02_onehot", "exactly one-hot and right", 105, 150, tilt(2, 0.5), np.array([0.2, 0.6]), 2.0, form="onehot"),
        Case("k02_boundary", "class 1 all labelled: both optima on the boundary", 106, 160, np.array([0.8, 0.2]), np.array([0.3, 1.0]), 2.5, quiet=1),
        Case("k03_mcar", "three classes, missing completely at random, population posterior, four folds", 107, 240, tilt(3, 0.4), flat(3, 0.25), 1.5, "population", folds=4),
        Case("k03_mnar", "three classes, strong mechanism, two folds", 108, 300, tilt(3, 0.8), np.array([0.02, 0.15, 0.9]), 2.0, folds=2, counts={0: 3}),
        Case("k03_separable", "posteriors of 0.999 on the predicted class", 109, 200, tilt(3, 0.5), np.array([0.1, 0.3, 0.6]), 2.6, form="peaked"),
        Case("k03_boundary", "class 2 all labelled: both optima on the boundary, three folds", 110, 210, np.array([0.5, 0.35, 0.15]), np.array([0.2, 0.4, 1.0]), 2.5, folds=3, quiet=2),
        Case("k03_argmax", "one-hot of the prediction, with errors", 111, 240, tilt(3, 0.7), np.array([0.5, 0.3, 0.15]), 1.4, form="argmax"),
        Case("k03_useless", "posteriors barely better than the prior, population posterior", 112, 400, tilt(3, 0.6), np.array([0.2, 0.4, 0.6]), 0.25, "population"),
        Case("k03_mostly_labelled", "nine labels in ten", 113, 120, tilt(3, 0.7), np.array([0.92, 0.9, 0.85]), 1.5, "population"),
        Case("k05_mcar", "five classes, missing completely at random, five folds", 114, 300, tilt(5, 0.3), flat(5, 0.3), 2.0, folds=5),
        Case("k05_mnar", "five classes, strong mechanism", 115, 400, tilt(5, 0.9), ladder(0.02, 0.9, 5), 2.2, counts={0: 3}),
        Case("k05_mnar_population", "five classes, strong mechanism, population posterior, two folds", 116, 400, tilt(5, 2.0), ladder(0.9, 0.02, 5), 2.2, "population", folds=2),
        Case("k05_rare", "classes with one, two and three labels", 117, 350, np.array([0.5, 0.3, 0.1, 0.06, 0.04]), np.array([0.3, 0.2, 0.1, 0.2, 0.2]), 2.2, counts={2: 3, 3: 2, 4: 1}),
        Case("k05_onehot", "exactly one-hot and right, with a class all labelled", 118, 150, tilt(5, 0.4), np.array([0.2, 0.5, 0.3, 0.8, 1.0]), 2.0, form="onehot"),
        Case("k05_separable", "posteriors of 0.999 on the predicted class, population posterior, two folds", 119, 250, tilt(5, 0.6), ladder(0.1, 0.7, 5), 3.0, "population", form="peaked", folds=2),
        Case("k05_useless", "posteriors barely better than the prior", 120, 500, tilt(5, 0.6), ladder(0.1, 0.5, 5), 0.3),
        Case("k05_boundary", "class 4 all labelled: both optima on the boundary, four folds", 121, 300, tilt(5, 0.5), np.array([0.1, 0.2, 0.4, 0.6, 1.0]), 2.5, folds=4, quiet=4),
        Case("k10_mcar", "ten classes, missing completely at random, five folds", 122, 400, tilt(10, 0.5), flat(10, 0.4), 2.5, folds=5),
        Case("k10_mnar", "ten classes, strong mechanism", 123, 600, tilt(10, 1.5), ladder(0.9, 0.02, 10), 2.8),
        Case("k10_rare", "ten classes, rare ones with one to three labels, population posterior", 124, 500, tilt(10, 0.1), ladder(0.5, 0.15, 10), 2.8, "population", counts={7: 3, 8: 2, 9: 1}),
        Case("k10_onehot", "exactly one-hot and right", 125, 300, tilt(10, 0.8), ladder(0.1, 0.7, 10), 2.0, form="onehot", folds=3),
        Case("k10_separable", "nearly separable, posteriors of the Gaussian model", 126, 300, tilt(10, 0.7), ladder(0.15, 0.8, 10), 4.5),
        Case("k10_boundary", "class 3 all labelled: both optima on the boundary, two folds", 127, 350, tilt(10, 0.6), np.array([0.2, 0.3, 0.4, 1.0, 0.3, 0.2, 0.5, 0.6, 0.3, 0.25]), 3.0, folds=2, quiet=3),
        Case("k20_mnar", "twenty classes, strong mechanism, population posterior", 128, 600, tilt(20, 0.6), ladder(0.05, 0.9, 20), 3.2, "population"),
        Case("k20_rare", "twenty classes, many with few labels, four folds", 129, 400, tilt(20, 0.15), ladder(0.4, 0.2, 20), 3.2, folds=4, counts={17: 3, 18: 2, 19: 1}),
        Case("k20_onehot", "exactly one-hot and right", 130, 300, tilt(20, 0.7), ladder(0.2, 0.6, 20), 2.0, form="onehot"),
        Case("k50_mnar", "fifty classes, strong mechanism", 131, 600, tilt(50, 0.6), ladder(0.1, 0.8, 50), 3.8),
        Case("k50_mcar", "fifty classes, missing completely at random, population posterior, three folds", 132, 500, tilt(50, 0.5), flat(50, 0.5), 3.8, "population", folds=3),
    ]
