"""Rows that stay where they are: sums that are updated, merged and sent as bytes, and Arrow sources that are opened again."""

import json

import numpy as np
import pytest

import mnar
from mnar import _native

pa = pytest.importorskip("pyarrow")

from mnar import _batches  # noqa: E402
from mnar._walks import Rows, Source  # noqa: E402
from mnar.arrow import LabelMechanism, evaluate, mcar_test  # noqa: E402


def table(n=6000, seed=0, phi=(0.1, 0.2, 0.5)):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    site = rng.integers(0, 3, n)
    logits = rng.normal(size=(n, 3))
    logits[np.arange(n), y] += 2
    p = np.exp(logits)
    p /= p.sum(axis=1, keepdims=True)
    seen = rng.random(n) < np.array(phi)[y] * np.array([0.6, 1.0, 1.4])[site]
    return pa.table(
        {
            **{f"p_{name}": p[:, k] for k, name in enumerate("abc")},
            "y": pa.array(np.array(list("abc"))[y], mask=~seen),
            "site": np.array(["north", "south", "west"])[site],
            "age": rng.integers(20, 80, n).astype(float),
            "fold": rng.integers(0, 7, n),
        }
    )


def arrays(rows):
    proba = np.column_stack([rows[f"p_{name}"].to_numpy() for name in "abc"])
    return proba, np.array(rows["y"].to_pylist(), dtype=object)


@pytest.fixture(autouse=True)
def quiet():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mnar.MnarWarning)
        yield


class Parts(Source):
    """A table in uneven parts, which answer in an order of their own."""

    def __init__(self, rows, turn=0):
        n = rows.num_rows
        cuts = [0, n // 10, n // 10, n // 2, n - 7, n]
        self.parts = [rows.slice(a, b - a).combine_chunks() for a, b in zip(cuts, cuts[1:])]
        self.turn, self.rows, self.jobs = turn, rows, []

    def names(self):
        return self.rows.schema.names

    def is_list(self, column):
        return pa.types.is_list(self.rows.schema.field(column).type)

    def turned(self):
        return self.parts[self.turn :] + self.parts[: self.turn]

    def census(self, layout):
        return [_batches.census(part.to_batches(max_chunksize=1000), layout) for part in self.turned()]

    def walk(self, layout, job, reader, needs):
        self.jobs.append((job, reader, needs))
        return [_batches.add(part.to_batches(max_chunksize=1000), layout, job, reader) for part in self.turned()]


def test_parts_give_the_results_of_one_machine_and_the_same_bits_in_any_order():
    rows = table()
    proba, y = arrays(rows)
    one = mnar.LabelMechanism(interval="information").fit(proba, y)
    options = json.dumps({"method": "auto"})
    found = []
    for turn in range(5):
        text, _ = Rows(Parts(rows, turn), "p_", "y").everywhere.estimate(options)
        found.append(text)
    assert len(set(found)) == 1
    phi = json.loads(found[0])["phi"]
    assert np.abs(phi - one.phi_).max() < 1e-10
    assert np.abs(np.array(json.loads(found[0])["phi_se"]) - one.phi_se_).max() < 1e-10


def test_a_bootstrap_of_parts_takes_few_passes_and_gives_the_same_bits_in_any_order():
    rows = table()
    proba, y = arrays(rows)
    one = mnar.LabelMechanism(interval="bootstrap", replicates=100, seed=1).fit(proba, y)
    options = json.dumps({"interval": "bootstrap", "replicates": 100, "seed": 1})
    found, passes = [], []
    for turn in range(2):
        source = Parts(rows, turn)
        found.append(Rows(source, "p_", "y").everywhere.estimate(options)[0])
        passes.append(len(source.jobs))
    assert found[0] == found[1]
    assert max(passes) <= 12
    several = json.loads(found[0])
    assert np.abs(several["phi"] - one.phi_).max() < 1e-10
    assert several["interval"]["kind"] == "bootstrap"
    # Other draws of as many replicates.
    assert np.abs(np.log(np.array(several["phi_se"]) / one.phi_se_)).max() < 0.4


def test_an_accumulator_is_updated_merged_and_finished():
    rows = table(2000)
    source = Parts(rows)
    seen = Rows(source, "p_", "y")
    seen.everywhere.test("{}")
    job, reader, needs = source.jobs[0]
    assert needs == "all"

    def add(parts):
        sums = _native.Accumulator(job, reader)
        for part in parts:
            for batch in part.to_batches():
                layout = seen.layout
                sums.update(_batches.probabilities(batch, layout, 0), _batches.codes(batch, layout), [])
        return sums

    together = add([rows.slice(0, 900).combine_chunks(), rows.slice(900).combine_chunks()])
    first, second = add([rows.slice(0, 900).combine_chunks()]), add([rows.slice(900).combine_chunks()])
    first.merge(second.finish())
    assert first.finish() == together.finish()
    assert first.finish() == _native.Accumulator(first.finish(), reader).finish()  # bytes there and back
    empty = _native.Accumulator(job, reader)
    assert empty.finish() == job
    with pytest.raises(mnar.InputError, match="another version"):
        _native.Accumulator(job[:4] + b"\x63" + job[5:], reader)
    with pytest.raises(mnar.InputError, match="not of the pass"):
        first.merge(job + b"\x00")


def test_columns_groups_and_weights_are_those_of_one_machine():
    rows = table()
    proba, y = arrays(rows)
    columns = {"site": rows["site"].to_numpy(zero_copy_only=False), "age": rows["age"].to_numpy()}
    one = mnar.LabelMechanism(interval="information").fit(
        proba, y, given=columns, products=["site*age"], by={"site": columns["site"]}
    )
    walked = LabelMechanism().fit(rows, "p_", "y", given=["site", "age"], products=["site*age"], by="site")
    assert np.abs(walked.phi_ - one.phi_).max() < 1e-10
    for ours, theirs in zip(walked.found_["groups"], one.found_["groups"]):
        assert ours["group"] == theirs["group"] and ours["n_labelled"] == theirs["n_labelled"]
        assert np.abs(np.array(ours["prevalence"]) - theirs["prevalence"]).max() < 1e-10
    weights = np.concatenate(list(walked.weights(rows)))
    assert np.abs(weights - one.weights(y)).max() < 1e-8
    for unlabelled in (False, True):
        method = "unlabelled_proba" if unlabelled else "population_proba"
        ours = np.concatenate(list(getattr(walked, method)(rows)))
        assert np.abs(ours - getattr(one, method)(proba)).max() < 1e-8


def test_the_test_is_that_of_one_machine():
    rows = table()
    proba, y = arrays(rows)
    one = mnar.mcar_test(proba, y, rows["fold"].to_numpy(), permutations=1, power=0.9)
    walked = mcar_test(rows, "p_", "y", fold="fold", power=0.9)
    assert walked.statistic == pytest.approx(one.statistic, rel=1e-10) and walked.df == one.df
    assert walked.pvalue == pytest.approx(one.found["p_value_chi_square"], rel=1e-8)
    assert walked.found["folds"] == 7
    # Its size where labels are blind to the class: the p-values are uniform.
    pvalues = [mcar_test(blind(seed), "p_", "y").pvalue for seed in range(60)]
    assert 0.3 < np.mean(pvalues) < 0.7 and np.mean(np.array(pvalues) < 0.1) < 0.25


def blind(seed):
    rows = table(800, seed, phi=(0.3, 0.3, 0.3))
    rng = np.random.default_rng(seed + 1000)
    truth = np.argmax(np.column_stack([rows[f"p_{name}"].to_numpy() for name in "abc"]), axis=1)
    y = pa.array(np.array(list("abc"))[truth], mask=rng.random(800) > 0.3)
    return rows.set_column(rows.schema.get_field_index("y"), "y", y)


@pytest.mark.parametrize("given", [None, "site"])
def test_the_evaluation_is_that_of_one_machine(given):
    rows = table()
    proba, y = arrays(rows)
    site = {"site": rows["site"].to_numpy(zero_copy_only=False)}
    one = mnar.evaluate(proba, y, given=site if given else None, by=site, replicates=0)
    walked = evaluate(rows, "p_", "y", given=given, by="site")
    assert {"accuracy", "recall", "precision", "log_loss", "brier"} <= {metric["name"] for metric in walked.metrics}
    for metric in walked.metrics:
        other = one.get(metric["name"], metric["class"], group=metric["group"], population=metric["population"])
        assert metric["corrected"] == pytest.approx(other["corrected"], abs=1e-9)
    low, high = walked.get("accuracy")["ci95"]
    assert low < walked.get("accuracy")["corrected"] < high and high - low < 0.1
    assert "jackknife" in walked.summary()
    known = evaluate(rows, "p_", "y", phi=[0.1, 0.2, 0.5], replicates=0)
    assert known.get("accuracy")["ci95"] is None
    with pytest.raises(mnar.SettingsError, match="labelled posteriors"):
        evaluate(rows, "p_", "y", posterior="population")


def test_any_source_that_can_be_opened_again(tmp_path):
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    rows = table()
    (tmp_path / "rows").mkdir()
    for part in range(3):
        pq.write_table(rows.slice(part * 2000, 2000), tmp_path / "rows" / f"{part}.parquet", row_group_size=500)
    expected = LabelMechanism().fit(rows, "p_", "y").phi_
    sources = [tmp_path / "rows", ds.dataset(tmp_path / "rows"), lambda: rows.to_batches(max_chunksize=700), lambda: rows]
    try:
        import polars

        sources.append(polars.scan_parquet(tmp_path / "rows" / "*.parquet"))
    except ImportError:
        pass
    try:
        import duckdb

        sources.append(duckdb.read_parquet(str(tmp_path / "rows" / "*.parquet")))
    except ImportError:
        pass
    for source in sources:
        walked = LabelMechanism().fit(source, "p_", "y", given="site")
        assert walked.passes_ > 3
        assert np.abs(LabelMechanism().fit(source, "p_", "y").phi_ - expected).max() < 1e-10
    with pytest.raises(mnar.InputError, match="opened|read again"):
        LabelMechanism().fit(rows.to_reader(), "p_", "y")


def test_ray_data(tmp_path):
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    import pyarrow.parquet as pq

    rows = table()
    for part in range(3):
        pq.write_table(rows.slice(part * 2000, 2000), tmp_path / f"{part}.parquet")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        source = ray.data.read_parquet(str(tmp_path))
        expected = LabelMechanism().fit(rows, "p_", "y").phi_
        found = [LabelMechanism().fit(source, "p_", "y").phi_ for _ in range(2)]
        assert np.abs(found[0] - expected).max() < 1e-10
        assert found[0].tobytes() == found[1].tobytes()
        assert mcar_test(source, "p_", "y").pvalue == pytest.approx(mcar_test(rows, "p_", "y").pvalue, abs=1e-9)
    finally:
        ray.shutdown()


def test_lists_numbers_and_named_classes():
    rows = table()
    proba, y = arrays(rows)
    numbers = np.array([-1 if label is None else "abc".index(label) for label in y])
    expected = mnar.LabelMechanism(interval="information").fit(proba, y).phi_
    lists = pa.table({"p": pa.array(proba.tolist()), "y": numbers})
    assert np.abs(LabelMechanism().fit(lists, "p", "y").phi_ - expected).max() < 1e-10
    named = rows.rename_columns(["one", "two", "three", *rows.schema.names[3:]])
    fitted = LabelMechanism().fit(named, ["three", "one", "two"], "y", classes=["c", "a", "b"])
    assert np.abs(fitted.phi_ - expected[[2, 0, 1]]).max() < 1e-10
    logits = pa.table({**{f"l{k}": np.log(proba[:, k]) + 3 for k in range(3)}, "y": numbers.astype(float)})
    fitted = LabelMechanism(logits=True).fit(logits, ["l0", "l1", "l2"], "y")
    assert np.abs(fitted.phi_ - expected).max() < 1e-10 and fitted.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda rows: rows.set_column(0, "p_a", pa.array([None, *rows["p_a"].to_pylist()[1:]], pa.float64())), "row 1.*NaN"),
        (lambda rows: rows.set_column(0, "p_a", pa.array(["high"] * rows.num_rows)), "`p_a` is of type string"),
        (lambda rows: rows.set_column(0, "p_a", pa.array(np.full(rows.num_rows, 1.5))), "row 1"),
        (lambda rows: rows.set_column(3, "y", pa.nulls(rows.num_rows, pa.string())), "none of the 6000 rows has a label"),
        (lambda rows: rows.set_column(3, "y", pa.array(["a"] * rows.num_rows)), "all 6000 rows have a label"),
        (lambda rows: rows.set_column(3, "y", pa.array(["d", *rows["y"].to_pylist()[1:]])), "label 'd' is not among"),
        (lambda rows: rows.set_column(3, "y", pa.array(["", *rows["y"].to_pylist()[1:]])), "empty texts"),
        (lambda rows: rows.set_column(3, "y", pa.array(np.full(rows.num_rows, 0.5))), "fraction"),
        (lambda rows: rows.drop_columns(["y"]), "no column `y`"),
        (lambda rows: rows.slice(0, 0), "no rows"),
    ],
)
def test_what_is_wrong_is_said(change, message):
    with pytest.raises(mnar.MnarError, match=message):
        LabelMechanism().fit(change(table()), "p_", "y")


def test_settings_that_need_rows_in_memory_are_refused():
    rows = table()
    with pytest.raises(mnar.SettingsError, match="observed information"):
        LabelMechanism(interval="profile").fit(rows, "p_", "y")
    with pytest.raises(mnar.SettingsError, match="by class alone"):
        LabelMechanism(interval="bootstrap").fit(rows, "p_", "y", given="site")
    with pytest.raises(mnar.SettingsError, match="permutation test only"):
        mcar_test(rows, "p_", "y", method="lrt")
    with pytest.raises(mnar.SettingsError, match="in memory"):
        LabelMechanism().fit(rows, "p_", "y").report("page.html")
    with pytest.raises(mnar.InputError, match="same value"):
        constant = rows.append_column("year", pa.array([2020.0] * rows.num_rows))
        LabelMechanism().fit(constant, "p_", "y", given="year")
    with pytest.raises(mnar.InputError, match="timestamp"):
        when = rows.append_column("when", pa.array([0] * rows.num_rows, pa.timestamp("s")))
        LabelMechanism().fit(when, "p_", "y", given="when")
