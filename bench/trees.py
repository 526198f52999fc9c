"""Compares the boosted trees of mnar with LightGBM on small and middle-sized tables.

    pip install -r bench/requirements.txt
    cargo build --release -p mnar --example bench_trees
    MNAR_DATA=DIR python bench/trees.py        # writes results/trees.json, and the table to stdout

DIR/tables holds letter, pima, satellite, shuttle, spam and vowel as .csv.gz with the label in the column `y`; breast_cancer
and digits come with scikit-learn. Every seed draws the training rows at random and tests on up to 5,000 of the others;
a table takes part in a size if at least 100 rows are left. LightGBM gets the same settings as our trees have for that
number of rows (learning rate, leaves, depth, rounds, smallest leaf, penalty, columns per node), once more without
drawing columns, and once with its own defaults. All run one after another on one thread; the times are processor time of
training, data preparation included. `tuned` chooses the number of rounds by five folds of the training rows, and never
sees a test row. Draws that are already in the output are not run again.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import lightgbm
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "results" / "trees.json"
TABLES = ["letter", "pima", "satellite", "shuttle", "spam", "vowel"]
SIZES = {300: 5, 1000: 4, 5000: 3}  # training rows, and seeds
OURS = ["mnar", "mnar, tuned"]
THEIRS = ["LightGBM", "LightGBM, all columns", "LightGBM, defaults"]


def load():
    tables = {}
    folder = os.environ.get("MNAR_DATA")
    if not folder:
        raise SystemExit("set MNAR_DATA to the folder that holds tables/")
    for name in TABLES:
        table = pd.read_csv(Path(folder) / "tables" / f"{name}.csv.gz")
        tables[name] = (table.drop(columns="y").to_numpy(float), pd.factorize(table["y"], sort=True)[0])
    tables["breast cancer"] = load_breast_cancer(return_X_y=True)
    tables["digits"] = load_digits(return_X_y=True)
    return tables


def settings(n):
    small = n <= 2000
    return dict(
        n_estimators=150 if small else 100,
        learning_rate=0.05 if small else 0.1,
        num_leaves=8 if small else 16,
        max_depth=8,
        min_child_samples=5 if small else 3,
        min_child_weight=1e-3,
        reg_lambda=1.0,
        colsample_bynode=0.3 if small else 0.5,
    )


def lightgbm_run(method, X, y, X_test, seed):
    own = {"LightGBM, defaults": {}, "LightGBM": settings(len(X))}.get(method)
    if own is None:
        own = settings(len(X)) | dict(colsample_bynode=1.0)
    model = lightgbm.LGBMClassifier(**own, n_jobs=1, random_state=seed, verbose=-1)
    start = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - start
    return model.predict_proba(X_test), dict(fit_seconds=seconds)


def mnar_run(method, X, y, X_test, y_test, program, folder, extra):
    paths = [str(Path(folder) / name) for name in ("train.csv", "test.csv", "out.csv")]
    for path, features, labels in [(paths[0], X, y), (paths[1], X_test, y_test)]:
        pd.DataFrame(features).assign(y=labels).to_csv(path, header=False, index=False)
    mode = "tuned" if method == "mnar, tuned" else "fixed"
    command = [program, *paths, mode] + ([extra] if extra else [])
    environment = os.environ | {"RAYON_NUM_THREADS": "1"}
    record = json.loads(subprocess.run(command, check=True, capture_output=True, env=environment).stdout)
    record["rounds"] = record.pop("settings")["rounds"]
    return pd.read_csv(paths[2], header=None).to_numpy(), record


def draw(X, y, n, seed):
    """Training and test rows. Classes without two training rows are dropped from both."""
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:n], order[n : n + 5000]
    seen = np.flatnonzero(np.bincount(y[train], minlength=y.max() + 1) >= 2)
    number = np.full(y.max() + 1, -1)
    number[seen] = np.arange(len(seen))
    train, test = train[number[y[train]] >= 0], test[number[y[test]] >= 0]
    return X[train], number[y[train]], X[test], number[y[test]]


def score(p, y):
    return dict(
        log_loss=float(-np.log(np.maximum(p[np.arange(len(y)), y], 1e-15)).mean()),
        accuracy=float((p.argmax(axis=1) == y).mean()),
    )


def one(name, X, y, size, seed, options):
    """All methods on one draw of training rows, one after another."""
    X_train, y_train, X_test, y_test = draw(X, y, size, seed)
    record = {}
    with tempfile.TemporaryDirectory() as folder:
        for method in options.methods:
            if method in OURS:
                data = (X_train, y_train, X_test, y_test)
                p, times = mnar_run(method, *data, options.program, folder, options.settings)
            else:
                p, times = lightgbm_run(method, X_train, y_train, X_test, seed)
            record[method] = score(p, y_test) | times
    line = "  ".join(f"{m}: {r['log_loss']:.3f} {r['fit_seconds']:.2f}s" for m, r in record.items())
    print(f"{name:14} {size:5} {seed:3}  {line}", flush=True)
    return dict(data=name, rows=size, seed=seed, methods=record)


def write(runs, options):
    result = dict(lightgbm=lightgbm.__version__, means=means(runs, options.methods), runs=runs)
    options.output.write_text(json.dumps(result, indent=1) + "\n")


def means(runs, methods):
    """Means over tables and seeds per size, and the time relative to LightGBM with the same settings: the ratio of sums."""
    summary = []
    for size in sorted({run["rows"] for run in runs}):
        some = [run for run in runs if run["rows"] == size]
        base = sum(run["methods"]["LightGBM"]["fit_seconds"] for run in some)
        for method in methods:
            of = [run["methods"][method] for run in some]
            mean = {name: float(np.mean([entry[name] for entry in of])) for name in ("log_loss", "accuracy")}
            ratio = sum(entry["fit_seconds"] for entry in of) / base
            entry = dict(rows=size, method=method, runs=len(of), **mean, time_ratio=ratio)
            if "tune_seconds" in of[0] and method == "mnar, tuned":
                entry["time_ratio_with_tuning"] = sum(e["fit_seconds"] + e["tune_seconds"] for e in of) / base
            summary.append(entry)
    return summary


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    target = os.environ.get("CARGO_TARGET_DIR", ROOT / "target")
    parser.add_argument("--program", default=str(Path(target) / "release" / "examples" / "bench_trees"))
    parser.add_argument("--output", default=OUTPUT, type=Path)
    parser.add_argument("--first-seed", default=0, type=int, help="100 for rows that settings may be chosen on")
    parser.add_argument("--sizes", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--methods", nargs="*", default=OURS + THEIRS)
    parser.add_argument("--settings", help="JSON of settings for our trees instead of their own choice")
    options = parser.parse_args()
    tables = load()
    runs = json.loads(options.output.read_text())["runs"] if options.output.exists() else []
    known = {(run["data"], run["rows"], run["seed"]) for run in runs}
    for size in options.sizes:
        for seed in range(options.first_seed, options.first_seed + SIZES.get(size, 2)):
            for name, (X, y) in tables.items():
                if len(y) >= size + 100 and (name, size, seed) not in known:
                    runs.append(one(name, X, y, size, seed, options))
                    write(runs, options)
    print("\n| rows | method | log-loss | accuracy | time |\n|---|---|---|---|---|")
    for e in means(runs, options.methods):
        print(f"| {e['rows']} | {e['method']} | {e['log_loss']:.4f} | {e['accuracy']:.4f} | {e['time_ratio']:.2f} |")


if __name__ == "__main__":
    main()
