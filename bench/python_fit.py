"""Compares `mnar.LabelMechanism.fit` with QuaPy's EMQ on the same arrays, in one run.

    pip install -r bench/requirements.txt, and a release wheel of bindings/python
    python bench/python_fit.py           # 1,000,000 rows x 10 classes -> results/python_fit.json

`fit` takes the labels and probabilities of all rows, as a user has them. QuaPy's EM takes the probabilities of the
unlabelled rows alone, and runs until its shares are within 1e-8 of the optimum. The cost of the binding is the time of
`fit` minus the time spent in the Rust core, as a share of the latter. Repeats are interleaved; medians are reported.
"""

import argparse
import json
import os
import platform
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import quapy as qp
from emq import epsilon_for, quapy_run, reference, write

import mnar

OUTPUT = Path(__file__).resolve().parent.parent / "results" / "python_fit.json"


def ours(p, y, **settings):
    start = time.perf_counter()
    mechanism = mnar.LabelMechanism(**settings).fit(p, y)
    return time.perf_counter() - start, mechanism


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    with tempfile.TemporaryDirectory() as folder:
        paths = write(Path(folder), args.rows * 10 // 11, args.classes, 1.5, 1)
        p, y = (np.load(path) for path in paths)
    unlabelled = np.ascontiguousarray(p[y < 0])
    counts = np.bincount(y[y >= 0], minlength=args.classes)
    pi = counts / counts.sum()
    optimum, _ = reference(unlabelled, pi)
    epsilon, _ = epsilon_for(unlabelled, pi, optimum, 100_000)

    runs = {"label shift alone": {"calibrate": "none", "interval": "information"}, "default settings": {}}
    seconds = {name: [] for name in runs}
    overhead = {name: [] for name in runs}
    quapy = []
    for _ in range(args.repeats):
        quapy.append(quapy_run(unlabelled, pi, epsilon, 100_000)["seconds"])
        for name, settings in runs.items():
            total, mechanism = ours(p, y, **settings)
            seconds[name].append(total)
            overhead[name].append((total - mechanism._seconds) / mechanism._seconds)
            if name == "label shift alone":
                gap = np.abs(mechanism.unlabelled_shares_ - optimum).max()
                assert gap < 1e-8, gap
    result = {
        "rows": len(p),
        "classes": args.classes,
        "machine": {
            "cpus": os.cpu_count(),
            "platform": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
            "quapy": qp.__version__,
        },
        "quapy_seconds": float(np.median(quapy)),
        "fit": {
            name: {
                "seconds": float(np.median(seconds[name])),
                "times_faster_than_quapy": float(np.median(quapy) / np.median(seconds[name])),
                "overhead_of_the_binding": float(np.median(overhead[name])),
            }
            for name in runs
        },
    }
    args.output.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
