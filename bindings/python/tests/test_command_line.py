"""The same numbers as the command line on the same file, to the last bit."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import masked

from mnar import LabelMechanism, mcar_test


def command(*words):
    done = subprocess.run([sys.executable, "-m", "mnar", *map(str, words)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def table(tmp_path):
    proba, y, _ = masked(n=900, seed=3)
    path = tmp_path / "predictions.csv"
    names = np.array(["ant", "bee", "cow"])
    frame = pd.DataFrame(proba, columns=[f"p_{name}" for name in names])
    frame["y"] = pd.Series([names[code] if code >= 0 else None for code in y], dtype=object)
    frame["fold"] = np.arange(len(y)) % 4
    frame.to_csv(path, index=False)
    return path, frame, frame[[f"p_{name}" for name in names]]


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        ([], {}),
        (["--interval", "information", "--calibrate", "none"], {"interval": "information", "calibrate": "none"}),
        (["--interval", "profile", "--seed", "7"], {"interval": "profile", "seed": 7}),
        (["--prior-weight", "5", "--replicates", "40"], {"prior_weight": 5.0, "replicates": 40}),
        (["--method", "moments", "--shares", "balanced"], {"method": "moments", "shares": "balanced"}),
        (["--method", "known", "--phi", "0.5,0.4,0.3"], {"method": "known", "phi": [0.5, 0.4, 0.3]}),
        (["--method", "confusion", "--replicates", "30"], {"method": "confusion", "replicates": 30}),
        (["--posterior", "population", "--replicates", "30"], {"posterior": "population", "replicates": 30}),
        (["--sensitivity", "0.5,2"], {"sensitivity": [0.5, 2]}),
    ],
)
def test_estimate(table, words, settings):
    path, frame, proba = table
    code, out, err = command("estimate", path, "--label", "y", "--format", "json", *words)
    assert code == 0, err
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mechanism = LabelMechanism(**settings).fit(proba, frame["y"])
    assert mechanism.found_ == json.loads(out)


def test_summary_is_the_text(table):
    path, frame, proba = table
    _, out, _ = command("estimate", path, "--label", "y", "--fold", "fold")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mechanism = LabelMechanism().fit(proba, frame["y"], fold=frame["fold"])
    # But for the commands that come next, which are not Python.
    assert mechanism.summary() == "".join(line for line in out.splitlines(keepends=True) if "     mnar " not in line)


@pytest.mark.parametrize("method", ["auto", "lrt", "lrt-bootstrap", "moments-bootstrap"])
def test_test(table, method):
    path, frame, proba = table
    words = ["--fold", "fold", "--method", method, "--replicates", "29", "--permutations", "999", "--power", "0.9"]
    code, out, err = command("test", path, "--label", "y", "--format", "json", *words)
    assert code == 0, err
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = mcar_test(
            proba, frame["y"], frame["fold"], method=method, replicates=29, permutations=999, power=0.9
        )
    assert found.found == json.loads(out)
    assert (found.pvalue, found.statistic) == (json.loads(out)["p_value"], json.loads(out)["statistic"])


def test_exit_codes(tmp_path):
    assert command("--version")[0] == 0
    code, _, err = command("estimate", tmp_path / "none.csv", "--label", "y")
    assert code == 2 and "none.csv" in err
    assert command("estimate")[0] == 2
