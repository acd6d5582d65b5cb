"""Cells: which there are, and what their pipelines say."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from peg_core.errors import ConfigError
from pipeline.config.loading import dump_values, load_config
from pipeline.reproduce.experiment_file import find_experiments, load_experiment
from pipeline.reproduce.graph_data import GraphData
from pipeline.reproduce.grid import Choice, build_cells, cell_names, pipeline_of
from pipeline.reproduce.reproduction import reproduce
from pipeline.run.progress import RunDisplay
from pipeline.run.repeats import RunSeries

VARIABLES = {"PEG_DATA_DIR": "/graphs"}
TEXT = """
experiment: A table
splits: 3
settings:
  split: {folds: 4, seed: 10}
  train: {lr: 0.1, epochs: 8}
graphs:
  one: {settings: {graph: {edges: one.parquet}, train: {lr: 0.2}}}
  two: {settings: {graph: {edges: two.parquet}}}
features:
  N: {}
  C: {kind: degree}
methods:
  peg: {settings: {train: {lr: 0.3}}, on_graph: {two: {train: {lr: 0.4}}}}
  plain: {features: [C], graphs: [two], settings: {split: {folds: 1}}}
quick: {graphs: [two], features: [C], settings: {train: {epochs: 1}}}
"""
SHIPPED = sorted(find_experiments().items())


@pytest.fixture
def experiment(tmp_path):
    (tmp_path / "table.yaml").write_text(TEXT)
    return load_experiment(tmp_path / "table.yaml", VARIABLES)


def cells(experiment, **choice):
    found = build_cells(experiment, Choice(Path("out"), **choice))
    assert len({cell.name for cell in found}) == len(found)
    return {cell.name: cell.config for cell in found}


def test_a_cell_for_every_graph_method_features_and_split(experiment):
    assert set(cells(experiment)) == {
        f"{graph}/{row}/{split}"
        for graph, rows in (("one", ["peg/N", "peg/C"]), ("two", ["peg/N", "peg/C", "plain/C"]))
        for row in rows
        for split in range(3)
    }


def test_the_narrower_section_wins_and_every_split_has_the_next_seeds(experiment):
    found = cells(experiment)
    rates = {name: config.train.lr for name, config in found.items()}
    assert (rates["one/peg/N/0"], rates["two/peg/N/0"], rates["two/plain/C/0"]) == (0.3, 0.4, 0.1)
    assert found["two/plain/C/1"].split.folds == 1
    assert found["one/peg/C/0"].features.kind == "degree"
    last = found["one/peg/N/2"]
    assert (last.split.seed, last.train.seed) == (12, 2)
    assert {Path(config.store) for config in found.values()} == {Path("out/one"), Path("out/two")}


def test_quick_patterns_splits_and_overrides_choose_and_change(experiment):
    quick = cells(experiment, quick=True)
    assert set(quick) == {"two/peg/C/0", "two/plain/C/0"}
    assert {config.train.epochs for config in quick.values()} == {1}
    assert set(cells(experiment, only=("two/pl*", "one/peg/N/1"))) == {
        "one/peg/N/1",
        *(f"two/plain/C/{split}" for split in range(3)),
    }
    changed = cells(experiment, splits=1, only=("one",), overrides=("train.lr=0.9",))
    assert {name: config.train.lr for name, config in changed.items()} == {
        "one/peg/N/0": 0.9,
        "one/peg/C/0": 0.9,
    }


def test_a_pattern_that_fits_nothing_is_refused(experiment):
    choice = Choice(Path("out"), only=("three/*",))
    with pytest.raises(ConfigError, match=r"no cell is called like 'three/\*'"):
        reproduce([experiment], choice, GraphData(Path()), RunDisplay(Console(quiet=True)))


def test_a_wrong_setting_is_told_once_with_the_line_of_the_experiment(tmp_path):
    path = tmp_path / "table.yaml"
    path.write_text(TEXT.replace("lr: 0.3", "lr: -1").replace("kind: degree", "kind: degre"))
    with pytest.raises(ConfigError) as caught:
        build_cells(load_experiment(path, VARIABLES), Choice(Path("out")))
    header, *lines = str(caught.value).splitlines()
    assert header.startswith("2 problems")
    assert [line.split(": ")[:2] for line in lines] == [
        [f"{path}:12", "features.kind"],
        [f"{path}:14", "train.lr"],
    ]


def test_the_pipeline_file_of_a_cell_is_that_cell(experiment, tmp_path):
    choice, shown = Choice(Path("out")), tmp_path / "cell.yaml"
    every = cells(experiment)
    for name in ("two/peg/C", "two/peg/C/2"):
        shown.write_text(dump_values(pipeline_of(experiment, choice, name)))
        config = load_config(shown)
        series = RunSeries.of(config)
        configs = series.configs if series else [config]
        wanted = [every[f"{name}/{s}"] for s in range(3)] if series else [every[name]]
        assert [c.model_copy(update={"repeats": 1}) for c in configs] == wanted


@pytest.mark.parametrize("name", ["two", "two/peg/X", "two/peg/C/x", ""])
def test_a_cell_that_there_is_not_is_refused(experiment, name):
    with pytest.raises(ConfigError, match="a cell is GRAPH/METHOD/FEATURES"):
        pipeline_of(experiment, Choice(Path("out")), name)


def test_a_varied_setting_makes_a_method_for_every_value(tmp_path):
    path = tmp_path / "table.yaml"
    varied = "vary: {title: rate, key: train.lr, values: [0.5, 0.25]}\n"
    path.write_text(TEXT + varied)
    found = cells(load_experiment(path, VARIABLES), splits=1, only=("one/*/N",))
    assert {name: config.train.lr for name, config in found.items()} == {
        "one/peg-0.5/N/0": 0.5,
        "one/peg-0.25/N/0": 0.25,
    }


@pytest.mark.parametrize(("name", "path"), SHIPPED, ids=[name for name, _ in SHIPPED])
def test_the_experiments_of_the_repository_are_whole(name, path):
    file = load_experiment(path, VARIABLES)
    assert path.read_text().startswith(f"# peg reproduce {name}\n")
    found = build_cells(file, Choice(Path("out"), splits=1))
    assert len(found) == len(cell_names(file, Choice(Path("out"))))
    assert all(Path(cell.config.store) == Path("out") / cell.graph for cell in found)
    quick = build_cells(file, Choice(Path("out"), quick=True))
    assert 1 <= len(quick) <= 4
    assert {cell.config.split.seed for cell in found} == {0}  # of one graph all share a split
