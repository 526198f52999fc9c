"""Replicate weights of `mnar estimate --replicate-weights` in R's survey package and in statsmodels, and their coverage; and that of
imputed labels.

    python bench/replicate_weights.py path/to/mnar results/replicate_weights.json

Needs numpy, pandas, scipy, statsmodels, and `Rscript` with the package survey (Debian: r-base-core, r-cran-survey). One process, some
six minutes on a slow core.

Part one draws one table, and computes a prevalence ratio, the mean of a column and a logistic regression with the same 400 replicate
weights in R, with statsmodels and with numpy: the three must agree to rounding. With the same seed, the bootstrap of `mnar
estimate` draws the same replicates, so its standard error of the prevalence must be the same; with other seeds, it must agree to
Monte Carlo error.

Part two draws 300 tables from a world whose coefficients are known, and counts how often the intervals of a logistic regression
contain them. Part three does the same with `--imputed` and Rubin's rules, for the share of the sick and the same regression of all rows.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels.api as sm
from scipy.stats import norm

ROWS = 1500
# logit P(sick) = -1 + 0.8 age + 0.7 smoker
TRUTH = np.array([-1.0, 0.8, 0.7])
PHI = np.array([0.15, 0.5])
DRAWS, REPLICATES = 300, 100
IMPUTED_DRAWS, IMPUTATIONS = 200, 20
# Seeds from here on; nothing was chosen on them.
FIRST_SEED, FIRST_IMPUTED_SEED = 5000, 9000

R_SCRIPT = """
suppressMessages(library(survey))
at <- commandArgs(trailingOnly = TRUE)
d <- read.csv(at[1])
replicates <- grep("^replicate_", names(d))
R <- length(replicates)
design <- svrepdesign(data = d[, -replicates], weights = ~weight, repweights = as.matrix(d[, replicates]),
                      type = "other", combined.weights = TRUE, scale = 1 / (R - 1), rscales = rep(1, R), mse = FALSE)
ratio <- withReplicates(design, function(w, data) {
  share <- function(of) sum(w[of] * data$sick[of]) / sum(w[of])
  share(data$smoker == 1) / share(data$smoker == 0)
})
age <- svymean(~age, design)
fit <- svyglm(sick ~ age + smoker, design, family = quasibinomial())
sick <- svymean(~sick, design)
bootstrap <- svrepdesign(data = d[, -replicates], weights = ~weight, repweights = as.matrix(d[, replicates]),
                         type = "bootstrap", combined.weights = TRUE)
line <- function(name, value, se) cat(sprintf("%s,%.12g,%.12g\\n", name, value, se))
line("prevalence", coef(sick), SE(sick))
line("prevalence ratio", as.numeric(ratio), sqrt(as.numeric(attr(ratio, "var"))))
line("mean age", coef(age), SE(age))
for (name in names(coef(fit))) line(paste("logistic", sub("[()]", "", sub("[)]", "", name))), coef(fit)[name], SE(fit)[name])
line("prevalence, type bootstrap", coef(svymean(~sick, bootstrap)), SE(svymean(~sick, bootstrap)))
"""


def world(seed, rows=ROWS):
    rng = np.random.default_rng(seed)
    age, smoker = rng.normal(size=rows), (rng.random(rows) < 0.4).astype(int)
    x = np.column_stack([np.ones(rows), age, smoker])
    sick = (rng.random(rows) < 1 / (1 + np.exp(-x @ TRUTH))).astype(int)
    marker = rng.normal(1.8 * sick, 1)
    labelled = rng.random(rows) < PHI[sick]
    label = np.where(labelled, np.array(["well", "sick"])[sick], "")
    return pd.DataFrame({"y": label, "age": age, "smoker": smoker, "marker": marker}), sick, labelled


def estimate(mnar, table, replicates, folder, *more):
    table.to_csv(folder / "t.csv", index=False)
    command = [mnar, "estimate", folder / "t.csv", "--label", "y", "--features", "all", "--classifier", "softmax"]
    command += ["--given", "none", "--quiet", "--weights", folder / "w.csv", "--replicate-weights", str(replicates)]
    said = subprocess.run([*command, "--format", "json", *more], check=True, stdout=subprocess.PIPE).stdout
    return json.loads(said), pd.read_csv(folder / "w.csv")


def logistic(x, y, w):
    """Weighted maximum likelihood by Newton's method."""
    beta = np.zeros(x.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ beta))
        step = np.linalg.solve((x * (w * p * (1 - p))[:, None]).T @ x, x.T @ (w * (y - p)))
        beta += step
        if np.abs(step).max() < 1e-10:
            break
    return beta


def numbers(d, w):
    smoker = d["smoker"] == 1
    share = lambda of: np.average(d["sick"][of], weights=w[of])
    beta = logistic(np.column_stack([np.ones(len(d)), d["age"], d["smoker"]]), d["sick"].to_numpy(), w)
    ratio = share(smoker) / share(~smoker)
    return np.array([share(np.ones(len(d), bool)), ratio, np.average(d["age"], weights=w), *beta])


def by_statsmodels(d, w):
    x = sm.add_constant(d[["age", "smoker"]])
    return sm.GLM(d["sick"], x, family=sm.families.Binomial(), freq_weights=w).fit(tol=1e-12).params.to_numpy()


def other_programs(mnar, folder):
    """One table, the same weights in three programs."""
    table, sick, labelled = world(7, 3000)
    found, weights = estimate(mnar, table, 400, folder, "--replicates", "400")
    columns = [name for name in weights if name.startswith("replicate_")]
    d = table[labelled].assign(sick=sick[labelled], weight=weights["weight_labelled_loss"][labelled])
    d = pd.concat([d.drop(columns="y"), weights.loc[labelled, columns]], axis=1).reset_index(drop=True)
    d.to_csv(folder / "d.csv", index=False)
    (folder / "survey.R").write_text(R_SCRIPT)
    said = subprocess.run(["Rscript", folder / "survey.R", folder / "d.csv"], check=True, stdout=subprocess.PIPE, text=True)
    r = {line.rsplit(",", 2)[0]: [float(v) for v in line.rsplit(",", 2)[1:]] for line in said.stdout.splitlines()}

    names = ["prevalence", "prevalence ratio", "mean age", "logistic Intercept", "logistic age", "logistic smoker"]
    own = numbers(d, d["weight"].to_numpy())
    se = np.std([numbers(d, d[name].to_numpy()) for name in columns], axis=0, ddof=1)
    models = by_statsmodels(d, d["weight"])
    models_se = np.std([by_statsmodels(d, d[name]) for name in columns], axis=0, ddof=1)
    lines = []
    for j, name in enumerate(names):
        line = {"what": name, "estimate": own[j], "se": se[j], "r_estimate": r[name][0], "r_se": r[name][1]}
        if j > 2:
            line |= {"statsmodels_estimate": models[j - 3], "statsmodels_se": models_se[j - 3]}
        lines.append(line)
    off = max(abs(line[k] / line[o] - 1) for line in lines for k, o in (("r_estimate", "estimate"), ("r_se", "se")))
    off = max(off, np.abs(models / own[3:] - 1).max(), np.abs(models_se / se[3:] - 1).max())
    k = found["classes"].index("sick")
    seeds = [estimate(mnar, table, 2, folder, "--replicates", "400", "--seed", str(s))[0] for s in (1, 2, 3)]
    return {
        "rows": len(table),
        "labels": int(labelled.sum()),
        "replicates": len(columns),
        "lines": lines,
        "largest_relative_difference": off,
        "r_type_bootstrap_prevalence_se": r["prevalence, type bootstrap"][1],
        "mnar_prevalence": found["prevalence"][k],
        "mnar_prevalence_se": found["prevalence_se"][k],
        "mnar_prevalence_se_other_seeds": [other["prevalence_se"][k] for other in seeds],
        "treated_as_known_se": weights_known(d),
    }


def weights_known(d):
    """The standard error of the prevalence if the weights were known constants."""
    w, y = d["weight"].to_numpy(), d["sick"].to_numpy()
    p = np.average(y, weights=w)
    return float(np.sqrt((w**2 * (y - p) ** 2).sum()) / w.sum())


def coverage(mnar, folder):
    hits, naive, errors, ses = np.zeros(3), np.zeros(3), [], []
    for seed in range(FIRST_SEED, FIRST_SEED + DRAWS):
        table, sick, labelled = world(seed)
        _, weights = estimate(mnar, table, REPLICATES, folder, "--interval", "information")
        x = np.column_stack([np.ones(ROWS), table["age"], table["smoker"]])[labelled]
        y = sick[labelled]
        fit = lambda w: logistic(x, y, w[labelled])
        beta = fit(weights["weight_labelled_loss"].to_numpy())
        columns = [name for name in weights if name.startswith("replicate_")]
        se = np.std([fit(weights[name].to_numpy()) for name in columns], axis=0, ddof=1)
        hits += np.abs(beta - TRUTH) <= 1.96 * se
        plain = logistic(x, y, np.ones(len(y)))
        p = 1 / (1 + np.exp(-x @ plain))
        plain_se = np.sqrt(np.diag(np.linalg.inv((x * (p * (1 - p))[:, None]).T @ x)))
        naive += np.abs(plain - TRUTH) <= 1.96 * plain_se
        errors.append(beta - TRUTH)
        ses.append(se)
    names = ["intercept", "age", "smoker"]
    return {
        "rows": ROWS,
        "draws": DRAWS,
        "replicates": REPLICATES,
        "coefficients": [
            {
                "name": names[j],
                "truth": TRUTH[j],
                "covered": hits[j] / DRAWS,
                "covered_without_weights": naive[j] / DRAWS,
                "bias": float(np.mean(errors, axis=0)[j]),
                "sd_of_estimates": float(np.std(errors, axis=0, ddof=1)[j]),
                "mean_se": float(np.mean(ses, axis=0)[j]),
            }
            for j in range(3)
        ],
    }


def share_of_sick():
    """P(sick), by the midpoints of a million quantiles of age."""
    age = np.array([norm.ppf((np.arange(1_000_000) + 0.5) / 1_000_000)])
    of = lambda smoker: (1 / (1 + np.exp(-(TRUTH[0] + TRUTH[1] * age + TRUTH[2] * smoker)))).mean()
    return 0.6 * of(0) + 0.4 * of(1)


def rubin(estimates, variances):
    """Rubin's estimate and standard error."""
    estimates, variances = np.array(estimates), np.array(variances)
    total = variances.mean(0) + (1 + 1 / len(estimates)) * estimates.var(0, ddof=1)
    return estimates.mean(0), np.sqrt(total)


def imputed(mnar, folder):
    truth, hits = np.array([share_of_sick(), *TRUTH]), np.zeros(4)
    for seed in range(FIRST_IMPUTED_SEED, FIRST_IMPUTED_SEED + IMPUTED_DRAWS):
        table, _, _ = world(seed)
        table.to_csv(folder / "t.csv", index=False)
        command = [mnar, "estimate", folder / "t.csv", "--label", "y", "--features", "all", "--classifier", "softmax"]
        command += ["--given", "none", "--interval", "information", "--quiet"]
        command += ["--imputed", folder / "l.csv", "--imputations", str(IMPUTATIONS)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        labels = pd.read_csv(folder / "l.csv")
        x = np.column_stack([np.ones(ROWS), table["age"], table["smoker"]])
        estimates, variances = [], []
        for name in (name for name in labels if name.startswith("imputed_")):
            y = (labels[name] == "sick").to_numpy().astype(float)
            beta = logistic(x, y, np.ones(ROWS))
            p = 1 / (1 + np.exp(-x @ beta))
            information = (x * (p * (1 - p))[:, None]).T @ x
            estimates.append([y.mean(), *beta])
            variances.append([y.mean() * (1 - y.mean()) / ROWS, *np.diag(np.linalg.inv(information))])
        estimate, se = rubin(estimates, variances)
        hits += np.abs(estimate - truth) <= 1.96 * se
    names = ["share of the sick", "intercept", "age", "smoker"]
    covered = [{"name": n, "truth": t, "covered": h / IMPUTED_DRAWS} for n, t, h in zip(names, truth, hits)]
    return {"rows": ROWS, "draws": IMPUTED_DRAWS, "imputations": IMPUTATIONS, "lines": covered}


def main():
    mnar, output = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        found = {"other_programs": other_programs(mnar, Path(folder)), "coverage": coverage(mnar, Path(folder))}
        found["imputed"] = imputed(mnar, Path(folder))
    output.write_text(json.dumps(found, indent=1, default=float) + "\n")
    print(json.dumps(found, indent=1, default=float))
    one = found["other_programs"]
    assert one["largest_relative_difference"] < 1e-4
    # 400 replicates know a standard error to 3.5%.
    assert all(abs(se / one["lines"][0]["r_se"] - 1) < 0.15 for se in one["mnar_prevalence_se_other_seeds"])
    assert all(line["covered"] >= 0.92 for line in found["coverage"]["coefficients"])


if __name__ == "__main__":
    main()
