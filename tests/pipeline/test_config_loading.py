from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from peg_core.encoding import ENCODERS
from peg_core.encoding.encoder import EncoderParameters
from peg_core.errors import ConfigError
from pipeline.config import PipelineConfig
from pipeline.config_loading import dump_config, load_config

MINIMAL = "name: demo\nstore: runs/demo\ngraph:\n  edges: edges.parquet\n"


@dataclass(frozen=True)
class Walker(EncoderParameters):
    """An encoder with a rule over two parameters."""

    version: ClassVar[int] = 1
    dimensions: int = 8
    length: int = 10
    window: int = 5

    def __post_init__(self) -> None:
        if self.window > self.length:
            raise ValueError(f"window is {self.window}, at most length {self.length} is needed")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def load(text: str, *overrides: str) -> PipelineConfig:
    Path("run.yaml").write_text(text, encoding="utf-8")
    return load_config(Path("run.yaml"), overrides)


def problems(text: str, *overrides: str) -> list[str]:
    """The problems of a wrong file, without the header."""
    with pytest.raises(ConfigError) as caught:
        load(text, *overrides)
    header, *lines = str(caught.value).splitlines()
    assert header.startswith(f"{len(lines)} problem")
    return lines


def the_problem(text: str, *overrides: str) -> str:
    (line,) = problems(text, *overrides)
    return line


def test_a_minimal_file_gets_the_defaults():
    config = load(MINIMAL)
    assert (config.name, config.store, config.graph.edges) == ("demo", "runs/demo", "edges.parquet")
    assert config.train.epochs == 50
    assert config.score is None
    assert [encoding.kind for encoding in config.encodings] == ["le"]


def test_three_mistakes_in_one_file_are_reported_together_in_the_order_of_their_lines():
    lines = problems(
        "# peg run run.yaml\n"
        "name: demo\n"
        "store: runs/demo\n"
        "train:\n"
        "  lr: 0.01\n"
        "  epochs: 0\n"
        "graph:\n"
        "  edges: edges.parquet\n"
        "  sorce: a\n"
        "cluster: {workers: two}\n"
    )
    assert [line.split(": ")[:2] for line in lines] == [
        ["run.yaml:6", "train.epochs"],
        ["run.yaml:9", "graph.sorce"],
        ["run.yaml:10", "cluster.workers"],
    ]


def test_the_header_counts_the_problems_and_names_the_file():
    with pytest.raises(ConfigError, match=r"^1 problem found in run\.yaml; nothing was started\n"):
        load(MINIMAL + "trian: {}\n")
    with pytest.raises(ConfigError, match=r"^2 problems found in run\.yaml"):
        load(MINIMAL + "trian: {}\ntest: {}\n")


def test_a_missing_file_is_named_with_its_nearest_neighbour():
    Path("quickstart.yaml").write_text(MINIMAL)
    with pytest.raises(ConfigError, match=r"quikstart\.yaml: there is no such file; check the path"):
        load_config(Path("quikstart.yaml"))
    with pytest.raises(ConfigError, match=r"did you mean 'quickstart\.yaml'\?"):
        load_config(Path("quikstart.yaml"))


def test_a_folder_and_a_binary_file_cannot_be_read():
    with pytest.raises(ConfigError, match="the file cannot be read .*; give a YAML file in UTF-8"):
        load_config(Path("."))
    Path("run.yaml").write_bytes(b"name: \xff\xfe")
    with pytest.raises(ConfigError, match="the file cannot be read .*; give a YAML file in UTF-8"):
        load_config(Path("run.yaml"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: demo\nstore: a: b\n", r"run\.yaml:2: column 9: not valid YAML, mapping values"),
        ("name: demo\ntrain:\n\tlr: 1\n", r"run\.yaml:3: column 1: .*; indent with spaces"),
        ("name: [a\n", r"run\.yaml:2: column 1: not valid YAML, .*; check colons, quotes"),
        ("name: demo\nstore: *a\n", r"run\.yaml:2: column 8: .*undefined alias 'a'"),
        ("name: !python/none x\n", r"run\.yaml:1: column 7: .*constructor for the tag"),
        ("name: a\nstore: x\x07y\n", r"run\.yaml:2: column 9: .*unacceptable character #x0007"),
        ("name: a\n---\nname: b\n", r"run\.yaml:2: column 1: .*another document"),
        ("name: {{ name }}\n", r"run\.yaml:1: column 8: .*a key must be text"),
        ("name: &a [*a]\n", r"run\.yaml:1: column 7: .*this contains itself"),
    ],
)
def test_what_is_not_yaml_is_reported_with_line_and_column(text, expected):
    assert re.match(expected, the_problem(text))


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n"])
def test_an_empty_file_says_what_to_write(text):
    assert re.fullmatch(
        r"run\.yaml(:\d)?: the file is empty, needed are keys; write at least name, store, graph",
        the_problem(text),
    )


@pytest.mark.parametrize(
    ("text", "found"), [("- a\n- b\n", "a list"), ("just words\n", "the text 'just words'")]
)
def test_a_top_level_without_keys_is_refused(text, found):
    assert the_problem(text).startswith(f"run.yaml:1: the file holds {found}, needed are keys")


def test_a_duplicate_key_names_both_lines():
    text = MINIMAL + "train:\n  lr: 0.1\n  epochs: 3\n  lr: 0.2\n"
    assert the_problem(text) == (
        "run.yaml:8: train.lr: found twice, on lines 6 and 8; keep one of the two"
    )


def test_a_duplicate_section_and_a_mistake_in_the_last_one_are_both_reported():
    lines = problems(MINIMAL + "train: {lr: 0.1}\ntrain: {lr: -1}\n")
    assert lines[0].startswith("run.yaml:6: train: found twice, on lines 5 and 6")
    assert lines[1].startswith("run.yaml:6: train.lr: found -1, needed more than 0;")


def test_merged_anchors_are_not_duplicates():
    text = MINIMAL + "score: &pairs {candidates: c.parquet, source: a}\n"
    base = "  time: &column when\n  weight: *column\n"
    assert load(MINIMAL + base).graph.weight == "when"
    merged = text.replace("source: a}", "<<: {source: a, target: b}, source: c}")
    assert load(merged).score.model_dump(include={"source", "target"}) == {
        "source": "c",
        "target": "b",
    }


def test_an_unknown_key_gets_the_nearest_and_all_known_ones():
    line = the_problem(MINIMAL + "evaluate:\n  hit: [20]\n")
    assert line == (
        "run.yaml:6: evaluate.hit: unknown key 'hit'; known: hits; did you mean 'hits'?"
    )
    assert re.search(
        r"known: name, store, graph, .*, cluster; did you mean 'train'\?",
        the_problem(MINIMAL + "trian: {}\n"),
    )


@pytest.mark.parametrize("key", ["on", "1", "null"])
def test_keys_that_yaml_takes_for_other_things_are_names_here(key):
    assert f"unknown key '{key}'" in the_problem(MINIMAL + f"{key}: 1\n")


def test_missing_keys_stand_at_the_line_of_their_section():
    lines = problems("# top\nname: demo\nstore: s\nscore:\n  source: a\ngraph: {}\n")
    assert lines == [
        "run.yaml:4: score.candidates: a required key is missing; "
        "add `candidates:` (Parquet pairs: a file, a folder or a glob)",
        "run.yaml:6: graph.edges: a required key is missing; "
        "add `edges:` (Parquet edge list: a file, a folder or a glob)",
    ]
    line = the_problem("# top\nname: demo\nstore: s\n")
    assert line.startswith("run.yaml:2: graph: a required key is missing; add `graph:` (Where the")


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("train: {epochs: many}", "found the text 'many', needed a whole number; leave `epochs`"),
        ("train: {epochs: '5'}", "found the text '5', needed a whole number; write it without q"),
        ("train: {epochs: 5.0}", "found 5.0, needed a whole number; write 5"),
        ("train: {epochs: 1e2}", "found 100.0, needed a whole number; write 100"),
        ("train: {epochs: 2.5}", "found 2.5, needed a whole number; leave `epochs` out for the"),
        ("train: {epochs: yes}", "found true, needed a whole number"),
        ("train: {epochs: }", "found nothing, needed a whole number"),
        ("train: {epochs: 0}", "found 0, needed at least 1; leave `epochs` out for the default, 50"),
        ("train: {epochs: 0b_}", "found the text '0b_', needed a whole number"),
        ("train: {lr: fast}", "found the text 'fast', needed a number"),
        ("train: {lr: 0}", "found 0, needed more than 0"),
        ("train: [1]", "found a list, needed a section with keys of its own; write its keys"),
        ("train:", "found nothing, needed a section with keys of its own; write its keys"),
        ("split: {test: 1}", "found 1, needed less than 1"),
        ("split: {folds: 101}", "found 101, needed at most 100"),
        ("split: {by: tame}", "found the text 'tame', needed 'random', 'time' or 'files'"),
        ("split: {by: tame}", "did you mean 'time'?"),
        ("evaluate: {hits: 20}", "found 20, needed a list"),
        ("evaluate: {hits: []}", "found an empty list, needed at least 1 item(s)"),
        ("score: {candidates: 2024}", "found 2024, needed text; write it in quotes"),
        ("score: {candidates: {a: b}}", "found a section, needed text; Parquet pairs"),
        ("cluster: {task_memory: 2QB}", "'2QB' is not a size; write for example 500MB or 2GB"),
        ("cluster: {task_memory: 0GB}", "found 0, needed more than 0"),
        ("model: {kind: pge}", "no model 'pge'; known: "),
        ("model: {kind: pge}", "did you mean 'peg'?"),
    ],
)
def test_wrong_values_are_explained_in_words(section, expected):
    line = the_problem(f"{MINIMAL}{section}\n")
    assert line.startswith("run.yaml:5: ")
    assert expected in line


def test_a_bad_name_is_explained_without_a_pattern():
    line = the_problem(MINIMAL.replace("demo", "my run", 1))
    assert line.startswith("run.yaml:1: name: found the text 'my run', needed letters, digits, '.'")


def test_an_item_of_a_list_has_its_own_line():
    line = the_problem(MINIMAL + "evaluate:\n  hits:\n    - 20\n    - 0\n")
    assert line.startswith("run.yaml:8: evaluate.hits.1: found 0, needed at least 1")


def test_a_rule_over_several_keys_stands_at_the_first_key_it_names():
    line = the_problem(MINIMAL + "split:\n  folds: 2\n  by: time\n")
    assert line.startswith("run.yaml:7: split.by: `split.by: time` needs `graph.time`")
    line = the_problem(MINIMAL + "split:\n  folds: 2\n  test: 0.99\n")
    assert line.startswith("run.yaml:7: split.test: `valid` and `test` together must leave edges")


def test_all_parameters_of_all_encodings_are_checked():
    lines = problems(
        MINIMAL + "encodings:\n"
        "  - kind: le\n"
        "    dimension: 8\n"
        "    tolerance: 3\n"
        "    seed: -1\n"
        "  - kind: el\n"
        "  - dimensions: 0\n"
        "  - 7\n"
    )
    assert [line.split(": ")[:2] for line in lines] == [
        ["run.yaml:7", "encodings.0.dimension"],
        ["run.yaml:8", "encodings.0.tolerance"],
        ["run.yaml:9", "encodings.0.seed"],
        ["run.yaml:10", "encodings.1.kind"],
        ["run.yaml:11", "encodings.2.dimensions"],
        ["run.yaml:12", "encodings.3"],
    ]
    assert "unknown key 'dimension'; known: kind, seed, dimensions, " in lines[0]
    assert lines[0].endswith("did you mean 'dimensions'?")
    assert lines[1].endswith("between 0 and 1; leave `tolerance` out for the default, 0.001")
    assert re.search(r"no encoding 'el'; known: .*le", lines[3])


def test_an_encoders_rule_over_two_parameters_is_judged_on_both(monkeypatch):
    monkeypatch.setitem(ENCODERS, "walker", Walker)
    load(MINIMAL + "encodings: [{kind: walker, length: 40, window: 20}]\n")
    line = the_problem(MINIMAL + "encodings: [{kind: walker, length: 4, window: 6}]\n")
    assert "window is 6" in line
    assert line.startswith("run.yaml:5: encodings.0")
