"""Coverage and size of the prediction sets of `mnar predict --sets 0.9` on real tables, labels hidden by class.

    MNAR_DATA=DIR python bench/sets.py path/to/mnar results/sets.json

Needs numpy and pandas. A quarter of the rows is never shown to `mnar fit`; the others keep their label with probability phi of
their class. Beside the two kinds of sets stand plain ones: the most probable classes until their probabilities reach 0.9.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

LEVEL = 0.9
# Table, phi of the classes in turn, draws. Seeds 200 and on; nothing was chosen on them.
CASES = [
    ("pima", [0.05, 0.6], 40),
    ("spam", [0.05, 0.4], 10),
    ("satellite", [0.02, 0.1, 0.3, 0.6, 0.05, 0.2], 10),
    ("vowel", [0.2, 0.4, 0.6], 20),
]
FIT = ["--epochs", "2", "--replicates", "0", "--no-baseline", "--permutations", "99", "--given", "none", "--quiet"]


def plain(p):
    """The most probable classes until their probabilities reach the level, as a truth value per row and class."""
    order = np.argsort(-p, axis=1)
    before = np.cumsum(np.take_along_axis(p, order, 1), 1) - np.take_along_axis(p, order, 1)
    inside = np.zeros_like(p, dtype=bool)
    np.put_along_axis(inside, order, before < LEVEL, 1)
    return inside


def draw(mnar, table, label, classes, phi, seed, folder):
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(table))
    new, rest = table.iloc[order[: len(table) // 4]], table.iloc[order[len(table) // 4 :]].copy()
    chance = rest[label].map({c: phi[k % len(phi)] for k, c in enumerate(classes)})
    rest[label] = rest[label].where(rng.random(len(rest)) < chance, "")
    rest.to_csv(folder / "t.csv", index=False)
    new.drop(columns=[label]).to_csv(folder / "n.csv", index=False)
    run = folder / "run"
    subprocess.run([mnar, "fit", folder / "t.csv", "--label", label, "--out", run, *FIT], check=True, stdout=subprocess.DEVNULL)
    truth = new[label].to_numpy()
    found = {}
    for kind in ("per-class", "marginal"):
        output = folder / f"{kind}.csv"
        command = [mnar, "predict", run, folder / "n.csv", "-o", output, "--sets", str(LEVEL), "--set-kind", kind]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        predicted = pd.read_csv(output, dtype={"set": str}).fillna("")
        found[kind] = np.array([[c in s.split(" | ") for c in classes] for s in predicted["set"]])
    found["plain"] = plain(predicted[[f"p_{c}" for c in classes]].to_numpy())
    index = np.array([classes.index(t) for t in truth])
    hit = {kind: sets[np.arange(len(index)), index] for kind, sets in found.items()}
    return index, hit, {kind: sets.sum(1).mean() for kind, sets in found.items()}


def main(mnar, output):
    data = Path(os.environ["MNAR_DATA"]) / "tables"
    lines = []
    for name, phi, draws in CASES:
        table = pd.read_csv(data / f"{name}.csv.gz", dtype=str)
        label = table.columns[-1]
        classes = sorted(table[label].unique())
        with tempfile.TemporaryDirectory() as folder:
            results = []
            for seed in range(200, 200 + draws):
                subprocess.run(["rm", "-rf", Path(folder) / "run"], check=True)
                results.append(draw(mnar, table, label, classes, phi, seed, Path(folder)))
        index = np.concatenate([r[0] for r in results])
        for kind in ("per-class", "marginal", "plain"):
            hit = np.concatenate([r[1][kind] for r in results])
            by_class = {c: round(float(hit[index == k].mean()), 3) for k, c in enumerate(classes)}
            line = {
                "table": name,
                "draws": draws,
                "kind": kind,
                "coverage": round(float(hit.mean()), 3),
                "lowest_class": min(by_class.values()),
                "size": round(float(np.mean([r[2][kind] for r in results])), 2),
                "coverage_by_class": by_class,
                "rows_by_class": {c: int((index == k).sum()) for k, c in enumerate(classes)},
            }
            lines.append(line)
            print({key: line[key] for key in ("table", "kind", "coverage", "lowest_class", "size")}, flush=True)
    Path(output).write_text(json.dumps({"level": LEVEL, "first_seed": 200, "lines": lines}, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
