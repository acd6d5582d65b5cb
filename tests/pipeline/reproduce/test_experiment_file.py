"""Experiment files: what they may say, and what is told of wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from peg_core.errors import ConfigError
from pipeline.config.loading import load_config
from pipeline.reproduce.experiment_file import find_experiment, find_experiments, load_experiment

VARIABLES = {"PEG_DATA_DIR": "/graphs"}
CATALOGUE = """
graphs:
  small:
    title: Small
    settings:
      graph:
        edges: ${PEG_DATA_DIR}/small/edges.parquet
  large: {settings: {graph: {edges: large.parquet}}}
methods:
  peg: {title: PEG, settings: {train: {lr: 0.01, epochs: 9}}}
"""
PLAIN = """
experiment: A table
catalogue: catalogue.yaml
graphs: [small]
methods:
  peg: {settings: {train: {epochs: 2}}}
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("catalogue.yaml").write_text(CATALOGUE)


def load(text: str):
    Path("table.yaml").write_text(text)
    return load_experiment(Path("table.yaml"), VARIABLES)


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(text)
    header, *lines = str(caught.value).splitlines()
    assert header.startswith(f"{len(lines)} problem")
    return lines


def test_an_experiment_takes_what_it_names_from_the_catalogue_and_adds_to_it():
    experiment = load(PLAIN).experiment
    assert list(experiment.graphs) == ["small"]
    assert experiment.graph_title("small") == "Small"
    edges = experiment.graphs["small"].settings["graph"]["edges"]
    assert edges == "/graphs/small/edges.parquet"
    assert experiment.methods["peg"].settings == {"train": {"lr": 0.01, "epochs": 2}}
    assert experiment.method_title("peg") == "PEG"


def test_all_mistakes_are_told_together_with_their_lines():
    lines = problems(PLAIN + "metrik: auc\nsplits: 0\nquick: {graphs: 3}\n")
    assert [line.split(": ")[:2] for line in lines] == [
        ["table.yaml:7", "metrik"],
        ["table.yaml:8", "splits"],
        ["table.yaml:9", "quick.graphs"],
    ]
    assert "did you mean 'metric'?" in lines[0]


@pytest.mark.parametrize(
    ("more", "line", "told"),
    [
        ("quick: {graphs: [smal]}\n", 7, "names 'smal'; known: small; did you mean 'small'?"),
        ("paper: {methods: {PEG/N: {big: 9}}}\n", 7, "names 'big'; known: small"),
        ("quick: {values: [1]}\n", 7, "`quick.values` needs `vary`"),
    ],
)
def test_a_name_that_nothing_has_is_refused_where_it_stands(more, line, told):
    (problem,) = problems(PLAIN + more)
    assert problem.startswith(f"table.yaml:{line}: ")
    assert told in problem


def test_a_graph_that_the_catalogue_does_not_have_is_refused():
    (problem,) = problems(PLAIN.replace("[small]", "[smal]"))
    assert problem.startswith("table.yaml:4: graphs.smal: the catalogue has no 'smal'")
    assert problem.endswith("did you mean 'small'?")


def test_a_pipeline_is_told_apart_from_an_experiment():
    Path("run.yaml").write_text("name: run\nstore: runs\ngraph: {edges: e.parquet}\n")
    Path("table.yaml").write_text(PLAIN)
    assert list(find_experiments(Path())) == ["table"]
    with pytest.raises(ConfigError, match=r"not an experiment.*`peg run run\.yaml`"):
        find_experiment("run", Path())
    with pytest.raises(ConfigError, match=r"no experiment 'tabel'; .* did you mean 'table'\?"):
        find_experiment("tabel", Path())
    with pytest.raises(ConfigError, match=r"is an experiment.*`peg reproduce table\.yaml`"):
        load_config(Path("table.yaml"))


def test_a_folder_without_experiments_says_where_to_start():
    with pytest.raises(ConfigError, match="start `peg reproduce` in the folder of the repository"):
        find_experiments(Path("elsewhere"))
