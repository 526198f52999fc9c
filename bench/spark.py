"""`mnar.spark` on two executors, beside one machine and beside a plain sum of Spark.

    pip install 'mnar[spark]' 'pandas<3'
    python bench/spark.py [--rows 5000000] [--mnar path/to/mnar] [--out results/spark.json]

Writes 16 Parquet files of 10 classes and estimates the mechanism with `local-cluster[2,1,1024]`: against `mnar estimate` on one
machine, with the partitions in another order, and with executors that are killed. Beside it run a plain sum of the same columns, and a
`mapInArrow` that only counts its rows, which is what it costs to hand them to Python. Times are those of this session, wall-clock and
CPU seconds of all processes below this one; sums and counts are run before and after the estimate.
"""

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import reduce
from pathlib import Path

import numpy as np

K, PARTS = 10, 16


def write(folder, rows):
    import pyarrow as pa
    import pyarrow.parquet as pq

    phi = np.geomspace(0.02, 0.3, K)
    for part in range(PARTS):
        n = rows // PARTS
        rng = np.random.default_rng(part)
        y = rng.integers(0, K, n)
        logits = 1.5 * rng.standard_normal((n, K))
        logits[np.arange(n), y] += 2.25
        p = np.exp(logits) * phi
        p /= p.sum(axis=1, keepdims=True)
        columns = {f"p_{k}": p[:, k] for k in range(K)}
        seen = rng.random(n) < phi[y]
        table = pa.table({**columns, "y": pa.array(y, mask=~seen)})
        pq.write_table(table, folder / f"{part:02}.parquet")


def children():
    """CPU seconds and names of this process and all below it."""
    stats = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            stats[int(entry.name)] = (int(fields[1]), sum(int(fields[i]) for i in (11, 12, 13, 14)))
    below = {os.getpid()}
    while True:
        more = {pid for pid, (parent, _) in stats.items() if parent in below} - below
        if not more:
            break
        below |= more
    tick = os.sysconf("SC_CLK_TCK")
    return below, sum(stats[pid][1] for pid in below if pid in stats) / tick


def executors():
    found = []
    for pid in children()[0]:
        try:
            if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
        except OSError:
            pass
    return found


def rounded(times):
    return [{"seconds": round(wall, 2), "cpu_seconds": round(cpu, 2)} for wall, cpu in times]


def medians(times):
    wall, cpu = np.median(np.array(times), axis=0)
    return {"seconds": round(float(wall), 2), "cpu_seconds": round(float(cpu), 2)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--mnar", default="mnar")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--out", default="results/spark.json")
    arguments = parser.parse_args()
    result = {"rows": arguments.rows, "classes": K, "partitions": PARTS, "executors": 2, "cores": os.cpu_count(), "machine": platform.machine()}
    with tempfile.TemporaryDirectory() as name:
        run(Path(name), arguments, result)
    print(json.dumps(result, indent=2))


def run(folder, arguments, result):
    write(folder, arguments.rows)
    start = time.time()
    words = [arguments.mnar, "estimate", str(folder), "--label", "y", "--interval", "information", "--format", "json", "--quiet"]
    one = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    result["one_machine_seconds"] = round(time.time() - start, 1)

    os.environ.update(
        SPARK_LOCAL_IP="127.0.0.1", SPARK_LOCAL_HOSTNAME="localhost", PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable
    )
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    import mnar
    from mnar import _walks
    from mnar.spark import LabelMechanism, mcar_test

    import warnings

    warnings.simplefilter("ignore", mnar.MnarWarning)
    session = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
    session = session.config("spark.task.maxFailures", "40").config("spark.deploy.maxExecutorRetries", "-1")
    # One partition per file, where Spark would make one per core of each.
    session = session.config("spark.sql.files.minPartitionNum", "1").config("spark.ui.showConsoleProgress", "false")
    spark = session.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")

    def frame(order):
        parts = [spark.read.parquet(str(folder / f"{part:02}.parquet")) for part in order]
        return reduce(lambda a, b: a.unionByName(b), parts)

    df = frame(range(PARTS))
    result["spark_partitions"] = df.rdd.getNumPartitions()

    walks = []
    plain = _walks.Rows.walk

    def timed(self, job, reader):
        wall, cpu = time.time(), children()[1]
        parts = plain(self, job, reader)
        needs = _walks._native.Accumulator(job, reader).needs
        kind = chr(job[5]) + (chr(job[5 + 1 + 8 + 8 + 8 * K]) if chr(job[5]) == "K" else "")
        walks.append((needs, kind, time.time() - wall, children()[1] - cpu, len(job)))
        return parts

    def sums():
        df.agg(*[F.sum(f"p_{k}") for k in range(K)], F.count("y")).collect()

    def hand_over():
        def count(batches):
            import pyarrow as pa

            yield pa.RecordBatch.from_pydict({"rows": [sum(batch.num_rows for batch in batches)]})

        assert sum(row["rows"] for row in df.mapInArrow(count, "rows long").collect()) == arguments.rows // PARTS * PARTS

    def seconds(work):
        wall, cpu = time.time(), children()[1]
        work()
        return time.time() - wall, children()[1] - cpu

    # The Java compiler of the executors is still at work in the first ones.
    for work in (sums, hand_over, sums):
        work()
    plain_sums, hand_overs = [], []

    def references():
        for _ in range(2):
            plain_sums.append(seconds(sums))
            hand_overs.append(seconds(hand_over))

    references()
    _walks.Rows.walk = timed
    fits = {}
    for name, cache in (("fit", False), ("cached_fit", True)):
        begun = len(walks)
        start, cpu = time.time(), children()[1]
        fit = fits[cache] = LabelMechanism().fit(df, "p_", "y", cache=cache)
        result[name] = {
            "seconds": round(time.time() - start, 1),
            "cpu_seconds": round(children()[1] - cpu, 1),
            "passes": fit.passes_,
            "largest_difference_of_phi": float(np.abs(fit.phi_ - one["phi"]).max()),
            "largest_difference_of_se": float(np.abs(fit.phi_se_ - one["phi_se"]).max()),
            "median_walk": medians([walk[2:4] for walk in walks[begun:] if walk[0] != "labelled"]),
            "median_walk_of_labelled_rows": medians([walk[2:4] for walk in walks[begun:] if walk[0] == "labelled"]),
            "walks": [
                {"rows": needs, "sums": kind, "seconds": round(w, 2), "cpu_seconds": round(c, 2), "bytes_sent": size}
                for needs, kind, w, c, size in walks[begun:]
            ],
        }
        print(name, result[name], flush=True)
    references()
    result["plain_sum"] = rounded(plain_sums)
    result["handed_over"] = rounded(hand_overs)
    result["load_average"] = round(os.getloadavg()[0], 1)
    result["median_plain_sum"], result["median_handed_over"] = medians(plain_sums), medians(hand_overs)
    Path(arguments.out).write_text(json.dumps(result, indent=2) + "\n")

    start = time.time()
    test = mcar_test(df, "p_", "y")
    result["test"] = {"seconds": round(time.time() - start, 1), "statistic": test.statistic, "df": test.df}
    turned = {cache: LabelMechanism().fit(frame(reversed(range(PARTS))), "p_", "y", cache=cache) for cache in fits}
    result["same_bits_in_reverse_order"] = all(turned[cache].phi_.tobytes() == fits[cache].phi_.tobytes() for cache in fits)
    Path(arguments.out).write_text(json.dumps(result, indent=2) + "\n")

    killed, done = [], threading.Event()

    def kill():
        while not done.wait(8) and len(killed) < arguments.kills:
            alive = executors()
            if alive:
                os.kill(alive[0], signal.SIGKILL)
                killed.append(len(walks))

    killer = threading.Thread(target=kill)
    killer.start()
    same = []
    while len(killed) < arguments.kills:
        for cache, fit in fits.items():
            same.append(LabelMechanism().fit(df, "p_", "y", cache=cache).phi_.tobytes() == fit.phi_.tobytes())
    done.set()
    killer.join()
    result["executors_killed"] = len(killed)
    result["fits_while_killing"] = len(same)
    result["same_bits_after_kills"] = all(same)
    Path(arguments.out).write_text(json.dumps(result, indent=2) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
