"""Compares MNARClassifier with the labelled rows alone and with self-training, all based on LogisticRegression.

    pip install -r bench/requirements.txt, and the wheel of bindings/python
    MNAR_DATA=DIR python bench/classifier.py        # writes results/python_classifier.json, and the table to stdout

There are three data sets with two mechanisms each, and 20 seeds. Every seed draws a stratified third as test rows and
hides labels of the rest by the mechanism. Scores are computed on the test rows, which have the class shares of the
population, and on the rows whose labels were hidden. optdigits comes with test rows by other writers; it is run with
those as well. `MNAR_DATA` names its folder; without it, that data set is left out. Scenarios that are already in the
output are not run again.
"""

import argparse
import json
import os
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

import mnar

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "results" / "python_classifier.json"
DOCS = ROOT / "docs" / "python.md"
# phi falls from 0.5 to 0.05 by equal ratios over the ten classes, in order and in an order drawn once.
FALLING = np.geomspace(0.5, 0.05, 10)
PERMUTED = FALLING[np.random.default_rng(12345).permutation(10)]
# optdigits with its own split: other people wrote the test rows, so they are another population than the masked rows.
OTHER_WRITERS = "optdigits, other writers"
OWN_PART = 3823
SCENARIOS = [
    ("breast cancer", "malignant 0.5, benign 0.08", [0.5, 0.08]),
    ("breast cancer", "malignant 0.08, benign 0.5", [0.08, 0.5]),
    ("digits", "0.5 down to 0.05", FALLING),
    ("digits", "the same, permuted", PERMUTED),
    ("optdigits", "0.5 down to 0.05", FALLING),
    ("optdigits", "the same, permuted", PERMUTED),
    (OTHER_WRITERS, "0.5 down to 0.05", FALLING),
    (OTHER_WRITERS, "the same, permuted", PERMUTED),
]
BASES = {"logistic": LogisticRegression(), "naive-bayes": GaussianNB()}
METHODS = ["labelled rows", "self-training", "MNARClassifier"]
METRICS = ["accuracy", "log-loss", "accuracy, unlabelled", "log-loss, unlabelled"]


def load(name):
    if name == "breast cancer":
        return load_breast_cancer(return_X_y=True)
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X / 16, y
    folder = os.environ.get("MNAR_DATA")
    if not folder:
        return None
    parts = [np.loadtxt(Path(folder) / "optdigits" / f"optdigits.{part}", delimiter=",") for part in ("tra", "tes")]
    table = np.vstack(parts)
    return table[:, :-1] / 16, table[:, -1].astype(int)


def scores(proba, y, classes):
    return [float(np.mean(proba.argmax(axis=1) == y)), float(log_loss(y, proba, labels=classes))]


def one(data, X, y, phi, seed, base):
    """Scores of every method for one mask."""
    rng = np.random.default_rng(seed)
    if data == OTHER_WRITERS:
        X, X_test, y, y_test = X[:OWN_PART], X[OWN_PART:], y[:OWN_PART], y[OWN_PART:]
    else:
        X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=seed)
    if len(phi) == 2:
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    while True:  # cross-fitting needs two labels of each class
        seen = rng.random(len(y)) < phi[y]
        if np.bincount(y[seen], minlength=len(phi)).min() >= 2:
            break
    masked, classes = np.where(seen, y, -1), np.arange(len(phi))
    plain = clone(base).fit(X[seen], y[seen])
    trained = SelfTrainingClassifier(clone(base)).fit(X, masked)
    ours = mnar.MNARClassifier(clone(base)).fit(X, masked)
    hidden = ~seen
    return {
        "labelled": float(seen.mean()),
        "rounds": ours.n_rounds_,
        "phi_error": float(np.abs(ours.mechanism_.phi_ - phi).mean()),
        "scores": {
            "labelled rows": scores(plain.predict_proba(X_test), y_test, classes)
            + scores(plain.predict_proba(X[hidden]), y[hidden], classes),
            "self-training": scores(trained.predict_proba(X_test), y_test, classes)
            + scores(trained.predict_proba(X[hidden]), y[hidden], classes),
            "MNARClassifier": scores(ours.predict_proba(X_test), y_test, classes)
            + scores(ours.predict_proba_unlabelled(X[hidden]), y[hidden], classes),
        },
    }


def table(results):
    """Means, and paired differences with standard errors."""
    lines = [
        "| data | P(labelled given class) | | " + " | ".join(METHODS) + " | against labelled rows | against self-training |",
        "|---|---|---|" + "---|" * 5,
    ]
    for result in results:
        runs = result["runs"]
        values = {method: np.array([run["scores"][method] for run in runs]) for method in METHODS}
        for m, metric in enumerate(METRICS):
            cells = [f"{values[method][:, m].mean():.4f}" for method in METHODS]
            for other in METHODS[:2]:
                gain = values["MNARClassifier"][:, m] - values[other][:, m]
                error = gain.std(ddof=1) / np.sqrt(len(gain))
                cells.append(f"{gain.mean():+.4f} ± {error:.4f}")
            lines.append(f"| {result['data']} | {result['mechanism']} | {metric} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write_docs(text):
    """Writes the table into the documentation, between its markers."""
    begin, end = "<!-- table: python bench/classifier.py --docs -->\n", "\n<!-- end of table -->"
    page = DOCS.read_text()
    before, rest = page.split(begin)
    DOCS.write_text(before + begin + text + end + rest.split(end)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--base", choices=BASES, default="logistic", help="another base needs another --output")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--docs", action="store_true", help="only write the table of an earlier run into docs/python.md")
    args = parser.parse_args()
    if args.docs:
        write_docs(table(json.loads(args.output.read_text())["results"]))
        return
    warnings.filterwarnings("ignore")
    results = json.loads(args.output.read_text())["results"] if args.output.exists() else []
    there = {(result["data"], result["mechanism"]) for result in results if len(result["runs"]) == args.seeds}
    results = [result for result in results if (result["data"], result["mechanism"]) in there]
    for data, mechanism, phi in SCENARIOS:
        if (data, mechanism) in there:
            continue
        loaded = load(data)
        if loaded is None:
            print(f"{data} left out: set MNAR_DATA")
            continue
        runs = [one(data, *loaded, np.asarray(phi), seed, BASES[args.base]) for seed in range(args.seeds)]
        results.append({"data": data, "mechanism": mechanism, "phi": list(map(float, phi)), "runs": runs})
        print(table(results[-1:]), flush=True)
    record = {"version": mnar.__version__, "base": args.base, "seeds": args.seeds, "metrics": METRICS, "results": results}
    temporary = args.output.with_suffix(".part")
    temporary.write_text(json.dumps(record, indent=1) + "\n")
    temporary.replace(args.output)


if __name__ == "__main__":
    main()
