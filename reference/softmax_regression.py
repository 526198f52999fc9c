"""Penalised softmax regression: solved with scipy, refined, and compared with scikit-learn.

    minimise  sum_i weight_i * logloss_i + 0.5 * l2 * ||W||^2      (intercepts unpenalised)

W has one column per class, also for two classes. scikit-learn's binary model has one column u instead; the symmetric
optimum W = (-u/2, u/2) has ||W||^2 = ||u||^2 / 2, so its C is 2 / l2 for two classes and 1 / l2 otherwise.
"""

import numpy as np
from scipy import optimize
from sklearn.linear_model import LogisticRegression

LONG = np.longdouble

#        seed   n    d  k   l2   weighted
CASES = [
    (201, 60, 2, 2, 1.0, False),
    (202, 120, 5, 2, 0.01, True),
    (203, 100, 3, 3, 10.0, False),
    (204, 150, 4, 3, 1.0, True),
    (205, 200, 8, 4, 0.01, False),
    (206, 250, 12, 5, 1.0, True),
    (207, 300, 16, 6, 10.0, True),
    (208, 400, 20, 6, 0.01, False),
]


def one(seed, n, d, k, l2, weighted):
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    y[:k] = np.arange(k)
    centres = rng.standard_normal((k, d))
    x = np.round(rng.standard_normal((n, d)) + 0.8 * centres[y] + rng.standard_normal(d), 4)
    weight = np.round(rng.uniform(0.2, 5.0, size=n), 3) if weighted else np.ones(n)
    onehot = np.eye(k)[y]
    z = np.hstack([np.ones((n, 1)), x])
    penalty = np.full((d + 1, k), l2)
    penalty[0] = 0

    def parts(theta):
        w = theta.reshape(d + 1, k)
        zl = z.astype(theta.dtype)
        t = zl @ w
        t = t - t.max(axis=1, keepdims=True)
        log = t - np.log(np.exp(t).sum(axis=1, keepdims=True))
        p = np.exp(log)
        value = -(weight * (log * onehot).sum(axis=1)).sum() + (penalty * w**2).sum() / 2
        gradient = zl.T @ (weight[:, None] * (p - onehot)) + penalty * w
        return value, gradient.ravel(), p

    start = optimize.minimize(
        lambda t: parts(t)[:2], np.zeros((d + 1) * k), jac=True, method="L-BFGS-B",
        options={"maxiter": 20000, "maxfun": 50000, "ftol": 1e-15, "gtol": 1e-9},
    )  # fmt: skip
    theta = start.x.astype(LONG)
    for _ in range(30):
        _, g, p = parts(theta)
        p = p.astype(float)
        h = np.diag(penalty.ravel()).reshape(d + 1, k, d + 1, k)
        for a in range(k):
            for b in range(k):
                c = weight * (p[:, a] * (a == b) - p[:, a] * p[:, b])
                h[:, a, :, b] += z.T @ (c[:, None] * z)
        # One direction is flat (a constant added to all intercepts); the step of least norm does not move along it.
        step = np.linalg.lstsq(h.reshape(theta.size, -1), g.astype(float), rcond=1e-13)[0]
        theta = theta - step
        if np.max(np.abs(step)) < 1e-15:
            break
    value, g, p = parts(theta)
    w = theta.reshape(d + 1, k)
    w = (w - w.mean(axis=1, keepdims=True)).astype(float)
    model = LogisticRegression(C=(2 if k == 2 else 1) / l2, tol=1e-12, max_iter=100_000, solver="newton-cholesky")
    model.fit(x, y, sample_weight=weight)
    gap = float(np.max(np.abs(model.predict_proba(x) - p.astype(float))))
    residue = float(np.max(np.abs(g)))
    assert gap < 1e-8 and residue < 1e-9, (seed, gap, residue)
    return {
        "seed": seed,
        "n": n,
        "d": d,
        "k": k,
        "l2": l2,
        "input": {
            "features": x.tolist(),
            "labels": y.tolist(),
            "weights": weight.tolist() if weighted else None,
        },
        "expected": {
            "objective": float(value),
            "coefficients": w[1:].tolist(),
            "intercepts": w[0].tolist(),
            "probabilities": p.astype(float).tolist(),
        },
        "certificates": {"gradient": residue, "sklearn_largest_probability_difference": gap},
    }


def build():
    return {"name": "softmax_regression", "cases": [one(*c) for c in CASES]}
