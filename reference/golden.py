"""Writes golden/<case>.json and golden/softmax_regression.json; with `--check`, compares instead of writing."""

import argparse
import json
import math
import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402

import cases  # noqa: E402
import estimators  # noqa: E402
import softmax_regression  # noqa: E402

FOLDER = Path(__file__).parent / "golden"


def build(case):
    given = cases.draw(case)
    for row in given["posteriors"]:
        assert abs(math.fsum(row) - 1) <= 1e-15
    outputs, certificates = estimators.expected(given)
    return {
        "name": case.name,
        "description": case.description,
        "seed": case.seed,
        "n": case.n,
        "k": len(case.prior),
        "posterior_kind": case.kind,
        "input": given,
        "expected": outputs,
        "certificates": certificates,
    }


def difference(a, b, path=""):
    """The largest relative difference between two trees of the same shape."""
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return max((difference(a[k], b[k], f"{path}.{k}") for k in a), default=(0.0, path))
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return max((difference(x, y, f"{path}[{i}]") for i, (x, y) in enumerate(zip(a, b))), default=(0.0, path))
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return abs(a - b) / max(1e-3, abs(a), abs(b)), path
    return (0.0 if a == b else math.inf), path


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the stored files, to 1e-9")
    parser.add_argument("--only", help="only the cases whose name holds this text")
    options = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    jobs = [(c.name, lambda c=c: build(c)) for c in cases.cases()]
    jobs.append(("softmax_regression", softmax_regression.build))
    failed = False
    for name, make in jobs:
        if options.only and options.only not in name:
            continue
        tree = make()
        path = FOLDER / f"{name}.json"
        if options.check:
            stored = json.loads(path.read_text())
            parts = [k for k in tree if k != "certificates"]
            worst, at = difference({k: tree[k] for k in parts}, {k: stored[k] for k in parts})
            failed |= not worst < 1e-9
            print(f"{name}: {worst:.1e} at {at}")
        else:
            path.write_text(json.dumps(tree, separators=(",", ":"), allow_nan=False) + "\n")
            print(f"{name}: {path.stat().st_size} bytes")
    sys.exit(failed)


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
