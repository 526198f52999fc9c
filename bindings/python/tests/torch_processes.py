"""What each process of `test_torch_distributed.py` does; in a module of its own, so that new processes can import it."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import mnar.torch as mt

CLASSES, WIDTH = 3, 5
#: The rows of each process at each step: different numbers, and once no labelled or no unlabelled ones.
PARTS = [[(6, 9), (4, 3)], [(0, 8), (7, 5)], [(5, 0), (5, 12)], [(6, 9), (4, 3)]]


def data_set():
    """Labels of all rows of the data set: three classes, labelled 60%, 30% and 20% of the time."""
    generator = torch.Generator().manual_seed(1)
    truth = torch.randint(CLASSES, (400,), generator=generator)
    labelled = torch.rand(400, generator=generator) < torch.tensor([0.6, 0.3, 0.2])[truth]
    return torch.where(labelled, truth, -1)


def batch(step, process):
    """Two views and labels of the rows of a process. The labels are learnt already, so that MEg follows its gradient."""
    generator = torch.Generator().manual_seed(10 * step + process)
    n_l, n_u = PARTS[step][process]
    y = torch.cat([torch.randint(CLASSES, (n_l,), generator=generator), torch.full((n_u,), -1)])
    x = torch.randn(2, n_l + n_u, WIDTH, dtype=torch.float64, generator=generator)
    x[0, y >= 0] += 8 * torch.eye(WIDTH, dtype=torch.float64)[y[y >= 0]]
    return x, y


def losses(y):
    threshold = mt.Threshold("phi", 0.6, 0.5)
    return {
        "classical": mt.DebiasedLoss(None, mt.fixmatch, threshold=mt.Threshold(tau=0.6)),
        "given": mt.DebiasedLoss(mt.Given.from_labels(y, phi=[0.6, 0.3, 0.2]), mt.fixmatch, threshold=threshold),
        "me": mt.DebiasedLoss(mt.Moments.from_labels(y), mt.fixmatch, threshold=threshold),
        "meg": mt.DebiasedLoss(mt.MomentsGradient.from_labels(y), mt.fixmatch, threshold=threshold),
        "cadr": mt.DebiasedLoss(mt.ClassShares.from_labels(y), mt.entropy, lam=0.5, clip=2.0),
        "mle": mt.Likelihood.from_labels(y),
    }


def train(name, loss, parts, y, own, distributed):
    """Takes a step on every batch; `parts` are the processes whose rows this one has. Returns all that could differ."""
    network = torch.nn.Linear(WIDTH, CLASSES, dtype=torch.float64)
    with torch.no_grad():
        network.weight.copy_(torch.eye(CLASSES, WIDTH, dtype=torch.float64))
        network.bias.zero_()
    model = DistributedDataParallel(network) if distributed else network
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    seen = []
    for step in range(len(PARTS)):
        rows = [batch(step, part) for part in parts]
        (weak, strong), labels = torch.cat([x for x, _ in rows], 1), torch.cat([y for _, y in rows])
        logits = model(torch.cat([weak, strong]))
        weak, strong = logits[: len(labels)], logits[len(labels) :]
        risk = loss(weak, labels) if name == "mle" else loss(weak, labels, strong=strong)
        optimiser.zero_grad()
        risk.backward()
        seen += [risk.detach(), *(p.grad.clone() for p in network.parameters())]
        optimiser.step()
        if name == "mle":
            x = torch.randn(len(y), WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
            loss.refresh(torch.softmax(network(x[own]), 1), y[own])
    return [*seen, *network.parameters(), *loss.state_dict().values()]


def all_losses(process, processes):
    """One process, or one of several: what `train` returns for every loss."""
    y = data_set()
    own = slice(process, None, processes)  # the labels of the data set are split over processes, too
    parts = [process] if processes > 1 else [0, 1]
    return {
        name: [value.detach().double() for value in train(name, loss, parts, y, own, processes > 1)]
        for name, loss in losses(y[own]).items()
    }


def worker(process, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=process, world_size=2)
    torch.save(all_losses(process, 2), f"{folder}/{process}.pt")
    dist.destroy_process_group()
