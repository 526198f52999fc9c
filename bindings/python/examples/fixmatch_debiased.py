"""FixMatch, debiased, on digits of which some classes were labelled ten times as often as others.

    pip install 'mnar[torch]'
    python fixmatch_debiased.py            # about ten seconds on one core
    diff fixmatch.py fixmatch_debiased.py  # what it takes to debias it
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn

from mnar.torch import DebiasedLoss, Moments, Threshold, fixmatch

LAMBDA = 1.0
TAU = 0.95


def digits():
    """Images and labels of 1,297 digits, -1 where hidden, and 500 more with all their labels to test with."""
    images, truth = (torch.tensor(part) for part in load_digits(return_X_y=True))
    images = images.float().view(-1, 1, 8, 8) / 8 - 1
    order = torch.randperm(len(truth))
    images, truth = images[order], truth[order]
    phi = torch.logspace(-0.4, -1.4, 10)  # P(labelled | class), from 40% of the zeros to 4% of the nines
    y = torch.where(torch.rand(len(truth)) < phi[truth], truth, -1)
    return (images[500:], y[500:]), (images[:500], truth[:500])


def weak(x):
    """Every image shifted by up to a pixel."""
    down, right = (torch.randint(-1, 2, ()).item() for _ in range(2))
    return torch.roll(x, (down, right), (2, 3))


def strong(x):
    """The same, with noise and a square of 3 x 3 pixels erased."""
    x = weak(x) + 0.3 * torch.randn_like(x)
    top, left = (torch.randint(0, 6, ()).item() for _ in range(2))
    x[:, :, top : top + 3, left : left + 3] = 0
    return x


def train(seed=0, steps=1500):
    torch.manual_seed(seed)
    (x, y), (x_test, y_test) = digits()
    labelled, unlabelled = (y >= 0).nonzero().flatten(), (y < 0).nonzero().flatten()
    features = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    network = nn.Sequential(features, nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10))
    debiased = DebiasedLoss(Moments.from_labels(y), fixmatch, lam=LAMBDA, threshold=Threshold("phi", TAU))
    optimiser = torch.optim.Adam(network.parameters(), 1e-3)
    for _ in range(steps):
        rows_l = labelled[torch.randint(len(labelled), (32,))]
        rows_u = unlabelled[torch.randint(len(unlabelled), (96,))]
        rows = torch.cat([rows_l, rows_u])
        logits_weak, logits_strong = network(torch.cat([weak(x[rows]), strong(x[rows])])).chunk(2)
        loss = debiased(logits_weak, y[rows], strong=logits_strong)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    accuracy = (network(x_test).argmax(1) == y_test).double().mean().item()
    return accuracy


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=1500)
    options = parser.parse_args()
    print(f"test accuracy {train(options.seed, options.steps):.1%}")
