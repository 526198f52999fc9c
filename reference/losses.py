"""Writes golden/losses.json: losses and risks of the training loop, their gradients, and the mechanism in the loop, from
their definitions. With `--check`, compares instead of writing.

Gradients are complex steps: the imaginary part of f(x + 1e-30 i) / 1e-30 is the derivative to the last digit, without
an automatic differentiation that the programs under test might share. What is not differentiated through (a
pseudo-label, a buffer) is a function of real parts. Inputs are single-precision numbers, as networks give them.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from golden import difference

PATH = Path(__file__).parent / "golden" / "losses.json"
STEP = 1e-30
BUFFER, RUNNING = 0.99, 0.95
METHODS = ("classical", "constant", "given", "known-shares", "predicted-shares", "moments", "moments-gradient")


def softmax(logits):
    e = np.exp(logits - logits.real.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def cross_entropy(logits, y):
    """-log p(y|x); 0 where there is no label."""
    log_p = np.log(softmax(logits))
    return np.array([-log_p[i, k] if k is not None else 0 for i, k in enumerate(y)])


def entropy(weak, strong, thresholds):
    p = softmax(weak)
    return -(p * np.log(p)).sum(1)


def imitate(weak, student, thresholds):
    """-log p of the top class of the weak view by the student, where the weak view is as sure as the threshold."""
    p = softmax(weak.real)
    top = p.argmax(1)
    margin = p.max(1) - thresholds[top]
    assert abs(margin).min() > 1e-4, "a row too close to its threshold"
    return cross_entropy(student, top) * (margin >= 0)


CONSISTENCY = {
    "entropy": entropy,
    "pseudo-labels": lambda weak, strong, thresholds: imitate(weak, weak, thresholds),
    "fixmatch": lambda weak, strong, thresholds: imitate(weak, strong, thresholds),
}


def ssl_risk(ell, h, y, w, lam, share, row_weights):
    """The debiased SSL risk with w = 1/phi of every labelled row; None for the classical one."""
    seen = np.array([k is not None for k in y])
    ell, counts = ell[seen], row_weights[seen]
    if w is None:
        return (counts * ell).mean() + (0 if h is None else lam * h[~seen].mean())
    w = w[seen]
    if h is None:
        return share * (counts * w * ell).mean()
    labelled = (counts * (w * ell + lam * (1 - w) * h[seen])).mean()
    return share * labelled + lam * (1 - share) * h[~seen].mean()


def observed_likelihood(logits, y, phi, share, row_weights):
    seen = np.array([k is not None for k in y])
    codes = np.array([0 if k is None else k for k in y])
    labelled = (row_weights * (cross_entropy(logits, y) - np.log(phi)[codes]))[seen].mean()
    marginal = -np.log((softmax(logits) * (1 - phi)).sum(1))[~seen].mean()
    return share * labelled + (1 - share) * marginal


class Mechanism:
    """What stands for 1/phi at every step."""

    def __init__(self, method, given):
        counts = np.array(given["label_counts"], float)
        self.method, self.c = method, counts / given["n"]
        self.share = self.c.sum()
        k = len(counts)
        self.phi = np.array(given["phi"]) if method == "given" else np.full(k, self.share)
        self.buffer = np.array(given["known_shares"]) if method == "known-shares" else np.full(k, 1 / k)
        self.clipped, self.running = 0, None

    def update(self, shares, loss):
        if self.method in ("classical", "constant", "given"):
            return
        if self.method != "known-shares":
            self.buffer = BUFFER * self.buffer + (1 - BUFFER) * shares.real
        self.running = loss if self.running is None else RUNNING * self.running + (1 - RUNNING) * loss
        phi = self.c / self.buffer
        self.clipped += bool((phi > 1).any())
        self.phi = np.minimum(phi, 1)

    def trust(self):
        return float(np.clip(1 - self.running / (0.1 * np.log(len(self.c))), 0, 1))

    def shares(self):
        if self.method in ("moments", "known-shares", "predicted-shares"):
            return self.buffer
        return self.c / self.phi / (self.c / self.phi).sum()

    def inverse_phi(self, shares):
        """`shares` are those of the batch, complex where they are differentiated."""
        if self.method == "moments-gradient":
            inverse = (self.buffer + self.trust() * (shares - shares.real)) / self.c
            return np.where(inverse.real < 1, 1, inverse)
        if self.method in ("known-shares", "predicted-shares"):
            return 1 / self.buffer / (self.c / self.buffer).sum()
        return 1 / self.phi


def batch_shares(weak, y, share):
    p, seen = softmax(weak), np.array([k is not None for k in y])
    return share * p[seen].mean(0) + (1 - share) * p[~seen].mean(0)


def adaptive(tau, by, beta):
    return tau * (by / by.max()) ** beta


def gradient(f, x):
    """df/dx by complex steps."""
    x = np.asarray(x, float)
    result = np.empty(x.shape)
    for at in np.ndindex(x.shape):
        moved = x.astype(complex)
        moved[at] += 1j * STEP
        result[at] = np.imag(f(moved)) / STEP
    return result


def with_gradient(f, **inputs):
    value = float(np.real(f(**inputs)))
    gradients = {}
    for name, x in inputs.items():
        gradients[name] = gradient(lambda moved: f(**{**inputs, name: moved}), x).tolist()
    return {"value": value, "gradient": gradients}


def loop(method, given):
    """Every batch of a case in turn: the mechanism after it, and the risk with its gradient."""
    mechanism, steps = Mechanism(method, given), []
    h = CONSISTENCY[given["consistency"]]
    for batch in given["batches"]:
        y, weak, strong = batch["y"], np.array(batch["weak"]), np.array(batch["strong"])
        seen = np.array([k is not None for k in y])
        codes = np.array([0 if k is None else k for k in y])
        mechanism.update(batch_shares(weak, y, mechanism.share), cross_entropy(weak, y)[seen].mean().real)
        thresholds = adaptive(given["tau"], mechanism.phi, given["beta"])

        def risk(weak, strong, h=h, y=y, codes=codes, thresholds=thresholds):
            w = None if method == "classical" else mechanism.inverse_phi(batch_shares(weak, y, mechanism.share))[codes]
            losses = h(weak, strong, thresholds)
            return ssl_risk(cross_entropy(weak, y), losses, y, w, given["lambda"], mechanism.share, np.ones(len(y)))

        steps.append(
            {
                "phi": mechanism.phi.tolist(),
                "shares": mechanism.shares().tolist(),
                "clipped": mechanism.clipped,
                "inverse_phi": mechanism.inverse_phi(batch_shares(weak, y, mechanism.share)).real.tolist(),
                "thresholds": thresholds.tolist(),
                "risk": with_gradient(risk, weak=weak, strong=strong),
            }
        )
        if method == "moments-gradient":
            steps[-1]["trust"] = mechanism.trust()
    return steps


def variants(given):
    """Other ways to weight the first batch, with the given phi."""
    batch, share = given["batches"][0], sum(given["label_counts"]) / given["n"]
    y, strong = batch["y"], np.array(batch["strong"])
    codes = np.array([0 if k is None else k for k in y])
    by_class, by_row = 1 / np.array(given["phi"])[codes], np.array(given["row_inverse_phi"])
    counts = np.array(given["row_weights"])
    thresholds = adaptive(given["tau"], np.array(given["phi"]), given["beta"])
    ones, h = np.ones(len(y)), CONSISTENCY[given["consistency"]]

    def risk(w, counts, with_h=True):
        def f(weak):
            losses = h(weak, strong, thresholds) if with_h else None
            return ssl_risk(cross_entropy(weak, y), losses, y, w, given["lambda"], share, counts)

        return with_gradient(f, weak=np.array(batch["weak"]))

    return {
        "labelled only": risk(by_class, ones, with_h=False),
        "row weights": risk(by_class, counts),
        "by row": risk(by_row, ones),
        "clipped": risk(np.minimum(by_class, given["clip"] / share), ones),
        "classical, row weights": risk(None, counts),
    }


def build(name, consistency, k, label_counts, n, seed, learnt):
    rng = np.random.default_rng(seed)
    single = lambda x: np.asarray(x, np.float32).astype(float).tolist()  # noqa: E731
    batches = []
    for n_l, n_u in [(5, 7), (6, 4), (3, 8)]:
        y = rng.integers(0, k, n_l)
        weak = 2 * rng.standard_normal((n_l + n_u, k))
        weak[np.arange(n_l), y] += learnt
        strong = weak + rng.standard_normal(weak.shape)
        batches.append({"y": y.tolist() + [None] * n_u, "weak": single(weak), "strong": single(strong)})
    rows = len(batches[0]["y"])
    given = {
        "consistency": consistency,
        "label_counts": label_counts,
        "n": n,
        "phi": single(rng.uniform(0.1, 0.9, k)),
        "known_shares": rng.dirichlet(np.full(k, 5.0)).round(6).tolist(),
        "lambda": 0.75,
        "tau": 0.8,
        "beta": 0.5,
        "clip": 1.5,
        "row_weights": single(rng.uniform(0.5, 2, rows)),
        "row_inverse_phi": single(1 / rng.uniform(0.1, 0.9, rows)),
        "batches": batches,
    }
    given["known_shares"][-1] = round(1 - sum(given["known_shares"][:-1]), 6)
    first, share = batches[0], sum(label_counts) / n
    weak, strong, phi = np.array(first["weak"]), np.array(first["strong"]), np.array(given["phi"])
    thresholds = adaptive(given["tau"], phi, given["beta"])

    def likelihood(counts):
        f = lambda logits, phi: observed_likelihood(logits, first["y"], phi, share, counts)  # noqa: E731
        return with_gradient(f, logits=weak, phi=phi)

    return {
        "name": name,
        "input": given,
        "expected": {
            "cross_entropy": cross_entropy(weak, first["y"]).tolist(),
            **{name: h(weak, strong, thresholds).tolist() for name, h in CONSISTENCY.items()},
            "logits_given_labelled": (weak + np.log(phi)).tolist(),
            "logits_given_unlabelled": (weak + np.log(1 - phi)).tolist(),
            "observed_likelihood": likelihood(np.ones(rows)),
            "observed_likelihood_weighted": likelihood(np.array(given["row_weights"])),
            "loop": {method: loop(method, given) for method in METHODS},
            "variants": variants(given),
        },
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the stored file, to 1e-9")
    options = parser.parse_args()
    tree = [
        build("entropy, three classes", "entropy", 3, [12, 5, 3], 80, 1, learnt=0),
        build("pseudo-labels, labelled rows learnt", "pseudo-labels", 4, [9, 4, 6, 2], 60, 2, learnt=9),
        # The first class has more labels than the model gives it rows at first: its phi is set to 1.
        build("fixmatch, a phi of 1", "fixmatch", 3, [50, 6, 9], 100, 3, learnt=8),
    ]
    trusts = [step["trust"] for case in tree for step in case["expected"]["loop"]["moments-gradient"]]
    assert min(trusts) == 0 and max(trusts) > 0.3, trusts
    assert tree[2]["expected"]["loop"]["moments"][-1]["clipped"] == 3
    if options.check:
        worst, at = difference(tree, json.loads(PATH.read_text()))
        print(f"losses: {worst:.1e} at {at}")
        sys.exit(not worst < 1e-9)
    PATH.write_text(json.dumps(tree, separators=(",", ":"), allow_nan=False) + "\n")
    print(f"losses: {PATH.stat().st_size} bytes")


if __name__ == "__main__":
    main()
