"""A mechanism by class and columns: logit P(labelled | y, z) = a_y + b'z, independent of the Rust code.

The penalised likelihood of r given x is maximised by scipy from several starts, with numerical gradients; standard errors of
the shares come from numerical derivatives of the estimate's own estimating equations. Run `python reference/mechanism.py`
to write `golden/mechanism.json`.
"""

import json
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

CLASS_SPREAD, TERM_SPREAD = 5.0, 2.0


def draw(seed, n, k, sites, numeric):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    x = rng.normal(size=(n, 2)) + 1.6 * np.c_[np.cos(2 * np.pi * y / k), np.sin(2 * np.pi * y / k)]
    site = rng.integers(0, sites, n) if sites else None
    age = 40 + 12 * rng.normal(size=n) + 3 * x[:, 0] if numeric else None
    logit = -1.2 + 0.9 * y
    if site is not None:
        logit = logit + np.linspace(1.2, -0.8, sites)[site]
    if age is not None:
        logit = logit + 0.8 * (age - 40) / 12
    r = rng.random(n) < 1 / (1 + np.exp(-logit))
    # A labelled posterior: the population's, tilted towards classes that are labelled often; need not be exact.
    centre = 1.6 * np.c_[np.cos(2 * np.pi * np.arange(k) / k), np.sin(2 * np.pi * np.arange(k) / k)]
    scores = -0.5 * ((x[:, None, :] - centre) ** 2).sum(2) + 0.6 * np.arange(k)
    s = np.exp(scores - scores.max(1, keepdims=True))
    s = np.round(s / s.sum(1, keepdims=True), 6)
    s /= s.sum(1, keepdims=True)
    return y, r, s, site, age


def design(site, sites, age):
    terms = []
    if site is not None:
        terms += [(site == level).astype(float) for level in range(sites)]
    if age is not None:
        terms.append(np.clip((age - age.mean()) / age.std(), -4, 4))
    return np.array(terms).T if terms else np.zeros((0, 0))


def fit(y, r, s, z, k):
    n = len(r)
    centre = np.log(r.sum() / (n - r.sum()))
    weight = np.r_[np.full(k, CLASS_SPREAD**-2.0), np.full(z.shape[1], TERM_SPREAD**-2.0)]
    middle = np.r_[np.full(k, centre), np.zeros(z.shape[1])]

    def loss(theta):
        log_odds = np.log(s @ np.exp(-theta[:k])) - z @ theta[k:]
        return np.logaddexp(0, log_odds).sum() - log_odds[~r].sum() + 0.5 * (weight * (theta - middle) ** 2).sum()

    best = None
    for start in (middle, middle + 0.5, np.r_[np.linspace(-1, 1, k), np.zeros(z.shape[1])]):
        found = minimize(loss, start, method="BFGS", options={"gtol": 1e-7})
        found = minimize(loss, found.x, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 40000, "maxfev": 40000})
        if best is None or found.fun < best.fun:
            best = found
    return best.x


def shares(theta, y, r, s, k, weights):
    t = s * np.exp(-theta[:k])
    t /= t.sum(1, keepdims=True)
    labels = np.eye(k)[y] * r[:, None]
    return (weights[:, None] * (labels + t * ~r[:, None])).sum(0) / weights.sum()


def main():
    cases = []
    for seed, n, k, sites, numeric in [(1, 400, 2, 3, False), (2, 500, 3, 0, True), (3, 600, 3, 4, True)]:
        y, r, s, site, age = draw(seed, n, k, sites, numeric)
        z = design(site, sites, age)
        theta = fit(y, r, s, z, k)
        prevalence = shares(theta, y, r, s, k, np.ones(n))
        counts = np.bincount(y[r], minlength=k)
        cases.append(
            {
                "classes": k,
                "labels": [int(label) if seen else None for label, seen in zip(y, r)],
                "posteriors": s.tolist(),
                "site": None if site is None else [f"s{level}" for level in site],
                "age": None if age is None else age.tolist(),
                "class_effects": theta[:k].tolist(),
                "term_effects": theta[k:].tolist(),
                "prevalence": prevalence.tolist(),
                "phi": (counts / n / prevalence).tolist(),
            }
        )
    path = Path(__file__).parent / "golden" / "mechanism.json"
    path.write_text(json.dumps(cases) + "\n")


if __name__ == "__main__":
    main()
