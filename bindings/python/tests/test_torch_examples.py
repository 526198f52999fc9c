"""The examples in PyTorch run, and debiasing one takes as few lines as docs/torch.md says."""

import difflib
import importlib.util
import re
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
PAGE = Path(__file__).resolve().parents[3] / "docs" / "torch.md"


def test_debiasing_fixmatch_changes_few_lines():
    plain, debiased = ((EXAMPLES / name).read_text().splitlines() for name in ("fixmatch.py", "fixmatch_debiased.py"))
    lines = difflib.unified_diff(plain, debiased, n=0, lineterm="")
    changes = [line for line in lines if line[0] in "+-" and not line.startswith(("+++", "---"))]
    removed, added = (sum(line.startswith(sign) for line in changes) for sign in "-+")
    assert 0 < removed + added <= 20
    said = re.search(r"differ in (\d+)\s+removed and (\d+)\s+added lines", PAGE.read_text())
    assert said and (removed, added) == (int(said[1]), int(said[2]))


@pytest.mark.parametrize("name", ["fixmatch", "fixmatch_debiased"])
def test_examples_run(name):
    pytest.importorskip("torch", reason="PyTorch is not installed; MNAR_TORCH=1 ./test-wheel installs it")
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    assert 0.3 < example.train(seed=0, steps=100) < 1
