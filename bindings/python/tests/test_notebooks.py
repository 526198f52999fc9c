"""The notebooks run from top to bottom, and print what they hold. `MNAR_BLESS=1` writes their outputs again."""

import os
import sys
from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

FOLDER = Path(__file__).parents[3] / "docs/notebooks"


def outputs(notebook):
    """What the cells print and return, as text; which of two streams comes first is a matter of luck."""
    found = []
    for cell in notebook.cells:
        of_cell = [(output.get("name", "result"), output.get("text") or output["data"]["text/plain"]) for output in cell.get("outputs", [])]
        found.append((cell["source"], sorted(of_cell)))
    return found


def plain(notebook):
    """Only what is the same in every run, and readable as text, is kept."""
    for cell in notebook.cells:
        cell.metadata.clear()
        for output in cell.get("outputs", []):
            output.get("data", {}).pop("text/html", None)
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}, "language_info": {"name": "python"}}


@pytest.mark.parametrize("name", ["clinic", "own-model"])
def test_notebook(name, tmp_path, monkeypatch):
    path = FOLDER / f"{name}.ipynb"
    kept = nbformat.read(path, as_version=4)
    ran = nbformat.read(path, as_version=4)
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    client = nbclient.NotebookClient(ran, timeout=600, kernel_name="python3", coalesce_streams=True, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    plain(ran)
    if os.environ.get("MNAR_BLESS"):
        nbformat.write(ran, path)
    else:
        assert outputs(ran) == outputs(kept)
