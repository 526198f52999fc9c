"""Streamed Parquet: `mnar estimate --stream`, also with `--weights`, `mnar test --stream`, `mnar evaluate --stream` and `mnar.arrow` beside
DuckDB's sum of the same columns.

    pip install duckdb pyarrow mnar
    python bench/stream.py [--mnar path/to/mnar] [--rows 100000 1000000 10000000] [--turns 3] [--out results/stream.json]

Wall-clock and CPU seconds, and the largest resident memory, of a process each. With several turns, the median by CPU seconds. With
`--growth target/release/examples/growth`, also rows that are generated in every pass, up to 10^8 (`crates/mnar/examples/growth.rs`);
`--rows` without numbers measures these alone. What was measured before and is not measured now stays in the file.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

K = 10


def write(path, rows):
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    phi = np.geomspace(0.02, 0.3, K)
    schema = pa.schema([*[(f"p_{k}", pa.float64()) for k in range(K)], ("y", pa.int64())])
    with pq.ParquetWriter(path, schema) as file:
        for part, start in enumerate(range(0, rows, 500_000)):
            n = min(500_000, rows - start)
            rng = np.random.default_rng(part)
            y = rng.integers(0, K, n)
            logits = 1.5 * rng.standard_normal((n, K))
            logits[np.arange(n), y] += 2.25
            p = np.exp(logits) * phi
            p /= p.sum(axis=1, keepdims=True)
            seen = rng.random(n) < phi[y]
            file.write_table(pa.table({**{f"p_{k}": p[:, k] for k in range(K)}, "y": pa.array(y, mask=~seen)}))


def measured(words):
    """Seconds, CPU seconds and megabytes of a process."""
    start = time.time()
    pid = os.posix_spawnp(words[0], words, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, used = os.wait4(pid, 0)
    found = {"seconds": time.time() - start, "cpu_seconds": used.ru_utime + used.ru_stime, "megabytes": used.ru_maxrss / 1024}
    return {name: round(value, 2) for name, value in found.items()} if status == 0 else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mnar", default="mnar")
    parser.add_argument("--rows", type=int, nargs="*", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--out", default="results/stream.json")
    parser.add_argument("--turns", type=int, default=1, help="how often each is run, taking turns")
    parser.add_argument("--growth", help="the built example `growth`")
    parser.add_argument("--generated", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000, 100_000_000])
    parser.add_argument("--write", help="only write a table, for the benchmark itself")
    arguments = parser.parse_args()
    if arguments.write:
        return write(arguments.write, arguments.rows[0])
    sums = ", ".join(f"sum(p_{k})" for k in range(K))
    result = json.loads(Path(arguments.out).read_text()) if Path(arguments.out).exists() else {}
    result = {"classes": K, "runs": [], **result, "cores": os.cpu_count()}
    for rows in arguments.rows:
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "p.parquet")
            # In a process of its own: what this one takes would count as the memory of all that it starts.
            subprocess.run([sys.executable, __file__, "--write", path, "--rows", str(rows)], check=True)
            duckdb = f"import duckdb; duckdb.sql(\"select {sums}, count(y) from '{path}'\").fetchall()"
            arrow = (
                "import sys, warnings; warnings.simplefilter('ignore')\nfrom mnar.arrow import {}\n"
                f"r = {{}}('{path}', 'p_', 'y')"
            )
            commands = {
                "duckdb_sum": [sys.executable, "-c", duckdb],
                "mnar_estimate_stream": [arguments.mnar, "estimate", path, "--label", "y", "--stream", "--quiet"],
                "mnar_estimate_stream_weights": [
                    arguments.mnar, "estimate", path, "--label", "y", "--stream", "--quiet", "--weights", str(Path(folder) / "w.parquet")
                ],
                "mnar_test_stream": [arguments.mnar, "test", path, "--label", "y", "--stream", "--quiet"],
                "mnar_evaluate_stream": [arguments.mnar, "evaluate", path, "--label", "y", "--stream", "--quiet"],
                "mnar_arrow_fit": [sys.executable, "-c", arrow.format("LabelMechanism", "LabelMechanism().fit")],
                "mnar_arrow_test": [sys.executable, "-c", arrow.format("mcar_test", "mcar_test")],
            }
            run = next((run for run in result["runs"] if run["rows"] == rows), {"rows": rows})
            run["megabytes_of_file"] = round(os.path.getsize(path) / 1e6, 1)
            turns = {name: [] for name in commands}
            for _ in range(arguments.turns):
                for name, words in commands.items():
                    turns[name].append(measured(words))
                    print(rows, name, turns[name][-1], flush=True)
            for name, found in turns.items():
                found = sorted(filter(None, found), key=lambda one: one["cpu_seconds"])
                if found:
                    run[name] = found[len(found) // 2]
            result["runs"] = sorted([other for other in result["runs"] if other["rows"] != rows] + [run], key=lambda run: run["rows"])
            Path(arguments.out).write_text(json.dumps(result, indent=2) + "\n")
    for rows in arguments.generated if arguments.growth else []:
        found = json.loads(subprocess.run([arguments.growth, str(rows)], check=True, capture_output=True, text=True).stdout)
        print(found, flush=True)
        others = [other for other in result.get("generated", []) if other["rows"] != rows]
        result["generated"] = sorted([*others, found], key=lambda run: run["rows"])
        Path(arguments.out).write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
