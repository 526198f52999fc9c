"""`mnar.spark` on real executors: two processes with a core each."""

import os
import re
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import mnar

pytest.importorskip("pyspark")
pa = pytest.importorskip("pyarrow")

from test_walks import arrays, quiet, table  # noqa: E402, F401


@pytest.fixture(scope="module")
def spark():
    os.environ.update(
        SPARK_LOCAL_IP="127.0.0.1", SPARK_LOCAL_HOSTNAME="localhost", PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable
    )
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("mnar")
    session = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "4").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def rows():
    return table()


@pytest.fixture(scope="module")
def files(rows, tmp_path_factory):
    """Six files, one of them without a label, and a Spark partition for each."""
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("rows")
    unlabelled = rows.filter(pa.compute.is_null(rows["y"]))
    labelled = rows.filter(pa.compute.is_valid(rows["y"]))
    parts = [unlabelled.slice(0, 500), *[pa.concat_tables([labelled.slice(k * 400, 400 if k < 4 else None), unlabelled.slice(500 + k * 800, 800 if k < 4 else None)]) for k in range(5)]]
    for k, part in enumerate(parts):
        pq.write_table(part, folder / f"{k}.parquet")
    return folder, pa.concat_tables(parts)


@pytest.fixture(scope="module")
def frame(spark, files):
    from functools import reduce

    folder, _ = files
    return reduce(lambda a, b: a.unionByName(b), [spark.read.parquet(str(folder / f"{k}.parquet")) for k in range(6)])


@pytest.mark.parametrize("cache", [False, True])
def test_the_estimate_is_that_of_one_machine(spark, frame, files, cache):
    from mnar.spark import LabelMechanism

    proba, y = arrays(files[1])
    one = mnar.LabelMechanism(interval="information").fit(proba, y)
    several = LabelMechanism().fit(frame, "p_", "y", cache=cache)
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty()
    assert frame.rdd.getNumPartitions() >= 6
    assert np.abs(several.phi_ - one.phi_).max() < 1e-10
    assert np.abs(several.phi_se_ - one.phi_se_).max() < 1e-10
    assert several.classes_.tolist() == ["a", "b", "c"]
    assert "phi" in several.summary()
    assert several.found_["n"] == 6000


def test_the_same_bits_in_another_order_of_the_partitions(spark, files):
    from functools import reduce

    from mnar.spark import LabelMechanism, mcar_test

    folder, _ = files
    found = []
    for order in (range(6), reversed(range(6))):
        parts = [spark.read.parquet(str(folder / f"{k}.parquet")) for k in order]
        frame = reduce(lambda a, b: a.unionByName(b), parts)
        fitted = LabelMechanism().fit(frame, "p_", "y", given=["site", "age"])
        cached = LabelMechanism().fit(frame, "p_", "y", cache=True)
        bits = [estimate.tobytes() for estimate in (fitted.phi_, fitted.phi_se_, cached.phi_, cached.phi_se_)]
        found.append((*bits, mcar_test(frame, "p_", "y", cache=True).statistic))
    assert found[0] == found[1]


def test_columns_groups_and_transforms(frame, files):
    from mnar.spark import LabelMechanism

    proba, y = arrays(files[1])
    columns = {"site": files[1]["site"].to_numpy(zero_copy_only=False), "age": files[1]["age"].to_numpy()}
    one = mnar.LabelMechanism(interval="information").fit(proba, y, given=columns, by={"site": columns["site"]})
    several = LabelMechanism().fit(frame, "p_", "y", given=["site", "age"], by="site")
    assert np.abs(several.phi_ - one.phi_).max() < 1e-10
    for ours, theirs in zip(several.found_["groups"], one.found_["groups"]):
        assert np.abs(np.array(ours["prevalence"]) - theirs["prevalence"]).max() < 1e-10
    out = several.unlabelled_proba(several.population_proba(several.weights(frame)))
    assert out.columns == [*frame.columns, "weight", *[f"{of}_{k}" for of in ("population", "unlabelled") for k in "abc"]]
    out = out.toPandas()
    assert np.abs(np.sort(out["weight"]) - np.sort(one.weights(y))).max() < 1e-8
    at = dict(zip(map(tuple, proba), one.population_proba(proba)))
    ours = out[["population_a", "population_b", "population_c"]].to_numpy()
    theirs = np.array([at[tuple(row)] for row in out[["p_a", "p_b", "p_c"]].to_numpy()])
    assert np.abs(ours - theirs).max() < 1e-8
    with pytest.raises(mnar.InputError, match="`site` already"):
        several.weights(frame, column="site")


def test_a_bootstrap_takes_few_passes(frame, files):
    from mnar.spark import LabelMechanism

    proba, y = arrays(files[1])
    one = mnar.LabelMechanism(interval="bootstrap", replicates=60, seed=2).fit(proba, y)
    several, again = [LabelMechanism(interval="bootstrap", replicates=60, seed=2).fit(frame, "p_", "y") for _ in range(2)]
    assert several.passes_ <= 14
    assert several.phi_se_.tobytes() == again.phi_se_.tobytes()
    assert np.abs(several.phi_ - one.phi_).max() < 1e-10
    # Other draws of as many replicates.
    assert np.abs(np.log(several.phi_se_ / one.phi_se_)).max() < 0.5


def test_the_test_is_that_of_one_machine(frame, files):
    from mnar.spark import mcar_test

    proba, y = arrays(files[1])
    one = mnar.mcar_test(proba, y, files[1]["fold"].to_numpy(), permutations=1)
    several = mcar_test(frame, "p_", "y", fold="fold")
    assert several.statistic == pytest.approx(one.statistic, rel=1e-10) and several.df == one.df


def test_the_evaluation_is_that_of_one_machine(frame, files):
    from mnar.spark import evaluate

    proba, y = arrays(files[1])
    site = {"site": files[1]["site"].to_numpy(zero_copy_only=False)}
    one = mnar.evaluate(proba, y, by=site, replicates=0)
    several = evaluate(frame, "p_", "y", by="site", cache=True)
    for metric in several.metrics:
        other = one.get(metric["name"], metric["class"], group=metric["group"], population=metric["population"])
        assert metric["corrected"] == pytest.approx(other["corrected"], abs=1e-9)
    assert several.get("accuracy")["ci95"] is not None


def test_bad_partitions_are_named(spark, frame, rows):
    from pyspark.sql import functions as F

    from mnar.spark import LabelMechanism

    def fit(other, **settings):
        return LabelMechanism().fit(other, "p_", "y", **settings)

    # Empty partitions, and more of them than rows, are no problem.
    few = frame.filter(F.col("age") > 30).repartition(40)
    assert np.isfinite(fit(few).phi_).all()
    last = frame.withColumn("number", F.spark_partition_id())
    wrong = last.withColumn("p_a", F.when((F.col("number") == 3) & (F.col("age") == 50), F.lit(1.5)).otherwise(F.col("p_a")))
    for cache in (False, True):
        with pytest.raises(mnar.InputError, match=r"partition 3: row \d+"):
            fit(wrong, cache=cache)
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty()
    with pytest.raises(mnar.InputError, match="partition 2: row .*NaN"):
        fit(last.withColumn("p_b", F.when(F.col("number") != 2, F.col("p_b"))))
    with pytest.raises(mnar.InputError, match="label 'd' is not among the classes"):
        fit(last.withColumn("y", F.when(F.col("number") == 1, F.lit("d")).otherwise(F.col("y"))))
    with pytest.raises(mnar.InputError, match="`p_a` is of type"):
        fit(frame.withColumn("p_a", F.col("p_a").cast("string")))
    with pytest.raises(mnar.InputError, match="none of the 6000 rows has a label"):
        fit(frame.withColumn("y", F.lit(None).cast("string")))
    with pytest.raises(mnar.InputError, match="class `c` has no label"):
        fit(frame.withColumn("y", F.when(F.col("y") != "c", F.col("y"))))
    with pytest.raises(mnar.InputError, match="`y` is of type"):
        fit(frame.withColumn("y", F.current_date()))
    with pytest.raises(mnar.InputError, match="there is no column `site2`"):
        fit(frame, given="site2")
    with pytest.raises(mnar.InputError, match="DataFrame of Spark"):
        fit(rows)


def test_a_class_in_one_partition_alone(frame, files):
    """The partitions without a label of it, and one without any label, add nothing to it: as on one machine."""
    from pyspark.sql import functions as F

    from mnar.spark import LabelMechanism

    partition = F.spark_partition_id()
    lone = frame.withColumn("y", F.when((F.col("y") != "c") | (partition == 3), F.col("y")))
    proba, y = arrays(pa.Table.from_pandas(lone.toPandas()))
    assert 0 < (y == "c").sum() < (arrays(files[1])[1] == "c").sum()
    one = mnar.LabelMechanism(interval="information").fit(proba, y)
    several = LabelMechanism().fit(lone, "p_", "y")
    assert np.abs(several.phi_ - one.phi_).max() < 1e-10
    assert np.abs(several.phi_se_ - one.phi_se_).max() < 1e-9


def test_a_killed_executor_changes_no_bit(spark, frame):
    from mnar.spark import LabelMechanism

    expected = LabelMechanism().fit(frame, "p_", "y")

    def kill():
        time.sleep(3)
        executors = [line for line in os.popen("pgrep -f CoarseGrainedExecutorBackend").read().split()]
        own = [int(pid) for pid in executors if str(os.getpid()) in _ancestors(int(pid))]
        if own:
            os.kill(own[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    again = [LabelMechanism().fit(frame, "p_", "y") for _ in range(2)]
    killer.join()
    assert all(fitted.phi_.tobytes() == expected.phi_.tobytes() for fitted in again)


def _ancestors(pid):
    found = []
    while pid > 1:
        found.append(str(pid))
        try:
            with open(f"/proc/{pid}/stat") as status:
                pid = int(status.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            break
    return found


def test_the_how_to_page(spark, tmp_path, monkeypatch):
    """The code of the page runs from top to bottom, on a table as it describes it."""
    import pandas as pd

    page = next((up / "docs/howto-spark.md" for up in Path(__file__).parents if (up / "docs/howto-spark.md").is_file()), None)
    if page is None:
        pytest.skip("the tests were copied away from docs/")

    rng = np.random.default_rng(0)
    sick = rng.random(3000) < 0.3
    seen = rng.random(3000) < np.where(sick, 0.4, 0.1)
    table = pd.DataFrame({
        "patient": np.arange(3000),
        "age": rng.normal(50, 12, 3000),
        "bmi": rng.normal(26, 4, 3000) + 2 * sick,
        "glucose": rng.normal(100, 15, 3000) + 30 * sick,
        "diagnosis": np.where(seen, np.where(sick, "sick", "healthy"), None),
    })
    monkeypatch.chdir(tmp_path)
    table.to_parquet("patients.parquet")
    spark.read.parquet(str(tmp_path / "patients.parquet")).repartition(4).write.parquet(str(tmp_path / "patients"))
    names = {"spark": spark}
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        for folder in ("patients", "corrected"):
            block = block.replace(f'"{folder}/"', f'"{tmp_path}/{folder}/"')
        exec(block, names)
    mechanism = names["mechanism"]
    assert abs(mechanism.prevalence_[mechanism.classes_.tolist().index("sick")] - sick.mean()) < 0.06
    corrected = spark.read.parquet(str(tmp_path / "corrected"))
    assert {"weight", "population_sick", "population_healthy"} <= set(corrected.columns)
    assert corrected.count() == 3000
