"""Class shares from an audit: `mnar estimate --audit` beside ppi_py, on the same draws.

    pip install ppi-python==0.2.3 numpy
    cargo build --release --package mnar-cli
    python bench/compare_ppi.py --mnar target/release/mnar > results/compare_ppi.json

2,000 rows, 30% of them sick; a classifier's probabilities for all rows, calibrated among labelled rows; the sick are labelled with
probability 0.5, the others with 0.1; 100 rows are audited at random. ppi_py takes the audited labels and the predictions of all
rows (the labels that were not drawn at random are of no use to it) and tunes lambda. mnar has the same audit, and learns from the other
labels how to turn the classifier's probabilities into those of all rows. Reported: how often 95% intervals cover the share of
the sick, and their mean width; "sample alone" is Wilson's interval of the audited labels.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import ppi_py

N, AUDITED, SHARE, PHI, Z = 2000, 100, 0.3, (0.1, 0.5), 1.959963984540054


def draw(rng):
    y = (rng.random(N) < SHARE).astype(int)
    x = rng.normal(size=N) + 1.6 * y
    # The exact posterior of a labelled row: log odds of the features and of the labelled classes.
    log_odds = 1.6 * x - 1.28 + np.log(SHARE * PHI[1] / ((1 - SHARE) * PHI[0]))
    labelled = rng.random(N) < np.take(PHI, y)
    audited = np.zeros(N, bool)
    audited[rng.choice(N, AUDITED, replace=False)] = True
    return y, 1 / (1 + np.exp(-log_odds)), labelled, audited


def by_mnar(program, y, p, labelled, audited, folder):
    table = Path(folder, "p.csv")
    with table.open("w") as out:
        out.write("y,p_sick,p_well,audited\n")
        for one, q, seen, asked in zip(y, p.tolist(), labelled, audited):
            label = ("well", "sick")[one] if seen or asked else ""
            out.write(f"{label},{q},{1 - q},{int(asked)}\n")
    words = [program, "estimate", str(table), "--label", "y", "--audit", "audited", "--given", "none", "--format", "json"]
    found = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return found["prevalence_ci95"][found["classes"].index("sick")]


def by_ppi(y, p, audited):
    low, high = ppi_py.ppi_mean_ci(y[audited].astype(float), p[audited], p[~audited], alpha=0.05)
    return float(np.squeeze(low)), float(np.squeeze(high))


def alone(y, audited):
    share, n = y[audited].mean(), audited.sum()
    middle, scale = share + Z**2 / (2 * n), 1 + Z**2 / n
    half = Z * np.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    return (middle - half) / scale, (middle + half) / scale


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mnar", default="target/release/mnar")
    parser.add_argument("--draws", type=int, default=200)
    arguments = parser.parse_args()
    intervals = {"mnar": [], "ppi_py": [], "sample alone": []}
    truth = []
    for seed in range(arguments.draws):
        y, p, labelled, audited = draw(np.random.default_rng(seed))
        with tempfile.TemporaryDirectory() as folder:
            intervals["mnar"].append(by_mnar(arguments.mnar, y, p, labelled, audited, folder))
        intervals["ppi_py"].append(by_ppi(y, p, audited))
        intervals["sample alone"].append(alone(y, audited))
        truth.append(SHARE)
    found = {}
    for name, ends in intervals.items():
        ends = np.array(ends)
        covered = (ends[:, 0] <= truth) & (np.array(truth) <= ends[:, 1])
        found[name] = {"covered": float(covered.mean()), "mean_width": float((ends[:, 1] - ends[:, 0]).mean())}
    versions = {"ppi_python": "0.2.3", "numpy": np.__version__}
    print(json.dumps({"draws": arguments.draws, "rows": N, "audited": AUDITED, "versions": versions, "found": found}, indent=1))


main()
