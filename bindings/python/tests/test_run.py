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


def same(found):
    """A report without what differs between two runs of the same thing."""
    found = json.loads(json.dumps(found))
    for name in ("created", "seconds", "command", "title"):
        del found[name]
    for epoch in found["training"]["debiased"]["history"]:
        del epoch["seconds"]
    for step in found["next"]:
        step.pop("command", None)
    return found


@pytest.fixture(scope="module")
def mixed(frame):
    """Numbers, whole numbers, booleans, names with gaps and categories, as tables have them."""
    rng = np.random.default_rng(1)
    n = len(frame)
    return frame.assign(
        count=rng.integers(0, 9, n),
        flag=rng.random(n) < 0.3,
        ward=pd.Series(np.where(rng.random(n) < 0.1, None, rng.choice(["north", "south"], n)), dtype=object),
        site=pd.Categorical(rng.choice(["a", "b", "c"], n)),
        x0=frame["x0"].where(rng.random(n) > 0.05),
    )


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_table_in_memory_gives_the_bits_of_its_file(mixed, tmp_path, monkeypatch, library):
    path = tmp_path / "clinic.csv"
    mixed.to_csv(path, index=False)
    file = mnar.fit(path, "tumour", out=tmp_path / "file", **QUICK)
    text = mixed.astype({"site": str})
    columns = {name: [None if value is None or value != value else value for value in text[name]] for name in text}
    data = mixed if library == "pandas" else pl.DataFrame(columns)
    with monkeypatch.context() as patch:
        # The table is never written to disk.
        patch.setattr(pd.DataFrame, "to_csv", None)
        patch.setattr(pl.DataFrame, "write_csv", None)
        table = mnar.fit(data, "tumour", out=tmp_path / "table", **QUICK)
    assert same(table.found) == same(file.found)
    for name in ("predictions.csv", "model/weights.safetensors", "settings.toml"):
        assert (tmp_path / "table" / name).read_bytes() == (tmp_path / "file" / name).read_bytes(), name
    predicted = table.predict(data)
    table.predict(path, output=tmp_path / "p.csv")
    for name, column in pd.read_csv(tmp_path / "p.csv").items():
        assert list(predicted[name]) == list(column), name


def test_settings_can_be_given_back(frame, tmp_path):
    run = mnar.fit(frame, label="tumour", out=tmp_path / "run", **QUICK)
    import tomllib

    settings = tomllib.loads((tmp_path / "run" / "settings.toml").read_text())
    again = mnar.fit(frame, out=tmp_path / "again", **{name.replace("-", "_"): value for name, value in settings.items()})
    assert same(again.found) == same(run.found)


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
    with_sets = run.predict(frame, sets=0.9)
    assert with_sets["set_size"].between(0, 2).all() and set(with_sets["set"]) <= {"", "benign", "malignant", "benign | malignant"}
    moved = run.predict(frame, shares={"benign": 0.999, "malignant": 0.001})
    assert (moved["p_benign"] >= predicted["p_benign"] - 1e-12).all()
    with pytest.raises(mnar.SettingsError, match="set_kind"):
        run.predict(frame, sets=0.9, set_kind="all")
    assert (tmp_path / "p.csv").exists()


def test_a_file_is_what_the_command_line_does(frame, tmp_path):
    path = tmp_path / "clinic.csv"
    frame.to_csv(path, index=False)
    run = mnar.fit(path, "tumour", out=tmp_path / "python", **QUICK)
    words = ["--epochs", "3", "--replicates", "20", "--permutations", "99", "--no-baseline", "--quiet"]
    command = [sys.executable, "-m", "mnar", "fit", path, "--label", "tumour", "--out", tmp_path / "shell", *words]
    subprocess.run(command, check=True, capture_output=True)
    theirs = json.loads((tmp_path / "shell" / "report.json").read_text())
    assert same(run.found) == same(theirs)
    for name in ("predictions.csv", "settings.toml", "model/weights.safetensors"):
        assert (tmp_path / "python" / name).read_bytes() == (tmp_path / "shell" / name).read_bytes(), name


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
    with pytest.raises(mnar.RunError, match=r'(?s)^the table: row 4, column `x1`.*hint: missing="high"'):
        mnar.fit(spoilt, label="tumour", out=tmp_path / "run", **QUICK)
    (tmp_path / "file").write_text("")
    with pytest.raises(mnar.RunError, match=r'(?s)is a file, but a run needs a folder.*hint: out=".*-2"'):
        mnar.fit(frame, label="tumour", out=tmp_path / "file", **QUICK)
    with pytest.raises(mnar.SettingsError, match="no option `epoch`; did you mean `epochs`"):
        mnar.fit(frame, label="tumour", out=tmp_path / "run", epoch=3)


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


def test_memory_and_budget(frame, tmp_path):
    path = tmp_path / "large.csv"
    pd.concat([frame] * 800).to_csv(path, index=False)
    with pytest.raises(mnar.RunError, match="memory") as raised:
        mnar.fit(path, "tumour", out=tmp_path / "run", memory="8MB")
    assert "hint: leave out `memory`" in str(raised.value)
    with pytest.raises(mnar.SettingsError, match="memory="):
        mnar.fit(frame, "tumour", out=tmp_path / "run", memory="lots")
    run = mnar.fit(frame, "tumour", out=tmp_path / "run", memory="1GB", budget="60s", **QUICK)
    with pytest.raises(mnar.RunError, match="memory"):
        run.predict(path, memory="8MB")
    assert len(run.predict(frame, memory="1GB")) == len(frame)


def test_predictions_say_what_was_not_learnt(frame, tmp_path):
    sites = np.where(np.arange(len(frame)) % 2 == 0, "north", "south")
    run = mnar.fit(frame.assign(site=sites), label="tumour", out=tmp_path / "run", **QUICK)
    new = frame.head(5).assign(site="east").drop(columns="tumour")
    with pytest.warns(mnar.MnarWarning, match="5 rows have a value of `site` that was met at most once in training"):
        run.predict(new)
    path = tmp_path / "new.csv"
    new.to_csv(path, index=False)
    with pytest.raises(mnar.MnarError, match="would replace it"):
        run.predict(path, path)
