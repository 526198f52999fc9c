"""Writes golden/evaluate.json: metrics of models by scikit-learn, with all labels, and with labels weighted by 1/phi; and the
augmented estimates, from their definition. With `--check`, compares instead of writing."""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from scipy import optimize
from sklearn import metrics as sk

import cases
from golden import difference

PATH = Path(__file__).parent / "golden" / "evaluate.json"


def one_against_rest(y, p, d, weight, k):
    """The metrics of every class, by scikit-learn."""
    truth, decided = (y == k).astype(int), (d == k).astype(int)
    given = {"sample_weight": weight}
    return {
        "recall": sk.recall_score(truth, decided, **given),
        "specificity": sk.recall_score(1 - truth, 1 - decided, **given),
        "precision": sk.precision_score(truth, decided, **given) if decided.any() else None,
        "npv": sk.precision_score(1 - truth, 1 - decided, **given),
        "f1": sk.f1_score(truth, decided, **given),
        "auc": sk.roc_auc_score(truth, p[:, k], **given),
        "average_precision": sk.average_precision_score(truth, p[:, k], **given),
        "prevalence": np.average(truth, weights=weight),
    }


def calibration_error(a, p, d):
    rows = np.arange(len(p))
    sure = p[rows, d]
    bins = np.minimum((sure * 15).astype(int), 14)
    gap = np.bincount(bins, a[rows, d] - a.sum(1) * sure, minlength=15)
    return np.abs(gap).sum() / a.sum()


def slope(a, p):
    """beta of sum_ik a_ik log softmax(beta log p_ik + b_k), refined by Newton steps on numerical derivatives of the gradient."""
    z = np.log(np.clip(p, np.finfo(float).eps, 1 - np.finfo(float).eps))
    m = a.sum(1)

    def gradient(theta):
        q = cases.softmax(theta[0] * z + np.r_[0, theta[1:]])
        return np.r_[(a * z - m[:, None] * q * z).sum(), (a - m[:, None] * q).sum(0)[1:]]

    found = optimize.root(gradient, np.r_[1, np.zeros(p.shape[1] - 1)], tol=1e-13)
    assert np.abs(gradient(found.x)).max() < 1e-6 * len(p), found
    return float(found.x[0])


def with_sklearn(y, p, weight=None):
    """All metrics of labelled rows with weights."""
    k, d = p.shape[1], p.argmax(1)
    w = np.ones(len(y)) if weight is None else weight
    a = np.eye(k)[y] * w[:, None]
    classes = [one_against_rest(y, p, d, w, j) for j in range(k)]
    mean = lambda name: float(np.mean([c[name] for c in classes if c[name] is not None]))  # noqa: E731
    overall = {
        "accuracy": sk.accuracy_score(y, d, sample_weight=w),
        "balanced_accuracy": sk.balanced_accuracy_score(y, d, sample_weight=w),
        "f1": sk.f1_score(y, d, average="macro", sample_weight=w),
        "auc": mean("auc"),
        "average_precision": mean("average_precision"),
        "log_loss": sk.log_loss(y, p, sample_weight=w, labels=range(k)),
        "brier": sk.brier_score_loss(y, p if k > 2 else p[:, 1], sample_weight=w, labels=list(range(k))),
        "calibration_error": calibration_error(a, p, d),
        "calibration_slope": slope(a, p),
    }
    confusion = sk.confusion_matrix(y, d, labels=range(k), sample_weight=w)
    return tidy({"overall": overall, "classes": classes, "confusion": confusion.tolist()})


def by_definition(a, p, m):
    """The same from how much every row counts for every class, and how much it counts at all, pair by pair."""
    k, d = p.shape[1], p.argmax(1)
    confusion = np.array([[a[d == j, c].sum() for j in range(k)] for c in range(k)])
    total, classes = confusion.sum(), []
    for c in range(k):
        right, of, taken = confusion[c, c], confusion[c].sum(), confusion[:, c].sum()
        score = p[:, c]
        wins = (score[:, None] > score).astype(float) + 0.5 * (score[:, None] == score)
        negative = m - a[:, c]
        above = score[None, :] >= score[:, None]
        mass = (above * m).sum(1)
        precision = np.where(mass > 0, np.clip((above * a[:, c]).sum(1) / np.maximum(mass, 1), 0, 1), 0)
        classes.append({
            "recall": right / of,
            "specificity": (total - of - taken + right) / (total - of),
            "precision": right / taken if taken > 0 else None,
            "npv": (total - of - taken + right) / (total - taken),
            "f1": 2 * right / (of + taken),
            "auc": a[:, c] @ wins @ negative / (a[:, c].sum() * negative.sum()),
            "average_precision": a[:, c] @ precision / a[:, c].sum(),
            "prevalence": of / total,
        })
    z = np.log(np.clip(p, np.finfo(float).eps, 1 - np.finfo(float).eps))
    brier = (a * ((p**2).sum(1, keepdims=True) - 2 * p + 1)).sum() / total
    mean = lambda name: float(np.mean([c[name] for c in classes if c[name] is not None]))  # noqa: E731
    overall = {
        "accuracy": np.trace(confusion) / total,
        "balanced_accuracy": mean("recall"),
        "f1": mean("f1"),
        "auc": mean("auc"),
        "average_precision": mean("average_precision"),
        "log_loss": -(a * z).sum() / total,
        "brier": brier / 2 if k == 2 else brier,
        "calibration_error": calibration_error(a, p, d),
        "calibration_slope": slope(a, p),
    }
    return tidy({"overall": overall, "classes": classes, "confusion": confusion.tolist()})


def tidy(tree):
    if isinstance(tree, dict):
        return {k: tidy(v) for k, v in tree.items()}
    if isinstance(tree, list):
        return [tidy(v) for v in tree]
    return None if tree is None else float(tree)


def build(name, k, n, signal, seed, ties):
    rng = np.random.default_rng(seed)
    prior = np.arange(1, k + 1) / (k * (k + 1) / 2)
    y = rng.choice(k, size=n, p=prior)
    x = rng.standard_normal((n, k)) + signal * np.eye(k)[y]
    # A model that is too sure of itself.
    p = cases.softmax(1.5 * signal * x)
    if ties:
        p = np.round(p, 1) + 0.01
        p /= p.sum(1, keepdims=True)
    else:
        p = cases.whole(p)
    phi = np.linspace(0.15, 0.6, k)
    r = rng.random(n) < phi[y]
    odds = (1 - phi) / phi
    t = p * odds
    t /= t.sum(1, keepdims=True)
    own = np.eye(k)[y] * r[:, None]
    o = odds[y] * r
    everyone = own + o[:, None] * (own - t) + (~r)[:, None] * t
    return {
        "name": name,
        "seed": seed,
        "input": {"p": p.tolist(), "y": y.tolist(), "labelled": r.tolist(), "phi": phi.tolist()},
        "complete": with_sklearn(y, p),
        "naive": with_sklearn(y[r], p[r]),
        "weighted": with_sklearn(y[r], p[r], 1 / phi[y[r]]),
        "augmented": by_definition(everyone, p, np.ones(n)),
        "unlabelled": by_definition(everyone - own, p, 1.0 - r),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the stored file, to 1e-9")
    options = parser.parse_args()
    tree = [
        build("two classes", 2, 300, 0.8, 1, False),
        build("two classes with ties", 2, 300, 0.8, 2, True),
        build("three classes", 3, 400, 1.0, 3, False),
        build("five classes with ties", 5, 400, 1.0, 4, True),
    ]
    for case in tree:  # scikit-learn and the definition agree where both apply
        y, p = np.array(case["input"]["y"]), np.array(case["input"]["p"])
        worst, at = difference(by_definition(np.eye(p.shape[1])[y], p, np.ones(len(y))), case["complete"])
        assert worst < 1e-12, (worst, at)
    if options.check:
        worst, at = difference(tree, json.loads(PATH.read_text()))
        print(f"evaluate: {worst:.1e} at {at}")
        sys.exit(not worst < 1e-9)
    PATH.write_text(json.dumps(tree, separators=(",", ":"), allow_nan=False) + "\n")
    print(f"evaluate: {PATH.stat().st_size} bytes")


if __name__ == "__main__":
    main()
