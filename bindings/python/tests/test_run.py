"""The whole pipeline from Python."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_breast_cancer

import mnar

QUICK = {"epochs": 3, "replicates": 20, "permutations": 99, "no_baseline": True}


@pytest.fixture(scope="module")
def frame():
    X, truth = load_breast_cancer(return_X_y=True)
    table = pd.DataFrame(X[:, :6], columns=[f"x{i}" for i in range(6)])
    seen = np.random.default_rng(0).random(len(truth)) < np.where(truth == 0, 0.5, 0.1)
    table["tumour"] = np.where(seen, np.where(truth == 0, "malignant", "benign"), None)
    return table


def test_a_table(frame, tmp_path):
    run = mnar.fit(frame, label="tumour", out=tmp_path / "run", **QUICK)
    assert run.classes == ["benign", "malignant"] and run.phi["malignant"] > run.phi["benign"]
    assert run.pvalue < 0.05 and sum(run.prevalence.values()) == pytest.approx(1)
    assert (tmp_path / "run" / "report.html").read_text() == run.report_html
    assert json.loads((tmp_path / "run" / "report.json").read_text()) == run.found
    assert run._repr_html_().startswith("<iframe")
    predicted = run.predict(frame.drop(columns="tumour"))
    assert len(predicted) == len(frame) and {"predicted", "p_benign", "u_malignant"} <= set(predicted.columns)
    assert run.predict(frame, output=tmp_path / "p.csv") is None
    assert (tmp_path / "p.csv").exists()


def test_a_file_is_what_the_command_line_does(frame, tmp_path):
    path = tmp_path / "clinic.csv"
    frame.to_csv(path, index=False)
    run = mnar.fit(path, "tumour", out=tmp_path / "python", **QUICK)
    words = ["--epochs", "3", "--replicates", "20", "--permutations", "99", "--no-baseline", "--quiet"]
    command = [sys.executable, "-m", "mnar", "fit", path, "--label", "tumour", "--out", tmp_path / "shell", *words]
    subprocess.run(command, check=True, capture_output=True)
    theirs = json.loads((tmp_path / "shell" / "report.json").read_text())
    for key in ("phi", "phi_ci95", "prevalence", "p_value", "statistic", "training_phi", "uncertain"):
        assert run.found[key] == theirs[key], key
    assert run.found["debiased"]["held_out"] == theirs["debiased"]["held_out"]
    losses = [[epoch["loss"] for epoch in found["debiased"]["history"]] for found in (run.found, theirs)]
    assert losses[0] == losses[1]


def test_rows_keep_their_names(frame, tmp_path):
    names = [f"{9000 - i:05}" for i in range(len(frame))]
    named = frame.assign(patient=names)
    run = mnar.fit(named, label="tumour", out=tmp_path / "run", id="patient", **QUICK)
    assert list(run.predict(named, id="patient")["patient"]) == names
    assert "patient" not in run.predict(named).columns


def test_polars(frame, tmp_path):
    columns = {name: [None if value != value else value for value in frame[name]] for name in frame}
    table = pl.DataFrame(columns)
    run = mnar.fit(table, label="tumour", out=tmp_path / "run", **QUICK)
    assert run.classes == ["benign", "malignant"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "tumor"}, "tumou?r"),
        ({"label": "tumour", "epoch": 3}, "`epoch`"),
        ({"label": "tumour", "epochs": "many"}, "many"),
        ({"label": "tumour", "method": "magic"}, "magic"),
        ({"label": "tumour", "ignore": ["nothing"]}, "nothing"),
    ],
)
def test_wrong_options(frame, tmp_path, options, message):
    with pytest.raises(mnar.MnarError, match=message):
        mnar.fit(frame, out=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_errors_speak_of_the_table_and_of_keywords(frame, tmp_path):
    spoilt = frame.assign(x1=frame["x1"].astype(object))
    spoilt.loc[3, "x1"] = "high"
    with pytest.raises(mnar.RunError, match=r"^the table: row 4, column `x1`.*`missing='high'`"):
        mnar.fit(spoilt, label="tumour", out=tmp_path / "run", **QUICK)
    (tmp_path / "file").write_text("")
    with pytest.raises(mnar.RunError, match="is a file, but the run needs a folder; choose another one with `out`"):
        mnar.fit(frame, label="tumour", out=tmp_path / "file", **QUICK)


def test_wrong_data(tmp_path):
    with pytest.raises(mnar.MnarError, match="nowhere.csv"):
        mnar.fit(tmp_path / "nowhere.csv", label="y", out=tmp_path / "run")
    with pytest.raises(mnar.InputError, match="pandas or a polars"):
        mnar.fit([1, 2, 3], label="y")


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
@pytest.mark.parametrize("work", ["bootstrap", "fit"])
def test_ctrl_c(frame, tmp_path, work):
    """Ctrl-C ends long work within seconds, as KeyboardInterrupt."""
    path = tmp_path / "clinic.csv"
    frame.to_csv(path, index=False)
    code = {
        "bootstrap": """
            import numpy as np, mnar
            rng = np.random.default_rng(0)
            p = rng.dirichlet(np.ones(5), 200_000)
            y = np.where(rng.random(200_000) < 0.1, rng.integers(0, 5, 200_000), -1)
            print("begun", flush=True)
            mnar.LabelMechanism(interval="bootstrap", replicates=100_000).fit(p, y)
        """,
        "fit": f"""
            import mnar
            print("begun", flush=True)
            mnar.fit({str(path)!r}, label="tumour", out={str(tmp_path / "run")!r}, epochs=100_000)
        """,
    }[work]
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "begun\n"
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0 and "KeyboardInterrupt" in err, err
    if work == "fit":
        assert (tmp_path / "run" / "settings.toml").exists()
