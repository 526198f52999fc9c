"""Compares `mnar fit`, with its defaults, with what a user would pick instead, on nine tables and five masks each.

    pip install -r bench/requirements.txt
    cargo build --release
    MNAR_DATA=DIR python bench/tables.py                       # -> results/tables.json, and a summary
    MNAR_DATA=DIR python bench/tables.py --tables pima,vowel --seeds 200 --mnar PATH

A seed draws 30% of the rows as test rows and hides labels of the rest: P(labelled | class) falls from 0.6 to 0.1 by equal
ratios over the classes, in an order that the seed draws. The error of phi is the sum of its squared errors over the
sum of the squares of the true phi. Its rivals are `mnar estimate` on out-of-fold predictions (five folds) of
LogisticRegression, HistGradientBoosting and RandomForest. The rivals of the trained model are the same three, fitted to
the labelled rows with weights 1/phi, where phi is the one that `mnar fit` estimated; accuracy and log-loss (of
probabilities of at least 1e-6) are those of the test rows, which have the class shares of the population. Masks that
are in the output already are not run again.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "results" / "tables.json"
FOLDS = 5
# Classes with fewer rows than this are left out: Shuttle has some with six.
FEWEST = 40
TABLES = ["pima", "vowel", "spam", "satellite", "satellite-4", "breast-cancer", "optdigits", "letter", "shuttle"]
RIVALS = {
    "softmax": lambda: make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=2000)),
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
    "forest": lambda: make_pipeline(SimpleImputer(), RandomForestClassifier(300, random_state=0, n_jobs=2)),
}


def table(name: str, data: Path) -> pd.DataFrame:
    if name == "breast-cancer":
        bunch = load_breast_cancer(as_frame=True)
        frame = bunch.data.assign(y=bunch.target_names[bunch.target])
    elif name == "optdigits":
        frame = pd.concat(pd.read_csv(data / "optdigits" / f"optdigits.{part}", header=None) for part in ("tra", "tes"))
        frame.columns = [f"x{i}" for i in range(frame.shape[1] - 1)] + ["y"]
    else:
        frame = pd.read_csv(data / "tables" / f"{name.removesuffix('-4')}.csv.gz")
        if name == "satellite-4":  # the central pixel alone
            frame = frame[[*frame.columns[16:20], "y"]]
    frame["y"] = frame["y"].astype(str).map(lambda label: f"c{label}")
    return frame[frame["y"].map(frame["y"].value_counts()) >= FEWEST].reset_index(drop=True)


def weighted_fit(model, x, y, weights):
    if hasattr(model, "steps"):
        return model.fit(x, y, **{f"{model.steps[-1][0]}__sample_weight": weights})
    return model.fit(x, y, sample_weight=weights)


def scores(proba, classes, truth) -> dict:
    column = {name: k for k, name in enumerate(classes)}
    right = np.array([proba[i, column[label]] for i, label in enumerate(truth)])
    predicted = np.asarray(classes)[np.argmax(proba, axis=1)]
    return {"accuracy": float(np.mean(predicted == truth)), "log_loss": float(-np.mean(np.log(np.clip(right, 1e-6, 1))))}


def out_of_fold(make, x, labels, names, seed):
    """Probabilities of every row by a model that did not learn from its label, and the fold of every row."""
    labelled = np.flatnonzero(labels != "")
    fold = np.random.default_rng(seed).integers(FOLDS, size=len(labels))
    for k, (_, test) in enumerate(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(labelled, labels[labelled])):
        fold[labelled[test]] = k
    proba = np.zeros((len(labels), len(names)))
    for k in range(FOLDS):
        learn, rows = labelled[fold[labelled] != k], np.flatnonzero(fold == k)
        model = make().fit(x[learn], labels[learn])
        proba[np.ix_(rows, [names.index(c) for c in model.classes_])] = model.predict_proba(x[rows])
    return proba, fold


def run_mask(mnar: str, name: str, frame: pd.DataFrame, seed: int, folder: Path) -> dict:
    def call(*arguments):
        done = subprocess.run([mnar, *map(str, arguments)], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{name}, seed {seed}: {' '.join(map(str, arguments))}: {done.stderr.strip()}")
        return done.stdout

    rng = np.random.default_rng(seed)
    names = sorted(frame["y"].unique())
    truth = dict(zip(names, rng.permutation(np.geomspace(0.6, 0.1, len(names)))))
    test = frame.sample(frac=0.3, random_state=seed)
    train = frame.drop(test.index)
    kept = rng.random(len(train)) < train["y"].map(truth)
    labels = train["y"].where(kept, "").to_numpy(dtype=str)
    train.assign(y=labels).to_csv(folder / "train.csv", index=False)
    test.drop(columns="y").to_csv(folder / "test.csv", index=False)

    def error(found) -> float:
        phi = dict(zip(found["classes"], found["phi"]))
        return float(sum((phi[c] - truth[c]) ** 2 for c in names) / sum(truth[c] ** 2 for c in names))

    run = folder / "run"
    start = time.time()
    call("fit", folder / "train.csv", "--label", "y", "--out", run, "--no-baseline", "--quiet")
    seconds = time.time() - start
    call("predict", run, folder / "test.csv", "-o", folder / "predicted.csv")
    report = json.loads((run / "report.json").read_text())
    found = report.get("findings", report)
    predicted = pd.read_csv(folder / "predicted.csv")
    x_test, y_test = test.drop(columns="y").to_numpy(float), test["y"].to_numpy()
    ours = scores(predicted[[f"p_{c}" for c in names]].to_numpy(), names, y_test)
    result = {"seconds": round(seconds, 1), "verdict": found["verdict"]["kind"], "phi": {"mnar": error(found)}, "models": {"mnar": ours}}

    x, labelled = train.drop(columns="y").to_numpy(float), labels != ""
    phi = dict(zip(found["classes"], found["phi"]))
    weights = np.array([1 / phi[c] for c in labels[labelled]])
    for rival, make in RIVALS.items():
        proba, fold = out_of_fold(make, x, labels, names, seed)
        predictions = pd.DataFrame(proba, columns=[f"p_{c}" for c in names]).assign(y=labels, fold=fold)
        predictions.to_csv(folder / "predictions.csv", index=False)
        estimate = ["estimate", folder / "predictions.csv", "--label", "y", "--fold", "fold", "--interval", "information"]
        result["phi"][rival] = error(json.loads(call(*estimate, "--given", "none", "--format", "json", "--quiet")))
        model = weighted_fit(make(), x[labelled], labels[labelled], weights)
        result["models"][rival] = scores(model.predict_proba(x_test), list(model.classes_), y_test)
    return result


def summary(results: dict) -> str:
    lines = ["table | error of phi: mnar, best rival, ratio | accuracy: mnar, best rival | log-loss: mnar, best rival | s"]
    for name, masks in results.items():
        mean = lambda part, who, *key: np.mean([m[part][who][key[0]] if key else m[part][who] for m in masks.values()])
        phi = {who: mean("phi", who) for who in ["mnar", *RIVALS]}
        accuracy = {who: 100 * mean("models", who, "accuracy") for who in phi}
        loss = {who: mean("models", who, "log_loss") for who in phi}
        best = min(RIVALS, key=phi.get), max(RIVALS, key=accuracy.get), min(RIVALS, key=loss.get)
        lines.append(
            f"{name} ({len(masks)}) | {phi['mnar']:.4f}, {best[0]} {phi[best[0]]:.4f}, {phi['mnar'] / phi[best[0]]:.2f}"
            f" | {accuracy['mnar']:.1f}, {best[1]} {accuracy[best[1]]:.1f} | {loss['mnar']:.3f}, {best[2]} {loss[best[2]]:.3f}"
            f" | {np.mean([m['seconds'] for m in masks.values()]):.0f}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--seeds", default="200,201,202,203,204")
    parser.add_argument("--mnar", default=str(ROOT / "target" / "release" / "mnar"))
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    data = os.environ.get("MNAR_DATA")
    if not data:
        sys.exit("set MNAR_DATA to the folder of the data sets")
    results = json.loads(arguments.output.read_text()) if arguments.output.exists() else {}
    for seed in arguments.seeds.split(","):
        for name in arguments.tables.split(","):
            if seed in results.get(name, {}):
                continue
            with tempfile.TemporaryDirectory() as folder:
                mask = run_mask(arguments.mnar, name, table(name, Path(data)), int(seed), Path(folder))
            results.setdefault(name, {})[seed] = mask
            arguments.output.write_text(json.dumps(results, indent=1) + "\n")
            print(name, seed, json.dumps(mask), flush=True)
    print(summary(results))


if __name__ == "__main__":
    main()
