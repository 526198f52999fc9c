"""Trains MNIST S2 in PyTorch with `mnar.torch`, at the budget of our own experiment, and compares with its results.

    pip install 'mnar[torch]'                           # or from a clone: pip install './bindings/python[torch]'
    python bench/torch_mnist.py --data DIR              # DIR/mnist holds the idx files -> results/torch.json
    python bench/torch_mnist.py --data DIR --same-masks --seeds 3 --methods me --output results/torch_same_masks.json
    python bench/torch_mnist.py --docs                  # prints the table of docs/torch.md from results/torch.json

Runs that the output file already holds are not repeated.

Everything is as in research/reproduce/experiments/mnist-s2.toml by protocol *paper*: network, counts, batches, Adam with
a cosine schedule, averaged weights, pseudo-labels with thresholds by phi, the epoch by accuracy on 400 validation rows.
Masks, batches and initial weights are drawn by other generators, so that means over seeds can be compared, not single
runs. With `--same-masks`, the masks and the validation rows are those of our runs, seed by seed (bench/rust_draws.py).
"""

import argparse
import gzip
import json
import math
import platform
import statistics
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
LABELLED = [400, 310, 240, 186, 144, 111, 86, 67, 52, 40]
UNLABELLED = [400, 517, 667, 862, 1113, 1438, 1857, 2398, 3097, 4000]
BATCH_LABELLED, BATCH_UNLABELLED, RATE, AVERAGING, VALIDATION = 72, 400, 2e-3, 0.99, 400
METHODS = ("me", "meg", "pl")


def idx(folder, name):
    path = folder / f"{name}.gz"
    content = gzip.decompress(path.read_bytes()) if path.exists() else (folder / name).read_bytes()
    header = 4 + 4 * content[3]
    shape = np.frombuffer(content[4:header], ">i4")
    return np.frombuffer(content[header:], np.uint8).reshape(shape)


def part(folder, name):
    return idx(folder, f"{name}-images-idx3-ubyte").astype(np.float32), idx(folder, f"{name}-labels-idx1-ubyte")


def masked(images, classes, rng):
    """Rows of the training set with labels, -1 where hidden, and validation rows with the same class shares."""
    rows, y, left = [], [], []
    for k, (n_l, n_u) in enumerate(zip(LABELLED, UNLABELLED)):
        of_class = rng.permutation(np.flatnonzero(classes == k))
        rows += [of_class[: n_l + n_u]]
        y += [k] * n_l + [-1] * n_u
        share = (n_l + n_u) / (sum(LABELLED) + sum(UNLABELLED))
        left += [of_class[n_l + n_u :][: max(1, round(share * VALIDATION))]]
    rows, left = np.concatenate(rows), np.concatenate(left)
    return images[rows], np.array(y), images[left], classes[left]


def masked_as_in_rust(images, classes, draws):
    """The same with the rows that `research/reproduce` draws."""
    rows, y, left = [], [], []
    by_class = [draws.shuffled(np.flatnonzero(classes == k).tolist()) for k in range(10)]
    for k, (n_l, n_u) in enumerate(zip(LABELLED, UNLABELLED)):
        rows += by_class[k][: n_l + n_u]
        y += [k] * n_l + [-1] * n_u
        left += by_class[k][n_l + n_u :]
    pool, validation = np.array(draws.shuffled(left)), []
    for k in range(10):
        share = (LABELLED[k] + UNLABELLED[k]) / len(rows)
        validation += pool[classes[pool] == k][: max(1, round(share * VALIDATION))].tolist()
    return images[rows], np.array(y), images[validation], classes[validation]


class Walk:
    """Endless batches, each pass in a new order; a pass leaves no row out."""

    def __init__(self, rows, batch, rng):
        self.rows, self.batch, self.rng, self.queue = rows, batch, rng, np.empty(0, int)

    def next(self):
        while len(self.queue) < self.batch:
            self.queue = np.concatenate([self.queue, self.rng.permutation(self.rows)])
        taken, self.queue = self.queue[: self.batch], self.queue[self.batch :]
        return taken


def average(network, averaged, step):
    """An average over t steps cannot remember more than t steps: early averages follow the weights."""
    import torch

    decay = min(AVERAGING, step / (step + 10))
    with torch.no_grad():
        for ours, theirs in zip(averaged.parameters(), network.parameters()):
            ours.lerp_(theirs, 1 - decay)


def temperature(logits, classes):
    """The temperature of least log-loss, at least 1, with the prior that mnar-train has."""
    import torch
    import torch.nn.functional as F

    grid = torch.linspace(0, 2.5, 501, dtype=torch.float64)
    risks = [F.cross_entropy(logits / t.exp(), classes) + 2 * t * t / len(classes) for t in grid]
    return float(grid[int(torch.stack(risks).argmin())].exp())


def train(method, data, seed, epochs, same_masks):
    import torch
    import torch.nn.functional as F

    import mnar.torch as mt

    sys.path.insert(0, str(ROOT / "examples"))
    from rust_draws import Draws
    from torch_networks import build

    (x_all, y_all), (x_test, y_test) = data
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    found = masked_as_in_rust(x_all, y_all, Draws(seed)) if same_masks else masked(x_all, y_all, rng)
    x, y, x_val, y_val = found
    mean, sd = x.mean(), x.std()
    encode = lambda pixels: torch.tensor((pixels[:, None] - mean) / sd, dtype=torch.float32)  # noqa: E731
    x, x_val, x_test = encode(x), encode(x_val), encode(x_test)
    y, y_val, y_test = torch.tensor(y), torch.tensor(y_val).long(), torch.tensor(y_test).long()

    shape = {"image": {"depth": 1, "height": 28, "width": 28, "channels": 1}}
    network, averaged = (build({"name": "mnist-cnn"}, shape, 10) for _ in range(2))
    averaged.load_state_dict(network.state_dict())
    mechanisms = {"me": mt.Moments, "meg": mt.MomentsGradient}
    mechanism = mechanisms[method].from_labels(y) if method in mechanisms else None
    rule = "fixed" if mechanism is None else "phi"
    loss = mt.DebiasedLoss(mechanism, mt.pseudo_labels, threshold=mt.Threshold(rule, 0.95, 0.5))

    labelled = Walk(np.flatnonzero(y >= 0), BATCH_LABELLED, rng)
    unlabelled = Walk(np.flatnonzero(y < 0), BATCH_UNLABELLED, rng)
    per_epoch = len(labelled.rows) // BATCH_LABELLED
    steps = per_epoch * epochs
    optimiser = torch.optim.Adam(network.parameters(), RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda t: 0.5 * (1 + math.cos(math.pi * t / steps)))
    start, best = time.process_time(), (-1.0, 0, None)
    for step in range(1, steps + 1):
        rows = np.concatenate([labelled.next(), unlabelled.next()])
        optimiser.zero_grad()
        loss(network(x[rows]), y[rows]).backward()
        optimiser.step()
        schedule.step()
        average(network, averaged, step)
        if step % per_epoch == 0:
            with torch.no_grad():
                accuracy = float((averaged(x_val).argmax(1) == y_val).double().mean())
            if accuracy >= best[0]:
                state = {name: tensor.clone() for name, tensor in averaged.state_dict().items()}
                best = accuracy, step // per_epoch, state
    seconds = time.process_time() - start  # of the processor, so that other work does not count
    averaged.load_state_dict(best[2])
    with torch.no_grad():
        logits = averaged(x_test).double()
        scale = temperature(averaged(x_val).double(), y_val)
    truth = np.array(LABELLED) / (np.array(LABELLED) + np.array(UNLABELLED))
    phi = np.full(10, sum(LABELLED) / len(y)) if mechanism is None else mechanism.phi.numpy()
    return {
        "method": method,
        "seed": seed,
        "accuracy": float((logits.argmax(1) == y_test).double().mean()),
        "log_loss": float(F.cross_entropy(logits / scale, y_test)),
        "phi": phi.tolist(),
        "phi_error": float(((phi - truth) ** 2).sum() / (truth**2).sum()),
        "chosen_epoch": best[1],
        "epochs": epochs,
        "seconds": seconds,
    }


def ours(method):
    folder = ROOT / "results" / "reproduce" / "mnist-s2" / "paper"
    return [json.loads(path.read_text()) for path in sorted(folder.glob(f"{method}-[0-9]*.json"))]


def mean_sd(runs, key):
    values = [run[key] for run in runs]
    return statistics.mean(values), statistics.stdev(values) if len(values) > 1 else 0.0


def summary(runs):
    """Both programs side by side, and by how many standard deviations of ours the means differ."""
    found = {}
    for method in METHODS:
        torch_runs, rust_runs = [run for run in runs if run["method"] == method], ours(method)
        if not torch_runs:
            continue
        found[method] = {"seeds": len(torch_runs), "seeds_rust": len(rust_runs)}
        for key in ("accuracy", "log_loss", "phi_error", "seconds"):
            (mean, sd), (rust, rust_sd) = mean_sd(torch_runs, key), mean_sd(rust_runs, key)
            found[method][key] = {"torch": mean, "torch_sd": sd, "rust": rust, "rust_sd": rust_sd}
        accuracy = found[method]["accuracy"]
        accuracy["gap_in_sd"] = abs(accuracy["torch"] - accuracy["rust"]) / accuracy["rust_sd"]
    return found


def docs(tree):
    print("| method | program | seeds | accuracy % | log-loss | phi error |\n|---|---|---|---|---|---|")
    for method, found in tree["summary"].items():
        for program, seeds in (("torch", found["seeds"]), ("rust", found["seeds_rust"])):
            of = lambda key, scale=1: (scale * found[key][program], scale * found[key][f"{program}_sd"])  # noqa: E731
            name = {"torch": "PyTorch, `mnar.torch`", "rust": "`mnar-train`"}[program]
            numbers = (*of("accuracy", 100), *of("log_loss"), *of("phi_error"))
            cells = "{:.2f} ±{:.2f} | {:.3f} ±{:.3f} | {:.4f} ±{:.4f}".format(*numbers)
            print(f"| {method} | {name} | {seeds} | {cells} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder that holds mnist/")
    parser.add_argument("--methods", default="me,meg,pl")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--same-masks", action="store_true", help="the masks of research/reproduce")
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "torch.json")
    parser.add_argument("--docs", action="store_true", help="print the table of docs/torch.md")
    options = parser.parse_args()
    if options.docs:
        docs(json.loads(options.output.read_text()))
        return
    import torch

    torch.set_num_threads(options.threads)
    folder = options.data / "mnist"
    data = [part(folder, "train"), part(folder, "t10k")]
    runs = json.loads(options.output.read_text())["runs"] if options.output.exists() else []
    for method in options.methods.split(","):
        for seed in range(options.seeds):
            if any((run["method"], run["seed"], run["epochs"]) == (method, seed, options.epochs) for run in runs):
                continue  # from an earlier call
            runs.append(train(method, data, seed, options.epochs, options.same_masks))
            print({key: value for key, value in runs[-1].items() if key != "phi"}, flush=True)
            tree = {
                "experiment": "mnist-s2",
                "protocol": "paper",
                "same_masks": options.same_masks,
                "torch": torch.__version__,
                "threads": options.threads,
                "machine": platform.machine(),
                "summary": summary(runs),
                "runs": runs,
            }
            options.output.write_text(json.dumps(tree, indent=2) + "\n")


if __name__ == "__main__":
    main()
