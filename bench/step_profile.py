"""Shows where the time of a training step goes, using perf: with burn's own operations, and with ours.

    cargo build --release -p mnar-train --example step
    python bench/step_profile.py target/release/examples/step     # -> results/step_profile.json

The script samples both threads while the `step` example trains, and assigns every sample to the first part whose name
is on its stack. Waiting threads are not sampled, so the shares are shares of the work done. It needs Linux and `perf`.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Small networks take many steps, so that there are a few thousand samples.
NETWORKS = {"mlp": 400, "mnist": 60, "medmnist": 15, "wrn": 3, "cnn3d": 15}
PARTS = [
    ("fresh memory (page faults)", r"exc_page_fault|clear_page|do_anonymous_page"),
    ("convolution", r"mnar_kernels::conv|burn_flex::ops::conv|layers::conv::|conv3d|conv2d"),
    ("batch norm", r"mnar_kernels::norm|layers::norm|Normalise|BatchNorm"),
    ("pooling", r"mnar_kernels::pool|layers::pool|max_dim|mean_dim"),
    ("fully connected", r"mnar_kernels::dense|layers::dense|matmul|linear"),
    ("optimiser", r"optimiser"),
    ("sums of channels", r"mnar_kernels::channels"),
    ("rayon and the scheduler", r"rayon_core|crossbeam|schedule|futex"),
]


def samples(program, network, steps, kernels):
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "perf.data"
        record = ["perf", "record", "-q", "-F", "300", "--call-graph", "dwarf,8192", "-o", str(data), program]
        environment = {**os.environ, "MNAR_KERNELS": kernels, "RAYON_NUM_THREADS": "2"}
        answer = subprocess.run(
            record, input=f"{network} {steps}\n", env=environment, check=True, capture_output=True, text=True
        )
        milliseconds = float(answer.stdout.split()[0]) * 1e3
        script = ["perf", "script", "-i", str(data), "-F", "comm,ip,sym"]
        stacks = subprocess.run(script, check=True, capture_output=True, text=True).stdout.split("\n\n")
    return milliseconds, [stack for stack in stacks if stack.strip()]


def shares(stacks):
    counts = Counter()
    for stack in stacks:
        # The initial weights and the batch are made before the first step.
        if "Bench::new" in stack or "Architecture::build" in stack:
            continue
        counts[next((name for name, pattern in PARTS if re.search(pattern, stack)), "all else")] += 1
    total = sum(counts.values())
    return {name: round(counts[name] / total, 4) for name, _ in [*PARTS, ("all else", "")]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="a built `step` example")
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--json", type=Path, default=ROOT / "results" / "step_profile.json")
    o = parser.parse_args()
    result = {}
    for network in o.networks.split(","):
        result[network] = {}
        for name, kernels in [("burn", "burn"), ("ours", "")]:
            steps = NETWORKS[network] if name == "ours" else max(2, NETWORKS[network] // 4)
            milliseconds, stacks = samples(o.program, network, steps, kernels)
            part = shares(stacks)
            result[network][name] = {"milliseconds": round(milliseconds, 2), "samples": len(stacks), "shares": part}
            shown = ", ".join(f"{name} {100 * share:.0f}%" for name, share in part.items() if share >= 0.01)
            print(f"{network:9} {name:5} {milliseconds:9.1f} ms  {shown}", flush=True)
    part = o.json.with_name(o.json.name + ".tmp")
    part.write_text(json.dumps(result, indent=1) + "\n")
    os.replace(part, o.json)


if __name__ == "__main__":
    sys.exit(main())
