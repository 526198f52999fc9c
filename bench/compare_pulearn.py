"""Only one class is labelled: `mnar` beside pulearn, on the same draws.

    pip install pulearn==0.2.0 scikit-learn==1.9.1 pandas
    cargo build --release --package mnar-cli
    python bench/compare_pulearn.py --mnar target/release/mnar > results/compare_pulearn.json

Two tables of scikit-learn: breast cancer (malignant, 37%) and digits (0 to 3, 40%). Seven rows in ten are the data: each positive
is labelled with probability 0.4, nothing else is. The others are new rows.

How common is the class? `mnar estimate` gives bounds: reported is how often they contain the true share, and their means. pulearn gives
estimates (its EM and its histogram matching, with their default classifier): reported are their mean and root mean squared error.

How good is a classifier if the share is known? `mnar fit --shares` with its defaults; pulearn's NNPUClassifier, which takes the share, and
its ElkanotoPuClassifier around scikit-learn's logistic regression, which estimates what it needs. Features are standardised for
pulearn. Reported: accuracy and log-loss on the new rows; NNPUClassifier has no probabilities.
"""

import argparse
import json
import subprocess
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pulearn
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.preprocessing import StandardScaler

PHI, DATA = 0.4, 0.7


def tables():
    x, y = load_breast_cancer(return_X_y=True)
    yield "breast cancer", x, y == 0
    x, y = load_digits(return_X_y=True)
    yield "digits, 0 to 3", x, y <= 3


def draw(x, positive, seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(x))
    rows, new = np.split(order, [round(DATA * len(x))])
    labelled = positive[rows] & (rng.random(len(rows)) < PHI)
    return rows, new, labelled


def by_mnar(program, x, positive, rows, new, labelled, folder, seed):
    names = [f"x{j}" for j in range(x.shape[1])]
    data, later, run, out = (folder / name for name in ("data.csv", "new.csv", "run", "out.csv"))
    pd.DataFrame(x[rows], columns=names).assign(label=np.where(labelled, "yes", None)).to_csv(data, index=False)
    pd.DataFrame(x[new], columns=names).to_csv(later, index=False)

    def mnar(*words):
        return subprocess.run([program, *map(str, words)], check=True, capture_output=True, text=True).stdout

    bound = json.loads(mnar("estimate", data, "--label", "label", "--features", "all", "--seed", seed, "--format", "json", "--quiet"))
    share = positive[rows].mean()
    mnar("fit", data, "--label", "label", "--shares", f"yes={share}", "--seed", seed, "--out", run, "--quiet")
    mnar("predict", run, later, "-o", out)
    return (bound["share_at_least"], bound["share_at_most"]), pd.read_csv(out)["p_yes"].to_numpy()


def by_pulearn(x, positive, rows, new, labelled, seed):
    scaler = StandardScaler().fit(x[rows])
    data, later, y = scaler.transform(x[rows]), scaler.transform(x[new]), labelled.astype(int)
    estimators = [("EM", pulearn.ScarEMPriorEstimator()), ("histograms", pulearn.HistogramMatchPriorEstimator())]
    estimates = {name: float(estimator.estimate(data, y).pi) for name, estimator in estimators}
    nnpu = pulearn.NNPUClassifier(prior=positive[rows].mean(), random_state=seed).fit(data, y)
    elkanoto = pulearn.ElkanotoPuClassifier(LogisticRegression(max_iter=1000), random_state=seed).fit(data, y)
    proba = elkanoto.predict_proba(later)
    return estimates, nnpu.predict(later) == 1, np.clip(proba[:, 1] if proba.ndim == 2 else proba, 0, 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mnar", default="target/release/mnar")
    parser.add_argument("--draws", type=int, default=20)
    arguments = parser.parse_args()
    program = str(Path(arguments.mnar).resolve())
    warnings.simplefilter("ignore")
    results = []
    for table, x, positive in tables():
        shares, scores = {}, {}
        for seed in range(arguments.draws):
            rows, new, labelled = draw(x, positive, seed)
            with tempfile.TemporaryDirectory() as folder:
                bound, p_mnar = by_mnar(program, x, positive, rows, new, labelled, Path(folder), seed)
            estimates, yes, p_elkanoto = by_pulearn(x, positive, rows, new, labelled, seed)
            truth = positive[rows].mean()
            shares.setdefault("mnar", []).append((bound[0] <= truth <= bound[1], *bound))
            for name, estimate in estimates.items():
                shares.setdefault(name, []).append((estimate, (estimate - truth) ** 2))
            for name, decided, p in [("mnar", p_mnar > 0.5, p_mnar), ("NNPU", yes, None), ("Elkanoto", p_elkanoto > 0.5, p_elkanoto)]:
                loss = float("nan") if p is None else log_loss(positive[new], np.clip(p, 1e-6, 1 - 1e-6))
                scores.setdefault(name, []).append((accuracy_score(positive[new], decided), loss))
        mean = lambda values: [None if np.isnan(v) else round(float(v), 4) for v in np.mean(values, axis=0)]  # noqa: E731
        results.append({
            "table": table,
            "share": {
                "truth": round(float(positive.mean()), 4),
                "mnar": dict(zip(("contains", "at_least", "at_most"), mean(shares.pop("mnar")))),
                **{name: {"mean": mean(values)[0], "rmse": round(float(np.mean(values, axis=0)[1] ** 0.5), 4)} for name, values in shares.items()},
            },
            "classifier": {
                name: {**dict(zip(("accuracy", "log_loss"), mean(values))), "accuracy_sd": round(float(np.std([v[0] for v in values], ddof=1)), 4)}
                for name, values in scores.items()
            },
        })
    about = {"pulearn": pulearn.__version__, "draws": arguments.draws, "phi": PHI, "tables": results}
    print(json.dumps(about, indent=1))


if __name__ == "__main__":
    main()
