"""Compares the label-shift estimators of QuaPy (EMQ) and mnar in one run, on the same machine and data.

    pip install -r bench/requirements.txt
    python bench/emq.py                  # 1,000,000 unlabelled rows x 10 classes, 100,000 labelled rows
    python bench/emq.py --skip-rust      # the Python half alone

Both sides start from posteriors in memory; reading files is not timed. QuaPy runs with its defaults, and with the
largest epsilon at which its shares are within 1e-8 of a reference optimum (computed here by Newton's method and
checked by its first-order residual). Repeats are interleaved, and the minimum is reported. The Rust program is also
run on 10^5, 10^6 and 10^7 unlabelled rows, with one labelled row in eleven, as in the comparison.
"""

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import quapy as qp
from quapy.method.aggregative import EMQ

ROOT = Path(__file__).resolve().parent.parent
BUILD = "cargo build --release -q -p mnar --example bench_label_shift"
RUN = "cargo run --release -q -p mnar --example bench_label_shift --"
AGREEMENT = 1e-8


def shares(k):
    labelled = np.geomspace(1.0, 0.25, k)
    unlabelled = np.geomspace(0.3, 1.0, k)
    return labelled / labelled.sum(), unlabelled / unlabelled.sum()


def write(folder, unlabelled, k, signal, seed):
    """Writes posteriors and labels as .npy in blocks: rows in random order, one in eleven labelled."""
    posteriors, labels = folder / f"posteriors_{unlabelled}.npy", folder / f"labels_{unlabelled}.npy"
    n = unlabelled + unlabelled // 10
    rng = np.random.default_rng(seed)
    pi, q = shares(k)
    p = np.lib.format.open_memmap(posteriors, mode="w+", dtype=np.float64, shape=(n, k))
    y = np.lib.format.open_memmap(labels, mode="w+", dtype=np.int32, shape=(n,))
    seen_all = rng.permutation(n) < unlabelled // 10
    for a in range(0, n, 200_000):
        b = min(n, a + 200_000)
        seen = seen_all[a:b]
        truth = np.where(seen, rng.choice(k, size=b - a, p=pi), rng.choice(k, size=b - a, p=q))
        # One Gaussian per class at distance `signal`: this is the exact posterior of a labelled row.
        z = signal * rng.standard_normal((b - a, k)) + np.log(pi)
        z[np.arange(b - a), truth] += signal**2
        z -= z.max(axis=1, keepdims=True)
        np.exp(z, out=z)
        p[a:b] = z / z.sum(axis=1, keepdims=True)
        y[a:b] = np.where(seen, truth, -1)
    p.flush()
    y.flush()
    return posteriors, labels


def reference(s, pi):
    """The optimum of the label-shift likelihood as shares v = pi * w, by damped Newton steps, and its residual."""
    q = s / pi
    n = len(q)
    v = pi.copy()
    for _ in range(200):
        m = q @ v
        g = q.T @ (1 / m) / n - 1
        z = q / m[:, None]
        step = np.linalg.solve(z.T @ z / n, g)
        t = 1.0
        while np.any(v + t * step <= 0):
            t /= 2
        while np.log(q @ (v + t * step)).mean() - (v + t * step).sum() < np.log(m).mean() - v.sum() - 1e-13:
            t /= 2
        v = v + t * step
        if np.max(np.abs(step)) < 1e-13:
            break
    residual = np.max(np.abs(q.T @ (1 / (q @ v)) / n - 1))
    assert residual < 1e-11 and abs(v.sum() - 1) < 1e-12, residual
    return v, float(residual)


class Watch:
    """Counts QuaPy's iterations through the error function that it calls once per iteration (from the second on)."""

    def __init__(self, stop=None):
        self.stop, self.calls, self.last = stop, 0, None

    def __enter__(self):
        self.original = qp.error.mae

        def mae(now, before):
            self.calls += 1
            self.last = self.original(now, before)
            if self.stop is not None and self.stop(now):
                return 0.0
            return self.last

        qp.error.mae = mae
        return self

    def __exit__(self, *_):
        qp.error.mae = self.original

    @property
    def iterations(self):
        return self.calls + 1


def epsilon_for(s, pi, optimum, limit):
    """The largest epsilon at which QuaPy's shares come within AGREEMENT of the optimum."""
    EMQ.MAX_ITER = limit
    with Watch(stop=lambda now: np.max(np.abs(now - optimum)) <= AGREEMENT) as watch:
        EMQ.EM(pi, s, 5e-324)
    return float(np.nextafter(watch.last, np.inf)), watch.iterations


def quapy_run(s, pi, epsilon, limit):
    EMQ.MAX_ITER = limit
    with Watch() as watch:
        start = time.perf_counter()
        q, _ = EMQ.EM(pi, s, epsilon)
        seconds = time.perf_counter() - start
    return {"seconds": seconds, "iterations": watch.iterations, "shares": q}


def rust_run(command, posteriors, labels):
    out = subprocess.run(
        shlex.split(command) + [str(posteriors), str(labels)], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(out.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unlabelled", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--signal", type=float, default=1.5, help="distance of the classes in standard deviations")
    parser.add_argument("--sizes", default="100000,1000000,10000000", help="unlabelled rows of the scaling runs")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=int, default=100_000, help="QuaPy's MAX_ITER in the tight run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build", default=BUILD)
    parser.add_argument("--rust", default=RUN, help="command that takes POSTERIORS.npy LABELS.npy and prints JSON")
    parser.add_argument("--skip-rust", action="store_true")
    parser.add_argument("--folder", type=Path, help="keep the data here; otherwise a temporary folder")
    parser.add_argument("--json", type=Path, help="also write the result to this file")
    o = parser.parse_args()
    warnings.filterwarnings("ignore", message="the method has reached the maximum")

    rust = not o.skip_rust
    if rust and subprocess.run(shlex.split(o.build), cwd=ROOT).returncode != 0:
        print("the Rust program does not build: only the Python half is run", file=sys.stderr)
        rust = False

    default_epsilon, default_limit = EMQ.EPSILON, EMQ.MAX_ITER
    with tempfile.TemporaryDirectory() as temporary:
        folder = o.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        paths = write(folder, o.unlabelled, o.classes, o.signal, o.seed)
        p, y = (np.load(path) for path in paths)
        s = np.ascontiguousarray(p[y < 0])
        counts = np.bincount(y[y >= 0], minlength=o.classes)
        pi = counts / counts.sum()
        accuracy = float((p[y >= 0].argmax(axis=1) == y[y >= 0]).mean())
        n_l, n_u = int(counts.sum()), len(s)
        del p
        optimum, residual = reference(s, pi)
        epsilon, needed = epsilon_for(s, pi, optimum, o.limit)

        tight, default, ours = [], [], []
        for _ in range(o.repeats):
            tight.append(quapy_run(s, pi, epsilon, o.limit))
            if rust:
                ours.append(rust_run(o.rust, *paths))
            default.append(quapy_run(s, pi, default_epsilon, default_limit))
        assert tight[0]["iterations"] == needed

        def quapy_summary(runs, epsilon):
            return {
                "epsilon": epsilon,
                "seconds": min(r["seconds"] for r in runs),
                "all_seconds": [r["seconds"] for r in runs],
                "iterations": runs[0]["iterations"],
                "distance_from_optimum": float(np.max(np.abs(runs[0]["shares"] - optimum))),
            }

        result = {
            "machine": {
                "cpus": os.cpu_count(),
                "platform": f"{platform.system()} {platform.machine()}",
                "python": platform.python_version(),
                "numpy": np.__version__,
                "quapy": qp.__version__,
            },
            "data": {
                "unlabelled": n_u,
                "labelled": n_l,
                "classes": o.classes,
                "accuracy_on_labelled": accuracy,
                "reference_residual": residual,
                "reference_shares": optimum.tolist(),
            },
            "quapy_tight": quapy_summary(tight, epsilon),
            "quapy_default": quapy_summary(default, default_epsilon),
            "mnar": None,
            "scaling": None,
        }
        failed = False
        if rust:
            best = min(ours, key=lambda r: r["seconds_estimate"])
            v = pi * np.array(best["w"])
            gap = float(np.max(np.abs(v - optimum)))
            between = float(np.max(np.abs(v - tight[0]["shares"])))
            phi_gap = float(np.max(np.abs(np.array(best["phi"]) - 1 / (1 + n_u / n_l * optimum / pi))))
            failed = not (gap <= AGREEMENT and between <= 2 * AGREEMENT and phi_gap <= AGREEMENT)
            result["mnar"] = {
                "seconds": best["seconds_estimate"],
                "all_seconds": [r["seconds_estimate"] for r in ours],
                "iterations": best["iterations"],
                "passes": best["passes"],
                "stream_seconds": best["stream_seconds"],
                "threads": best.get("threads"),
                "distance_from_optimum": gap,
                "distance_from_quapy": between,
                "phi_distance_from_optimum": phi_gap,
                "agrees": not failed,
                "quapy_tight_over_mnar": result["quapy_tight"]["seconds"] / best["seconds_estimate"],
                "quapy_default_over_mnar": result["quapy_default"]["seconds"] / best["seconds_estimate"],
            }
            del s
            result["scaling"] = []
            for size in (int(v) for v in o.sizes.split(",") if v):
                files = paths if size == o.unlabelled else write(folder, size, o.classes, o.signal, o.seed)
                runs = [rust_run(o.rust, *files) for _ in range(o.repeats)]
                best = min(runs, key=lambda r: r["seconds_estimate"])
                result["scaling"].append(
                    {
                        "unlabelled": size,
                        "seconds": best["seconds_estimate"],
                        "passes": best["passes"],
                        "stream_seconds": best["stream_seconds"],
                        "nanoseconds_per_row": best["seconds_estimate"] / size * 1e9,
                        "nanoseconds_per_row_and_pass": best["seconds_estimate"] / size / best["passes"] * 1e9,
                    }
                )
                if size != o.unlabelled and o.folder is None:
                    for file in files:
                        file.unlink()

    print(json.dumps(result, indent=1))
    if o.json:
        o.json.write_text(json.dumps(result, indent=1) + "\n")
    print(f"\n{n_u:,} unlabelled x {o.classes}, {n_l:,} labelled, accuracy {accuracy:.3f}", file=sys.stderr)
    print(f"{'':16}{'seconds':>10}{'iterations':>12}{'max error':>12}{'ratio':>9}", file=sys.stderr)
    for name in ("quapy_tight", "quapy_default", "mnar"):
        row = result[name]
        if row is None:
            continue
        ratio = f"{row['seconds'] / result['mnar']['seconds']:9.1f}" if rust else f"{'-':>9}"
        print(
            f"{name:16}{row['seconds']:10.4f}{row['iterations']:12d}{row['distance_from_optimum']:12.1e}{ratio}",
            file=sys.stderr,
        )
    for row in result["scaling"] or []:
        print(
            f"mnar {row['unlabelled']:>11,}{row['seconds']:10.4f} s  {row['passes']} passes  "
            f"{row['nanoseconds_per_row']:.1f} ns a row  {row['nanoseconds_per_row_and_pass']:.2f} ns a row and pass",
            file=sys.stderr,
        )
    if failed:
        sys.exit("the optima do not agree")


if __name__ == "__main__":
    main()
