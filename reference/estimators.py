"""Expected outputs, written from their definitions. The notation is that of README.md."""

import numpy as np
from scipy import optimize, stats

from solvers import LONG, Problem, complex_jacobian, sandwich, second_opinion, solve

CHI = stats.chi2.ppf(0.95, 1)


class Data:
    def __init__(self, given):
        self.p = np.array(given["posteriors"], float)
        self.n, self.k = self.p.shape
        self.y = np.array([-1 if c is None else c for c in given["labels"]])
        self.r = self.y >= 0
        self.onehot = np.eye(self.k)[np.maximum(self.y, 0)] * self.r[:, None]
        self.counts = self.onehot.sum(axis=0)
        self.nl = int(self.r.sum())
        self.nu = self.n - self.nl
        self.c = self.counts / self.n
        self.pi = self.counts / self.nl
        self.unlabelled = self.p[~self.r]
        self.labelled = self.p[self.r]
        self.folds = np.array(given["folds"])
        self.given = given


def floats(a):
    return [float(v) for v in np.asarray(a)]


def holes(a, missing):
    return [None if m else float(v) for v, m in zip(a, missing)]


def where(mask):
    return [int(j) for j in np.flatnonzero(mask)]


def moments_mean(d):
    m = d.p.mean(axis=0)
    phi = d.c / m
    se = []
    for k in range(d.k):
        cov = np.cov(d.onehot[:, k], d.p[:, k], bias=True)
        grad = np.array([1 / m[k], -d.c[k] / m[k] ** 2])
        se.append(np.sqrt(grad @ cov @ grad / d.n))
    return {"phi": floats(np.minimum(phi, 1)), "se": floats(se), "clipped": where(phi > 1)}


def moments_known(d):
    p = np.array(d.given["known_shares"])
    phi = d.c / p
    se = np.sqrt(d.c * (1 - d.c) / d.n) / p
    return {"phi": floats(np.minimum(phi, 1)), "se": floats(se), "clipped": where(phi > 1)}


# ---------------------------------------------------------------- population posterior


def mechanism_problem(d, fixed=None):
    """The problem -sum n_k log phi_k - sum_U log sum_k P_ik (1 - phi_k), with phi_j held at t if fixed = (j, t)."""
    counts, u = d.counts.astype(LONG), d.unlabelled.astype(LONG)
    others = np.arange(d.k) if fixed is None else np.delete(np.arange(d.k), fixed[0])

    def full(x):
        if fixed is None:
            return x
        phi = np.empty(d.k, LONG)
        phi[others] = x
        phi[fixed[0]] = fixed[1]
        return phi

    def value(x):
        phi = full(x)
        a = u @ (1 - phi)
        if np.any(phi <= 0) or np.any(a <= 0):
            return LONG(np.inf)
        return -(counts * np.log(phi)).sum() - np.log(a).sum()

    def gradient(x):
        phi = full(x)
        return (-counts / phi + (1 / (u @ (1 - phi))) @ u)[others]

    def hessian(x):
        phi = full(x.astype(LONG)).astype(float)
        z = d.unlabelled / (d.unlabelled @ (1 - phi))[:, None]
        return (np.diag(d.counts / phi**2) + z.T @ z)[np.ix_(others, others)]

    m = others.size
    return Problem(value, gradient, hessian, np.zeros(m), np.ones(m))


def likelihood(d, check):
    problem = mechanism_problem(d)
    start = np.full(d.k, d.nl / d.n)
    s = solve(problem, start)
    phi = s.x.astype(float)
    h = problem.hessian(phi)
    free = ~s.active
    se = np.full(d.k, np.nan)
    se[free] = np.sqrt(np.diag(np.linalg.inv(h[np.ix_(free, free)])))
    statistic = float(2 * (problem.value(np.full(d.k, LONG(d.nl) / d.n)) - s.value))
    other_x, other_value = second_opinion(problem, start)
    check["likelihood"] = {
        "kkt": s.kkt,
        "smallest_multiplier": None if np.isinf(s.multiplier) else s.multiplier,
        "condition": s.condition,
        "slsqp_value_minus_optimum": float(other_value - s.value),
        "slsqp_largest_difference": float(np.max(np.abs(other_x - phi))),
        "sum_c_over_phi_minus_1": float(np.sum(d.c / phi) - 1),
    }
    return s, {
        "phi": floats(phi),
        "nll": float(s.value),
        "se": holes(se, s.active),
        "prevalence": floats(d.c / phi),
        "on_boundary": where(s.active),
        "lrt": {"statistic": statistic, "df": d.k - 1, "p_value": float(stats.chi2.sf(statistic, d.k - 1))},
    }


def crossing(excess, inside, outside):
    """The endpoint of {t: excess(t) <= 0} between a point inside and a point outside."""
    return optimize.brentq(excess, inside, outside, xtol=1e-14, rtol=1e-14, maxiter=300)


def profile_classes(d):
    rare = int(np.argmin(d.counts))
    return [0] if rare == 0 else [0, rare]


def profile(d, best, check):
    out, residues = [], []
    for k in profile_classes(d):
        memory = {"x": np.clip(np.delete(best.x, k), 1e-9, 1 - 1e-9)}

        def excess(t, k=k, memory=memory):
            problem = mechanism_problem(d, (k, LONG(t)))
            s = solve(problem, memory["x"], warm=np.isfinite(problem.value(memory["x"])))
            residues.append(s.kkt)
            return float(2 * (s.value - best.value) - CHI)

        top = float(best.x[k])
        low = top
        while excess(low) <= 0:
            low /= 2
        lower = crossing(excess, low * 2, low)
        upper = 1.0
        try:
            end = excess(1.0)
        except AssertionError:  # an unlabelled row is certain to be of this class
            end = np.inf
        if end > 0:
            high, gap = top, 1 - top
            while excess(high) <= 0:
                gap /= 2
                high = 1 - gap
            upper = crossing(excess, 1 - 2 * gap, high)
        out.append({"class": k, "lower": float(lower), "upper": float(upper)})
    check["profile"] = {"kkt": max(residues)}
    return out


def profile_by_constraint(d, best, k, sign, end):
    """The same endpoint, as the smallest (sign 1) or largest phi_k in the convex set {nll <= minimum + chi/2}."""
    problem = mechanism_problem(d)
    level = float(best.value) + CHI / 2
    # Does not start from the optimum, where the constraint has no slope.
    x0 = np.clip(best.x.astype(float), 1e-6, 1 - 1e-6)
    x0[k] += 0.7 * (min(end, 1 - 1e-6) - x0[k])

    def value(x):
        v = float(problem.value(np.asarray(x, LONG)))
        return v if np.isfinite(v) else 1e6

    result = optimize.minimize(
        lambda x: sign * x[k],
        x0,
        jac=lambda x: sign * np.eye(d.k)[k],
        constraints=[
            {
                "type": "ineq",
                "fun": lambda x: level - value(x),
                "jac": lambda x: -problem.gradient(np.asarray(x, LONG)).astype(float),
            }
        ],
        bounds=[(1e-9, 1.0)] * d.k,
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    return float(result.x[k]), value(result.x) - level < 1e-7


# ---------------------------------------------------------------- labelled posterior


def shift_problem(d, pi, strength):
    """In v = pi * w: -sum_U log sum_k v_k s_ik / pi_k - sum_k a_k log v_k + (n_u + sum a) sum_k v_k."""
    q = (d.unlabelled.astype(LONG) / pi.astype(LONG)).astype(LONG)
    a = (strength * pi).astype(LONG)
    total = d.nu + a.sum()
    qf = q.astype(float)

    def value(v):
        m = q @ v
        if np.any(m <= 0) or np.any(v < 0) or (strength > 0 and np.any(v <= 0)):
            return LONG(np.inf)
        return -np.log(m).sum() + total * v.sum() - ((a * np.log(v)).sum() if strength > 0 else 0)

    def gradient(v):
        g = total - (1 / (q @ v)) @ q
        return g - a / v if strength > 0 else g

    def hessian(v):
        z = qf / (qf @ v)[:, None]
        h = z.T @ z
        return h + np.diag(a.astype(float) / v**2) if strength > 0 else h

    return Problem(value, gradient, hessian, np.zeros(d.k), np.full(d.k, np.inf))


def solve_shift(d, pi, strength, check, name):
    problem = shift_problem(d, pi, strength)
    start = np.clip(pi, 1e-4, None)
    s = solve(problem, start)
    other_x, other_value = second_opinion(problem, start)
    check[name] = {
        "kkt": s.kkt,
        "smallest_multiplier": None if np.isinf(s.multiplier) else s.multiplier,
        "smallest_free_share": float(s.x[~s.active].min()),
        "condition": s.condition,
        "slsqp_value_minus_optimum": float(other_value - s.value),
        "slsqp_largest_share_difference": float(np.max(np.abs(other_x - s.x.astype(float)))),
    }
    w = (s.x / pi.astype(LONG)).astype(LONG)
    phi = 1 / (1 + LONG(d.nu) / d.nl * w)
    return s, w.astype(float), phi.astype(float)


def shift_covariance(d, w, pi, of_labels):
    """Covariance of (rho, pi, w) by the sandwich of the stacked estimating equations."""
    r = d.r.astype(float)[:, None]
    target = d.onehot if of_labels else d.p

    def rows(theta):
        rho, share, weight = theta[0], theta[1 : 1 + d.k], theta[1 + d.k :]
        mix = (d.p * weight).sum(axis=1, keepdims=True)
        return np.hstack([r - rho, r * (target - share), (1 - r) * (d.p / mix - share)])

    theta = np.concatenate([[d.nl / d.n], pi, w])
    cov, bread, psi = sandwich(rows, theta)
    return theta, cov, float(np.max(np.abs(psi.mean(axis=0)))), float(np.linalg.cond(bread))


def delta(function, theta, cov):
    j = complex_jacobian(function, theta)
    return np.sqrt(np.einsum("ij,jk,ik->i", j, cov, j))


def label_shift(d, check):
    s, w, phi = solve_shift(d, d.pi, 0, check, "label_shift")
    se = prevalence_se = None
    if not s.active.any():
        theta, cov, residue, cond = shift_covariance(d, w, d.pi, True)
        check["label_shift"] |= {"estimating_equations": residue, "bread_condition": cond}
        se = floats(delta(lambda t: 1 / (1 + (1 - t[0]) / t[0] * t[1 + d.k :]), theta, cov))
        prevalence_se = floats(
            delta(lambda t: t[0] * t[1 : 1 + d.k] + (1 - t[0]) * t[1 : 1 + d.k] * t[1 + d.k :], theta, cov)
        )
    return s, {
        "w": floats(w),
        "phi": floats(phi),
        "on_boundary": where(s.active),
        "prevalence": floats((d.counts + d.nu * d.pi * w) / d.n),
        "se": se,
        "prevalence_se": prevalence_se,
    }


def label_shift_mean(d, check):
    pi = d.labelled.mean(axis=0)
    s, w, phi = solve_shift(d, pi, 0, check, "label_shift_mean")
    se = None
    if not s.active.any():
        theta, cov, residue, cond = shift_covariance(d, w, pi, False)
        check["label_shift_mean"] |= {"estimating_equations": residue, "bread_condition": cond}
        se = floats(delta(lambda t: 1 / (1 + (1 - t[0]) / t[0] * t[1 + d.k :]), theta, cov))
    return {
        "pi": floats(pi),
        "w": floats(w),
        "phi": floats(phi),
        "on_boundary": where(s.active),
        "prevalence": floats(d.counts / d.n + d.nu / d.n * pi * w),
        "se": se,
    }


def label_shift_prior(d, check):
    _, w, phi = solve_shift(d, d.pi, 20.0, check, "label_shift_prior")
    return {"strength": 20.0, "w": floats(w), "phi": floats(phi)}


def joint_problem(d, k, t):
    """The negative joint log-likelihood with phi_k = t, in x = (P(y=k), beta of the other classes).

    The likelihood is homogeneous of degree n in (alpha, beta), so the constraint that the total mass is one becomes the
    term n * mass, and the alphas of the other classes are n_j / n.
    """
    q = d.unlabelled.astype(LONG) / d.pi.astype(LONG)
    rest = np.delete(np.arange(d.k), k)
    t = LONG(t)
    q = np.hstack([(1 - t) * q[:, [k]], q[:, rest]])
    alpha = d.counts[rest].astype(LONG) / d.n
    constant = -(d.counts[rest] * np.log(alpha)).sum() + d.n * alpha.sum() - d.n
    nk = LONG(d.counts[k])

    def value(x):
        m = q @ x
        if x[0] <= 0 or np.any(m <= 0):
            return LONG(np.inf)
        return constant - nk * np.log(t * x[0]) - np.log(m).sum() + d.n * x.sum()

    def gradient(x):
        g = d.n - (1 / (q @ x)) @ q
        g[0] -= nk / x[0]
        return g

    qf = q.astype(float)

    def hessian(x):
        z = qf / (qf @ x)[:, None]
        h = z.T @ z
        h[0, 0] += float(nk) / x[0] ** 2
        return h

    return Problem(value, gradient, hessian, np.zeros(d.k), np.full(d.k, np.inf))


def joint_nll(d, alpha, beta):
    m = d.unlabelled @ (beta / d.pi)
    if np.any(m <= 0) or np.any(alpha <= 0):
        return np.inf
    return -(d.counts * np.log(alpha)).sum() - np.log(m).sum()


def label_shift_profile(d, shift, check):
    beta = d.nu / d.n * shift.x.astype(float)
    alpha = d.counts / d.n
    best = joint_nll(d, alpha, beta)
    out, residues = [], []
    for k in profile_classes(d):
        rest = np.delete(np.arange(d.k), k)
        x0 = np.concatenate([[alpha[k] + beta[k]], np.clip(beta[rest], 1e-6, None)])

        def excess(t, k=k, x0=x0):
            s = solve(joint_problem(d, k, t), x0)
            residues.append(s.kkt)
            return float(2 * (s.value - best) - CHI)

        top = float(alpha[k] / (alpha[k] + beta[k]))
        low = top
        while excess(low) <= 0:
            low /= 2
        lower = crossing(excess, low * 2, low)
        upper = 1.0
        try:
            end = excess(1.0)
        except AssertionError:
            end = np.inf
        if end > 0:
            high, gap = top, 1 - top
            while excess(high) <= 0:
                gap /= 2
                high = 1 - gap
            upper = crossing(excess, 1 - 2 * gap, high)
        out.append({"class": k, "lower": float(lower), "upper": float(upper)})
    check["label_shift_profile"] = {"kkt": max(residues)}
    return out


def joint_profile_by_constraint(d, shift, k, sign, end):
    """The same endpoint over all (alpha, beta) on the simplex, without any of the reductions above."""
    beta = d.nu / d.n * np.clip(shift.x.astype(float), 1e-6, None)
    start = d.c[k] / (d.c[k] + beta[k])
    start += 0.7 * (min(end, 1 - 1e-6) - start)
    beta[k] = d.c[k] * (1 - start) / start
    x0 = np.concatenate([d.counts / d.n, beta])
    x0 /= x0.sum()
    level = joint_nll(d, d.counts / d.n, d.nu / d.n * shift.x.astype(float)) + CHI / 2

    def value(x):
        v = joint_nll(d, x[: d.k], x[d.k :])
        return v if np.isfinite(v) else 1e6

    def slope(x):
        m = d.unlabelled @ (x[d.k :] / d.pi)
        return np.concatenate([-d.counts / x[: d.k], -((1 / m) @ d.unlabelled) / d.pi])

    def phi(x):
        return x[k] / (x[k] + x[d.k + k])

    def phi_slope(x):
        g = np.zeros(2 * d.k)
        total = x[k] + x[d.k + k]
        g[k], g[d.k + k] = x[d.k + k] / total**2, -x[k] / total**2
        return g

    result = optimize.minimize(
        lambda x: sign * phi(x),
        x0,
        jac=lambda x: sign * phi_slope(x),
        constraints=[
            {"type": "ineq", "fun": lambda x: level - value(x), "jac": lambda x: -slope(x)},
            {"type": "eq", "fun": lambda x: x.sum() - 1, "jac": lambda x: np.ones(2 * d.k)},
        ],
        bounds=[(1e-9, 1.0)] * d.k + [(0.0, 1.0)] * d.k,
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 2000},
    )
    return float(phi(result.x)), value(result.x) - level < 1e-7 and abs(result.x.sum() - 1) < 1e-9


# ---------------------------------------------------------------- the rest


def bbse(d, check):
    confusion = d.labelled.T @ d.onehot[d.r] / d.nl
    columns = confusion / d.pi
    cond = float(np.linalg.cond(confusion))
    smallest = float(np.linalg.svd(columns, compute_uv=False)[-1])
    check["bbse"] = {"condition": cond}
    if not cond < 1e12:
        return None
    mu = d.unlabelled.mean(axis=0)
    w = np.linalg.solve(confusion, mu)
    # Covariance of theta = (rho, C row by row, mu). The equations are linear in theta, with a diagonal derivative.
    r = d.r.astype(float)[:, None]
    pairs = (d.p[:, :, None] * d.onehot[:, None, :]).reshape(d.n, -1)
    psi = np.hstack([r - d.nl / d.n, r * (pairs - confusion.ravel()), (1 - r) * (d.p - mu)])
    bread = np.concatenate([[-1.0], np.full(d.k**2, -d.nl / d.n), np.full(d.k, -d.nu / d.n)])
    influence = -psi / bread
    theta = np.concatenate([[d.nl / d.n], confusion.ravel(), mu])

    def phi_of(t):
        weight = np.linalg.solve(t[1 : 1 + d.k**2].reshape(d.k, d.k), t[1 + d.k**2 :])
        return 1 / (1 + (1 - t[0]) / t[0] * weight)

    jacobian = complex_jacobian(phi_of, theta)
    se = np.sqrt(((influence @ jacobian.T) ** 2).sum(axis=0)) / d.n
    phi = 1 / (1 + d.nu / d.nl * np.maximum(w, 0))
    return {
        "w": floats(w),
        "phi": floats(phi),
        "se": holes(se, w <= 0),
        "smallest_singular_value": smallest,
    }


def bcts(d, check):
    z = np.log(np.maximum(d.labelled, 1e-12)).astype(LONG)
    y = d.y[d.r]
    i = np.arange(d.nl)
    out = []
    separated = bool(np.all(z[i, y] > np.where(np.eye(d.k, dtype=bool)[y], LONG(-np.inf), z).max(axis=1)))
    for lam, kappa in ((1.0, 0.0), (10.0, 1.0)):
        if separated and kappa == 0:
            out.append({"lambda": lam, "kappa": kappa, "a": None, "b": None, "objective": None})
            continue

        def parts(x):
            t = x[0] * z + x[1:]
            t = t - t.max(axis=1, keepdims=True)
            e = np.exp(t)
            return t, e / e.sum(axis=1, keepdims=True), np.log(e.sum(axis=1))

        def value(x, lam=lam, kappa=kappa):
            t, _, norm = parts(x)
            return (norm - t[i, y]).sum() + lam * (x[1:] ** 2).sum() / 2 + kappa * (x[0] - 1) ** 2 / 2

        def gradient(x, lam=lam, kappa=kappa):
            _, p, _ = parts(x)
            g = p - np.eye(d.k)[y]
            return np.concatenate([[(g * z).sum() + kappa * (x[0] - 1)], g.sum(axis=0) + lam * x[1:]])

        def hessian(x, lam=lam, kappa=kappa):
            _, p, _ = parts(x.astype(LONG))
            p, zf = p.astype(float), z.astype(float)
            h = np.zeros((d.k + 1, d.k + 1))
            mean = (p * zf).sum(axis=1, keepdims=True)
            h[0, 0] = (p * (zf - mean) ** 2).sum() + kappa
            h[0, 1:] = h[1:, 0] = (p * (zf - mean)).sum(axis=0)
            h[1:, 1:] = np.diag(p.sum(axis=0)) - p.T @ p + lam * np.eye(d.k)
            return h

        free = np.full(d.k + 1, np.inf)
        problem = Problem(value, gradient, hessian, -free, free)
        x0 = np.concatenate([[1.0], np.zeros(d.k)])
        s = solve(problem, x0)
        other = optimize.minimize(
            lambda x: float(value(x.astype(LONG))),  # noqa: B023
            x0,
            jac=lambda x: gradient(x.astype(LONG)).astype(float),  # noqa: B023
            method="BFGS",
            options={"gtol": 1e-9},
        )
        check[f"bcts_{lam:g}_{kappa:g}"] = {
            "gradient": float(np.max(np.abs(gradient(s.x)))),
            "condition": s.condition,
            "bfgs_value_minus_optimum": float(other.fun - s.value),
            "bfgs_largest_difference": float(np.max(np.abs(other.x - s.x.astype(float)))),
        }
        out.append(
            {
                "lambda": lam,
                "kappa": kappa,
                "a": float(s.x[0]),
                "b": floats(s.x[1:]),
                "objective": float(s.value),
            }
        )
    return out


def permutation_statistic(d, check):
    difference, v = np.zeros(d.k), np.zeros((d.k, d.k))
    for f in np.unique(d.folds):
        rows = d.folds == f
        s = d.p[rows] - d.p[rows].mean(axis=0)
        r = d.r[rows]
        nf, nl = rows.sum(), r.sum()
        difference += s[r].sum(axis=0)
        v += nl * (nf - nl) / (nf * (nf - 1)) * s.T @ s
    values, vectors = np.linalg.eigh(v)
    keep = values > 1e-10 * values.max()
    check["permutation_statistic"] = {
        "smallest_kept_over_largest": float(values[keep].min() / values.max()),
        "largest_dropped_over_largest": float(np.abs(values[~keep]).max() / values.max()) if (~keep).any() else None,
    }
    t = float((((vectors[:, keep].T @ difference) ** 2) / values[keep]).sum())
    rank = int(keep.sum())
    return {"statistic": t, "rank": rank, "p_value": float(stats.chi2.sf(t, rank))}


def ipw(d):
    phi = np.array(d.given["true_phi"])
    labelled, unlabelled = np.array(d.given["labelled_losses"]), np.array(d.given["unlabelled_losses"])
    weight = np.where(d.r, 1 / phi[np.maximum(d.y, 0)], 0.0)  # r / phi_y
    risk = float((weight * np.where(d.r, labelled, 0)).sum() / d.n)
    # (r - phi_y) / phi_y is 1/phi_y - 1 on a labelled row and -1 on an unlabelled one.
    debiased = risk - d.given["lambda"] / d.n * float(((weight - 1) * unlabelled).sum())
    return {"ipw_risk": risk, "debiased_ssl_risk": debiased}


def gtest(d):
    table = np.stack([d.counts, d.unlabelled.sum(axis=0)])
    # A cell may have a count of zero, so the sum is written out; scipy agrees wherever it accepts the table.
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    g = float(2 * np.where(table > 0, table * np.log(np.where(table > 0, table, 1) / expected), 0).sum())
    by_scipy = stats.chi2_contingency(table, correction=False, lambda_="log-likelihood").statistic
    assert abs(by_scipy - g) < 1e-9
    return {"table": table.tolist(), "statistic": g, "df": d.k - 1, "p_value": float(stats.chi2.sf(g, d.k - 1))}


def expected(given):
    """Returns (expected outputs, certificates) for one case."""
    d = Data(given)
    check = {}
    out = {"moments_mean": moments_mean(d), "moments_known": moments_known(d)}
    best, out["likelihood"] = likelihood(d, check)
    shift, out["label_shift"] = label_shift(d, check)
    out["label_shift_mean"] = label_shift_mean(d, check)
    out["label_shift_prior"] = label_shift_prior(d, check)
    out["bbse"] = bbse(d, check)
    out["profile"] = profile(d, best, check)
    gaps = []
    for row in out["profile"]:
        for sign, end in ((1, "lower"), (-1, "upper")):
            other, fine = profile_by_constraint(d, best, row["class"], sign, row[end])
            gaps.append(abs(other - row[end]) if fine else None)
    check["profile"]["slsqp_end_differences"] = gaps
    out["label_shift_profile"] = None
    if d.k <= 5:
        out["label_shift_profile"] = label_shift_profile(d, shift, check)
        gaps = []
        for row in out["label_shift_profile"]:
            for sign, end in ((1, "lower"), (-1, "upper")):
                other, fine = joint_profile_by_constraint(d, shift, row["class"], sign, row[end])
                gaps.append(abs(other - row[end]) if fine else None)
        check["label_shift_profile"]["slsqp_end_differences"] = gaps
    out["bcts"] = bcts(d, check)
    out["permutation_statistic"] = permutation_statistic(d, check)
    out["ipw"] = ipw(d)
    out["gtest"] = gtest(d) if set(np.unique(d.p)) <= {0.0, 1.0} else None
    if out["gtest"]:
        check["gtest_minus_lrt"] = out["gtest"]["statistic"] - out["likelihood"]["lrt"]["statistic"]
    return out, check
