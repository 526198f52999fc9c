"""Generic optimisation: a quasi-Newton start by scipy, refinement in extended precision, and certificates.

Every problem solved here is convex, so a point that meets the first-order conditions is the optimum. `Solution` holds
the size of their residuals, and the callers write it into the files.
"""

from dataclasses import dataclass

import numpy as np
from scipy import optimize

LONG = np.longdouble


@dataclass
class Problem:
    """A convex function of x. `value` and `gradient` take and return extended precision; `hessian` is float64.

    `value` is +inf outside the domain.
    """

    value: callable
    gradient: callable
    hessian: callable
    lower: np.ndarray
    upper: np.ndarray


@dataclass
class Solution:
    x: np.ndarray  # extended precision
    value: np.longdouble
    active: np.ndarray  # bool: on a bound
    kkt: float  # largest |gradient| over the free coordinates, times max(|x|, 1e-3)
    multiplier: float  # smallest absolute multiplier over the active coordinates (inf if there are none)
    condition: float  # of the Hessian over the free coordinates


def _start(problem, x0):
    """Runs L-BFGS-B slightly inside the bounds, so that logarithms stay finite."""
    lower = np.where(np.isfinite(problem.lower), problem.lower + 1e-9, problem.lower)
    upper = np.where(np.isfinite(problem.upper), problem.upper - 1e-9, problem.upper)

    def fun(x):
        v = problem.value(x.astype(LONG))
        if not np.isfinite(v):
            return 1e10, np.zeros_like(x)
        return float(v), problem.gradient(x.astype(LONG)).astype(float)

    result = optimize.minimize(
        fun,
        np.clip(np.asarray(x0, float), lower, upper),
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(lower, upper)),
        options={"maxiter": 5000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-10},
    )
    return result.x


def solve(problem, x0, warm=False, rounds=500):
    """Finds the minimum of a convex problem over its box, to about 1e-16 times the condition number."""
    x = np.asarray(x0, LONG) if warm else _start(problem, x0).astype(LONG)
    lower, upper = problem.lower.astype(LONG), problem.upper.astype(LONG)
    # A coordinate that starts next to a bound is set to it if the gradient points there and the value stays finite.
    g = problem.gradient(x)
    for j in np.argsort(-np.abs(g.astype(float))):
        for bound, sign in ((lower, 1), (upper, -1)):
            if np.isfinite(bound[j]) and abs(x[j] - bound[j]) < 1e-6 and sign * g[j] > 0:
                y = x.copy()
                y[j] = bound[j]
                if np.isfinite(problem.value(y)):
                    x = y
    value = problem.value(x)
    assert np.isfinite(value)
    small = 0
    for _ in range(rounds):
        g = problem.gradient(x)
        active = ((x <= lower) & (g > 0)) | ((x >= upper) & (g < 0))
        free = ~active
        if not free.any():
            break
        h = problem.hessian(x.astype(float))
        while free.any():
            # Symmetric diagonal scaling keeps the solve accurate when classes differ in size.
            hf = h[np.ix_(free, free)]
            d = 1.0 / np.sqrt(np.diag(hf))
            step = np.zeros_like(x)
            step[free] = -np.linalg.solve(hf * np.outer(d, d), (g[free] * d).astype(float)) * d
            stuck = free & (((x <= lower) & (step < 0)) | ((x >= upper) & (step > 0)))
            if not stuck.any():
                break
            free &= ~stuck
        if not free.any():
            break
        slope = g @ step
        # Go no further than the first bound, and hit that bound exactly.
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(step > 0, (upper - x) / step, np.where(step < 0, (lower - x) / step, LONG(np.inf)))
        reach = room.min()
        t = min(LONG(1), reach)
        moved = False
        for _ in range(80):
            y = np.clip(x + t * step, lower, upper)
            if t == reach:
                j = int(np.argmin(room))
                y[j] = upper[j] if step[j] > 0 else lower[j]
            v = problem.value(y)
            if np.isfinite(v) and v <= value + LONG(1e-4) * t * slope + LONG(1e-17) * max(LONG(1), abs(value)):
                moved = True
                break
            t /= 2
        if not moved:
            break
        change = np.max(np.abs(y - x) / np.maximum(np.abs(y), LONG(1e-3)))
        x, value = y, v
        small = small + 1 if change < 1e-14 else 0
        if small >= 3:
            break
    g = problem.gradient(x)
    active = ((x <= lower) & (g >= 0)) | ((x >= upper) & (g <= 0))
    free = ~active
    scale = np.maximum(np.abs(x), LONG(1e-3))
    kkt = float(np.max(np.abs(g[free]) * scale[free])) if free.any() else 0.0
    condition = 1.0
    if free.any():
        h = problem.hessian(x.astype(float))[np.ix_(free, free)]
        d = 1.0 / np.sqrt(np.diag(h))
        condition = float(np.linalg.cond(h * np.outer(d, d)))
    multiplier = float(np.min(np.abs(g[active]))) if active.any() else float("inf")
    return Solution(x, problem.value(x), active, kkt, multiplier, condition)


def value_at(problem, x):
    v = float(problem.value(np.asarray(x, LONG)))
    return v if np.isfinite(v) else 1e10


def second_opinion(problem, x0):
    """The same minimum by SLSQP in float64, which shares nothing with `solve` except the function."""
    span = np.where(np.isfinite(problem.upper), problem.upper, np.maximum(1.0, 10 * np.abs(x0)))
    lower = np.where(np.isfinite(problem.lower), problem.lower + 1e-12, -1e6)
    upper = np.where(np.isfinite(problem.upper), span, 1e6)

    scale = max(1.0, abs(value_at(problem, x0)))

    result = optimize.minimize(
        lambda x: value_at(problem, x) / scale,
        x0,
        jac=lambda x: problem.gradient(np.clip(np.asarray(x, LONG), lower, upper)).astype(float) / scale,
        method="SLSQP",
        bounds=list(zip(lower, upper)),
        options={"maxiter": 2000, "ftol": 1e-16},
    )
    return result.x, value_at(problem, result.x)


def complex_jacobian(function, theta):
    """d function / d theta by complex steps: exact to rounding for the analytic functions used here."""
    theta = np.asarray(theta, float)
    columns = []
    for j in range(theta.size):
        t = theta.astype(complex)
        t[j] += 1e-40j
        columns.append(np.imag(function(t)) / 1e-40)
    return np.stack(columns, axis=-1)


def sandwich(rows, theta):
    """Covariance of the root theta of mean(rows(theta)) = 0, where `rows` has one row of equations per observation."""
    psi = rows(np.asarray(theta, float))
    n = psi.shape[0]
    bread = complex_jacobian(lambda t: rows(t).mean(axis=0), theta)
    meat = psi.T @ psi / n
    half = np.linalg.solve(bread, meat)
    return np.linalg.solve(bread, half.T).T / n, bread, psi
