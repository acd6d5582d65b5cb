"""Every Python block of the documents runs, in a folder laid out as the documents assume."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest
import yaml
from click.testing import CliRunner
from rich.console import Console

from pipeline.cli.app import cli
from pipeline.config.loading import load_config
from pipeline.run.progress import RunDisplay
from pipeline.run.runner import run_pipeline
from workers.cluster import Cluster

pytestmark = [pytest.mark.ray, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PYTHON_BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)

# The graph of `make demo`: the documents name its papers.
GENERATE = """generate papers --papers 2400 --nodes-out data/quickstart/nodes.parquet
    --candidates 2000 --candidates-out data/quickstart/candidates.parquet
    --out data/quickstart/edges.parquet"""
TOP = "top configs/quickstart.yaml --count 2 --show topic --show words"
QUICK = [
    "split.folds=2",
    "model.hidden=8",
    "train.epochs=2",
    "evaluate.protocol=random",
    "evaluate.heuristics=[common_neighbours]",
    "evaluate.intervals.repeats=10",
]


def blocks_of(document: Path) -> list[tuple[int, str]]:
    """The Python blocks of a document, each with the number of its first line."""
    text = document.read_text()
    return [
        (text[: block.start(2)].count("\n") + 1, textwrap.dedent(block.group(2)))
        for block in PYTHON_BLOCK.finditer(text)
    ]


WITH_PYTHON = [document for document in DOCUMENTS if blocks_of(document)]


@pytest.fixture(scope="module")
def quickstart(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in which the quickstart, made smaller, has run."""
    folder = tmp_path_factory.mktemp("quickstart")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = CliRunner().invoke(cli, GENERATE.split(), catch_exceptions=False)
        assert done.exit_code == 0, done.output
        config = load_config(ROOT / "configs/quickstart.yaml", QUICK)
        (folder / "configs").mkdir()
        values = config.model_dump(mode="json")
        (folder / "configs/quickstart.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
        run_pipeline(config, RunDisplay(Console(quiet=True)), cluster=cluster)
        yield folder


@pytest.mark.parametrize("document", WITH_PYTHON, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_python_of_a_document_runs(document, quickstart, monkeypatch):
    # a dataclass looks for the module that it is defined in
    module = ModuleType("snippet")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.chdir(quickstart)
    for line, block in blocks_of(document):
        # empty lines in front: a traceback names the line of the document
        code = compile("\n" * (line - 1) + block, str(document), "exec", dont_inherit=True)
        exec(code, module.__dict__)


def test_the_best_new_links_are_shown(quickstart, monkeypatch):
    monkeypatch.chdir(quickstart)
    shown = CliRunner().invoke(cli, TOP.split(), catch_exceptions=False).output.splitlines()
    assert [line[:3].strip() for line in shown] == ["1", "", "", "2", "", ""]
    edges = pl.read_parquet("data/quickstart/edges.parquet")
    known = {frozenset(pair) for pair in edges.iter_rows()}
    assert frozenset((shown[0][13:], shown[1][13:])) not in known
    assert " topic " in shown[2]
    assert "common neighbour" in shown[2]


def test_the_readme_scores_pairs_in_three_lines_and_names_no_file():
    [block] = [block for _, block in blocks_of(ROOT / "README.md") if ".score(" in block]
    code = [line for line in block.splitlines() if line.strip() and not line.startswith("#")]
    assert len([line for line in code if not re.match("from |import ", line)]) <= 3
    assert not re.search(r"\.(npy|json|parquet|safetensors)", block)
