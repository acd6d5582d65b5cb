"""The examples: each opens with the commands that write all it reads, under the names it uses."""

from __future__ import annotations

import shlex
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from pipeline.cli.generate_command import generate
from pipeline.config.loading import load_config

FOLDER = Path(__file__).parents[3] / "configs/examples"
EXAMPLES = sorted(FOLDER.glob("*.yaml"))


def opening(example: Path) -> list[list[str]]:
    """The commands in the first comment of a file, as lists of words."""
    comment = example.read_text().split("\n#\n")[0].replace("# ", "")
    return [shlex.split(line) for line in comment.replace("\\\n", " ").splitlines()]


def test_there_is_an_example_of_every_graph():
    names = {example.stem for example in EXAMPLES}
    assert names == {"plain", "bipartite", "relations", "directed", "dated"}
    page = (FOLDER.parents[1] / "docs/which_graph.md").read_text()
    assert all(f"configs/examples/{name}.yaml" in page for name in names)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_its_first_lines_write_all_that_it_reads(example, tmp_path, monkeypatch):
    write, run = opening(example)
    assert run == ["peg", "run", f"configs/examples/{example.name}"]
    assert write[:2] == ["peg", "generate"]
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(generate, write[2:], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    config = load_config(example, [])
    graph, score = config.graph, config.score
    needed = {relation.files: set(relation.ends) for relation in graph.relations}
    for relation in graph.relations:
        needed[relation.files] |= {relation.weight, relation.time} - {None}
    for table in graph.node_tables.values():
        needed[table.files] = {table.id, *(table.features or [])}
    needed[score.candidates] = {score.source, score.target}
    assert {name for name in needed if not needed[name] <= set(pq.read_schema(name).names)} == set()
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.parquet")}
    assert written == set(needed)
