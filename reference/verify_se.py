"""Checks the sandwich standard errors against the infinitesimal jackknife: refits after small changes of one weight.

The variance of an estimator T of weighted rows is the sum over rows of the squared derivatives dT/d(weight of row i),
at weights of one. The stacked equations are not used here, only refits.
"""

import json
import sys
from pathlib import Path

import numpy as np
from scipy import optimize

from estimators import Data


def fit(d, weight, name):
    u, lab = ~d.r, d.r
    nl, nu = weight[lab].sum(), weight[u].sum()
    total = weight.sum()
    counts = weight @ d.onehot
    if name == "moments_mean":
        return (counts / total) / (weight @ d.p / total)
    if name == "bbse":
        c = (d.p[lab] * weight[lab, None]).T @ d.onehot[lab] / nl
        return 1 / (1 + nu / nl * np.linalg.solve(c, weight[u] @ d.p[u] / nu))
    pi = counts / nl if name != "label_shift_mean" else weight[lab] @ d.p[lab] / nl
    s, wu = d.p[u], weight[u]
    root = optimize.root(
        lambda w: (wu / (s @ w)) @ s / nu - pi,
        fit.start[name],
        jac=lambda w: -((s * (wu / (s @ w) ** 2 / nu)[:, None]).T @ s),
        tol=1e-14,
    )
    w = root.x
    if name == "prevalence":
        return (counts + nu * pi * w) / total
    return 1 / (1 + nu / nl * w)


def main():
    np.seterr(all="ignore")
    worst = 0.0
    for case in sys.argv[1:] or ["k02_mcar", "k02_mnar", "k03_mcar", "k03_argmax", "k03_useless", "k05_rare", "k10_onehot"]:
        tree = json.loads((Path(__file__).parent / "golden" / f"{case}.json").read_text())
        d, e = Data(tree["input"]), tree["expected"]
        want = {
            "moments_mean": e["moments_mean"]["se"],
            "label_shift": e["label_shift"]["se"],
            "prevalence": e["label_shift"]["prevalence_se"],
            "label_shift_mean": e["label_shift_mean"]["se"],
            "bbse": e["bbse"] and e["bbse"]["se"],
        }
        fit.start = {
            "label_shift": e["label_shift"]["w"],
            "prevalence": e["label_shift"]["w"],
            "label_shift_mean": e["label_shift_mean"]["w"],
        }
        for name, se in want.items():
            if se is None or any(v is None for v in se):
                continue
            square = np.zeros(d.k)
            for i in range(d.n):
                up, down = np.ones(d.n), np.ones(d.n)
                up[i], down[i] = 1 + 1e-4, 1 - 1e-4
                square += ((fit(d, up, name) - fit(d, down, name)) / 2e-4) ** 2
            gap = float(np.max(np.abs(np.sqrt(square) / np.array(se) - 1)))
            worst = max(worst, gap)
            print(f"{case} {name}: {gap:.1e}")
    sys.exit(worst > 1e-6)


if __name__ == "__main__":
    main()
