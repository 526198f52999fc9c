"""Rows with a known mechanism, for all tests."""

import numpy as np
import pytest


def masked(n=1200, k=3, seed=0, phi=None, signal=2.0):
    """Exact posteriors of the labelled rows, labels (-1 where hidden) and the truth, of Gaussian classes."""
    rng = np.random.default_rng(seed)
    phi = np.geomspace(0.6, 0.1, k) if phi is None else np.asarray(phi)
    truth = rng.integers(0, k, n)
    scores = signal * rng.standard_normal((n, k))
    scores[np.arange(n), truth] += signal**2
    labelled = rng.random(n) < phi[truth]
    p = np.exp(scores - scores.max(axis=1, keepdims=True)) * phi
    return p / p.sum(axis=1, keepdims=True), np.where(labelled, truth, -1), truth


@pytest.fixture
def rows():
    proba, y, _ = masked()
    return proba, y
