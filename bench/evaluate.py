"""Times `mnar evaluate` (crates/mnar/examples/bench_evaluate.rs) beside scikit-learn's metrics on a table in memory.

    cargo build --release -p mnar --example bench_evaluate
    python bench/evaluate.py target/release/examples/bench_evaluate --rows 1000000 --classes 10
"""

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn import metrics as sk


def scikit_learn(y, p):
    """The same metrics over fully labelled rows."""
    start = time.perf_counter()
    d, k = p.argmax(1), p.shape[1]
    sk.accuracy_score(y, d)
    sk.balanced_accuracy_score(y, d)
    sk.confusion_matrix(y, d)
    sk.precision_recall_fscore_support(y, d)
    sk.log_loss(y, p)
    sk.brier_score_loss(y, p)
    for j in range(k):
        sk.roc_auc_score(y == j, p[:, j])
        sk.average_precision_score(y == j, p[:, j])
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--replicates", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    n, k = options.rows, options.classes
    y = rng.integers(0, k, n)
    z = rng.standard_normal((n, k)) + 2.0 * np.eye(k)[y]
    p = np.exp(z - z.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    seen = rng.random(n) < np.linspace(0.05, 0.4, k)[y]
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / name) for name in ("p.npy", "y.npy", "all.npy")]
        np.save(paths[0], p)
        np.save(paths[1], np.where(seen, y, -1).astype(np.int32))
        np.save(paths[2], y.astype(np.int32))
        result = {"rows": n, "classes": k, "scikit_learn_seconds": scikit_learn(y, p)}
        for name, path in (("missing", paths[1]), ("complete", paths[2])):
            command = [options.program, paths[0], path, str(options.replicates)]
            result[name] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
