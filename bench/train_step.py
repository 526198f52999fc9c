"""Compares training steps of mnar and PyTorch on one machine, in one run, taking turns.

    pip install numpy torch==2.15.0
    python bench/train_step.py                          # all networks -> results/train_step.json
    python bench/train_step.py --networks mlp,wrn --rounds 3
    python bench/train_step.py --ours PATH              # a built `step` example; otherwise cargo builds it

A step is forward, mean cross-entropy, backward and Adam, on one fixed batch in memory, in f32, with two threads on
both sides. Each side runs in a separate process for every network, so peak memory is that of one network; PyTorch's
memory before its first step, nearly all of it from the import, is given beside it. In each round, our program, PyTorch
with its default layout and PyTorch with channels last take a few steps each. The fastest step of all rounds counts,
and the better of PyTorch's layouts. PyTorch's Adam is the fastest of the default, `foreach` and `fused`, timed
separately before the first step.
"""

import argparse
import contextlib
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ["--release", "-q", "-p", "mnar-train", "--example", "step"]
THREADS = 2
LAYOUTS = ("contiguous", "channels_last")


@dataclass
class Case:
    architecture: dict
    input: dict
    batch: int
    classes: int
    parameters: int  # counted by hand from crates/mnar-train/src/model
    steps: int  # per turn

    def layouts(self):
        return LAYOUTS if "image" in self.input else LAYOUTS[:1]


def image(*shape):
    return {"image": dict(zip(("depth", "height", "width", "channels"), shape))}


CASES = {
    # 784·10 + 10
    "linear": Case({"name": "linear"}, {"row": 784}, 256, 10, 7_850, 100),
    # 784·256 + 256, 256·10 + 10
    "mlp": Case({"name": "mlp", "hidden": [256]}, {"row": 784}, 256, 10, 203_530, 30),
    # Convolutions 156 + 2,416; 4·4·16 pixels: 30,840 + 10,164 + 850. A batch is 72 labelled rows and 400 others.
    "mnist": Case({"name": "mnist-cnn"}, image(1, 28, 28, 1), 472, 10, 44_426, 5),
    # 448 + 2,320 + 9,280 + 2·36,928; norms 448; 4·4·64 pixels: 131,200 + 16,512 + 903. 64 labelled rows, 128 others.
    "medmnist": Case({"name": "medmnist-cnn"}, image(1, 28, 28, 3), 192, 7, 234_967, 3),
    # Stem 432; groups 14,432 + 3·18,560, 57,536 + 3·73,984, 229,760 + 3·295,424; norm 256; head 1,290.
    "wrn": Case({"name": "wide-resnet", "depth": 28, "width": 2}, image(1, 32, 32, 3), 64, 10, 1_467_610, 1),
    # 448 + 13,856 + 55,360; norms 224; 3·3·3·64 voxels: 110,656 + 130
    "cnn3d": Case({"name": "cnn3d"}, image(28, 28, 28, 1), 16, 2, 180_674, 2),
}


def memory(key="VmHWM"):
    """Peak (VmHWM) or current (VmRSS) resident memory in MB, or 0 if the system does not report it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(key):
                return int(line.split()[1]) / 1024
    return 0.0


def fastest_adam(torch, network):
    """The fastest of PyTorch's three Adam implementations, on random gradients and with a learning rate of 0."""
    parameters = list(network.parameters())
    for p in parameters:
        p.grad = torch.randn_like(p)
    seconds = {}
    for name, options in {"default": {}, "foreach": {"foreach": True}, "fused": {"fused": True}}.items():
        adam = torch.optim.Adam(parameters, lr=0.0, **options)
        for _ in range(10):
            start = time.perf_counter()
            adam.step()
            seconds[name] = min(seconds.get(name, float("inf")), time.perf_counter() - start)
    best = min(seconds, key=seconds.get)
    return best, {} if best == "default" else {best: True}


def torch_child(name, layout):
    """Answers `NETWORK STEPS` as our program does, and adds its memory before the first step and the Adam used."""
    import torch
    import torch.nn.functional as F

    sys.path.insert(0, str(ROOT / "examples"))
    from torch_networks import build

    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    case = CASES[name]
    network = build(case.architecture, case.input, case.classes)
    count = sum(p.numel() for p in network.parameters())
    assert count == case.parameters, f"{name} has {count} parameters in PyTorch, {case.parameters} in mnar"
    if "row" in case.input:
        shape = (case.input["row"],)
    else:
        side = [case.input["image"][axis] for axis in ("depth", "height", "width")]
        shape = (case.input["image"]["channels"], *(side if side[0] > 1 else side[1:]))
    x, y = torch.rand(case.batch, *shape) - 0.5, torch.randint(case.classes, (case.batch,))
    if layout == "channels_last":
        form = torch.channels_last if len(shape) == 3 else torch.channels_last_3d
        network, x = network.to(memory_format=form), x.to(memory_format=form)
    which, options = fastest_adam(torch, network)
    adam = torch.optim.Adam(network.parameters(), lr=1e-3, **options)
    start_mb = memory("VmRSS")

    def step():
        start = time.perf_counter()
        adam.zero_grad(set_to_none=True)
        F.cross_entropy(network(x), y).backward()
        adam.step()
        return time.perf_counter() - start

    for line in sys.stdin:
        fastest = min(step() for _ in range(int(line.split()[1])))
        print(fastest, memory(), start_mb, which, flush=True)


def gemm_gflops():
    """PyTorch's fastest product of two 2048 × 2048 matrices: the best the machine can do."""
    import torch

    torch.set_num_threads(THREADS)
    a = torch.rand(2048, 2048)

    def seconds():
        start = time.perf_counter()
        a @ a
        return time.perf_counter() - start

    return round(2 * 2048**3 / min(seconds() for _ in range(9)) / 1e9, 1)


class Child:
    def __init__(self, command):
        threads = {"RAYON_NUM_THREADS": str(THREADS), "OMP_NUM_THREADS": str(THREADS)}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **threads}, **pipes)
        self.seconds, self.rest = [], []

    def ask(self, network, steps):
        self.process.stdin.write(f"{network} {steps}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if not answer:
            sys.exit(f"{self.process.args[0]} ended without an answer (status {self.process.wait()})")
        self.rest = answer[1:]
        return float(answer[0])

    def turn(self, network, steps):
        self.seconds.append(self.ask(network, steps))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


def measure(name, ours, rounds):
    case = CASES[name]
    with contextlib.ExitStack() as stack:
        commands = {layout: [sys.executable, __file__, "--torch", name, layout] for layout in case.layouts()}
        children = {key: stack.enter_context(Child(c)) for key, c in {"ours": ours, **commands}.items()}
        # The first steps allocate and choose kernels.
        for child in children.values():
            child.ask(name, 2)
        for _ in range(rounds):
            for child in children.values():
                child.turn(name, case.steps)
    figures = {}
    for key, child in children.items():
        figures[key] = {
            "milliseconds": round(min(child.seconds) * 1e3, 4),
            "milliseconds_of_rounds": [round(s * 1e3, 4) for s in child.seconds],
            "peak_mb": round(float(child.rest[0]), 1),
        }
        if key != "ours":
            figures[key] |= {"start_mb": round(float(child.rest[1]), 1), "adam": child.rest[2]}
    best = min(case.layouts(), key=lambda layout: figures[layout]["milliseconds"])
    return {
        "batch": case.batch,
        "parameters": case.parameters,
        "steps_a_round": case.steps,
        "ours": figures.pop("ours"),
        "pytorch": figures,
        "pytorch_best": best,
        "ours_over_pytorch": round(min(children["ours"].seconds) / min(children[best].seconds), 4),
    }


def row(name, figures):
    ours, best = figures["ours"], figures["pytorch"][figures["pytorch_best"]]
    which = f"{figures['pytorch_best']}, {best['adam']} Adam"
    return (
        f"{name:10}{ours['milliseconds']:>10.2f}{best['milliseconds']:>12.2f}  {which:<30}"
        f"{figures['ours_over_pytorch']:>7.2f}{ours['peak_mb']:>9.0f}{best['peak_mb']:>12.0f}{best['start_mb']:>10.0f}"
    )


def said(command):
    """What a program prints, or None if it cannot be run."""
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def processor():
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default=",".join(CASES), help="comma-separated, of " + ", ".join(CASES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ours", type=Path, help="a built `step` example of mnar-train")
    parser.add_argument("--json", type=Path, default=ROOT / "results" / "train_step.json")
    parser.add_argument("--torch", nargs=2, metavar=("NETWORK", "LAYOUT"), help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.torch:
        return torch_child(*o.torch)
    names = [name for name in o.networks.split(",") if name]
    unknown = [name for name in names if name not in CASES]
    if unknown or not names or o.rounds < 1:
        parser.error(f"no network called {', '.join(unknown)}" if unknown else "nothing to measure")

    from importlib.metadata import version

    result = {
        "machine": {
            "cpu": processor(),
            "cpus": os.cpu_count(),
            "threads": THREADS,
            "load_average_at_start": [round(load, 2) for load in os.getloadavg()],
            "platform": f"{platform.system()} {platform.machine()}",
            "gemm_gflops": gemm_gflops(),
        },
        "versions": {
            "mnar": said(["git", "describe", "--always", "--dirty"]) if not o.ours else "a program built before",
            "rustc": said(["rustc", "--version"]),
            "torch": version("torch"),
            "python": platform.python_version(),
        },
        "rounds": o.rounds,
        "networks": {},
    }
    ours = [str(o.ours.resolve())] if o.ours else ["cargo", "run", *EXAMPLE]
    if not o.ours and subprocess.run(["cargo", "build", *EXAMPLE], cwd=ROOT).returncode != 0:
        sys.exit("the example `step` does not build")

    if result["machine"]["load_average_at_start"][0] > 0.5:
        # At load 5 PyTorch's fastest step of a turn ranged from 0.36 to 9.9 s on cnn3d, ours from 0.48 to 0.57 s.
        print("warning: the machine is busy, the figures say little; run it again when it is idle", file=sys.stderr)
    print(f"a product of 2048 × 2048 matrices in PyTorch: {result['machine']['gemm_gflops']} GFLOP/s")
    load = " ".join(map(str, result["machine"]["load_average_at_start"]))
    print(f"{result['machine']['cpu']}, {THREADS} threads, PyTorch {version('torch')}; load average {load}\n")
    heads = f"{'network':10}{'ours ms':>10}{'PyTorch ms':>12}  {'as':<30}{'ratio':>7}"
    print(f"{heads}{'ours MB':>9}{'PyTorch MB':>12}{'at start':>10}")
    for name in names:
        result["networks"][name] = measure(name, ours, o.rounds)
        print(row(name, result["networks"][name]), flush=True)
    # Write the file completely or not at all.
    part = o.json.with_name(o.json.name + ".tmp")
    part.write_text(json.dumps(result, indent=1) + "\n")
    os.replace(part, o.json)


if __name__ == "__main__":
    main()
