from __future__ import annotations

import re
from pathlib import Path

import pytest

from peg_core.errors import ConfigError
from pipeline.config.loading import load_config
from pipeline.config.pipeline_config import PipelineConfig

MINIMAL = "name: demo\nstore: runs/demo\ngraph:\n  edges: edges.parquet\n"


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
    assert config.train.epochs == "auto"
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
    with pytest.raises(
        ConfigError, match=r"quikstart\.yaml: there is no such file; check the path"
    ):
        load_config(Path("quikstart.yaml"))
    with pytest.raises(ConfigError, match=r"did you mean 'quickstart\.yaml'\?"):
        load_config(Path("quikstart.yaml"))


def test_a_folder_and_a_binary_file_cannot_be_read():
    with pytest.raises(ConfigError, match=r"the file cannot be read .*; give a YAML file in UTF-8"):
        load_config(Path("."))
    Path("run.yaml").write_bytes(b"name: \xff\xfe")
    with pytest.raises(ConfigError, match=r"the file cannot be read .*; give a YAML file in UTF-8"):
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
        (
            "train: {lr: ${LR}}\n",
            r"run\.yaml:1: column 14: .*; write a section that holds \${NAME}",
        ),
        ("name: &a [*a]\n", r"run\.yaml:1: column 7: .*this contains itself"),
    ],
)
def test_what_is_not_yaml_is_reported_with_line_and_column(text, expected):
    assert re.match(expected, the_problem(text))


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n"])
def test_an_empty_file_says_what_to_write(text):
    assert re.fullmatch(
        r"run\.yaml(:\d)?: the file is empty, it must hold keys; write at least name, store, graph",
        the_problem(text),
    )


@pytest.mark.parametrize(
    ("text", "found"), [("- a\n- b\n", "a list"), ("just words\n", "the text 'just words'")]
)
def test_a_top_level_without_keys_is_refused(text, found):
    assert the_problem(text).startswith(f"run.yaml:1: the file holds {found}, it must hold keys")


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
        "run.yaml:6: evaluate.hit: unknown key 'hit'; known: hits, intervals, protocol, "
        "top_k, negatives_per_positive, negatives, heuristics, on; did you mean 'hits'?"
    )
    assert re.search(
        r"known: name, store, repeats, graph, .*, cluster; did you mean 'train'\?",
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
        "add `edges:` (Parquet edge list: a file, a folder or a glob; or a list of relations, each "
        "with files and columns of its own)",
    ]
    line = the_problem("# top\nname: demo\nstore: s\n")
    assert line.startswith("run.yaml:2: graph: a required key is missing; add `graph:` (Where the")


def test_variables_are_replaced_from_the_environment(monkeypatch):
    monkeypatch.setenv("DATA", "/data")
    monkeypatch.setenv("EPOCHS", "7")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.delenv("ABSENT", raising=False)
    config = load(
        "name: ${ABSENT:-demo}\n"
        "store: ${DATA}/${EMPTY:-runs}/$${DATA}/$DATA\n"
        "graph: {edges: '${DATA}/e.parquet', weight: '${EPOCHS}', time: 'at${EMPTY}'}\n"
        "train:\n  epochs: ${EPOCHS}\n  lr: ${ABSENT:-1e-2}\n"
        "encodings:\n  - dimensions: ${EPOCHS}\n"
    )
    assert config.name == "demo"
    assert config.store == "/data/runs/${DATA}/$DATA"
    assert (config.graph.edges, config.graph.weight, config.graph.time) == (
        "/data/e.parquet",
        "7",
        "at",
    )
    assert (config.train.epochs, config.train.lr) == (7, 0.01)
    assert config.encodings[0].parameters == {"dimensions": 7}
    assert load(MINIMAL, "store=${DATA}/x").store == "/data/x"


def test_an_undefined_variable_is_one_problem_unless_it_is_overridden(monkeypatch):
    monkeypatch.delenv("ABSENT", raising=False)
    text = MINIMAL + "train:\n  epochs: ${ABSENT}\nencodings:\n  - dimensions: ${ABSENT}\n"
    lines = problems(text)
    assert lines[0] == (
        "run.yaml:6: train.epochs: the environment variable ABSENT is not set; "
        "set it, or write ${ABSENT:-default}"
    )
    assert lines[1].startswith("run.yaml:8: encodings.0.dimensions: the environment variable")
    assert len(lines) == 2
    assert load(text, "train.epochs=3", "encodings=[{}]").train.epochs == 3
    assert the_problem(MINIMAL, "store=${ABSENT}").startswith(
        "--set store=${ABSENT}: store: the env"
    )


@pytest.mark.parametrize("value", ["${}", "${1A}", "${A", "${A:b}"])
def test_a_malformed_variable_says_how_to_write_it(value):
    line = the_problem(MINIMAL.replace("runs/demo", f'"{value}"'))
    assert line.endswith("needed ${NAME}; write $${ to mean ${ itself")


def test_overrides_win_over_the_file_and_the_last_over_the_first():
    text = MINIMAL + "train: {epochs: 3, lr: 0.5}\nencodings: [{dimensions: 4}, {seed: 1}]\n"
    config = load(
        text,
        "train.epochs=4",
        "train.epochs=5",
        "encodings.0.dimensions=64",
        "encodings.1={seed: 9}",
        "split={folds: 2}",
        "graph.weight=",
        "evaluate.hits=[1, 3]",
        "store=a=b",
    )
    assert (config.train.epochs, config.train.lr) == (5, 0.5)
    assert config.encodings[0].parameters == {"dimensions": 64}
    assert config.encodings[1].seed == 9
    assert (config.split.folds, config.split.test) == (2, 0.10)
    assert (config.graph.weight, config.evaluate.hits, config.store) == (None, [1, 3], "a=b")


def test_overrides_create_absent_sections_and_change_default_lists():
    config = load(MINIMAL + "score:\n", "score.candidates=c.parquet", "cluster.task_memory=3GB")
    assert config.score is not None
    assert config.score.candidates == "c.parquet"
    assert config.cluster.task_memory == 3_000_000_000
    config = load(MINIMAL, "encodings.0.dimensions=64", "evaluate.hits.2=7")
    assert [encoding.model_dump() for encoding in config.encodings] == [
        {"kind": "le", "seed": 0, "dimensions": 64}
    ]
    assert config.evaluate.hits == [1, 10, 7, 50, 100]


def test_an_override_of_one_alias_leaves_the_other():
    text = MINIMAL + "encodings: [&one {dimensions: 4}, *one]\n"
    config = load(text, "encodings.1.dimensions=8")
    assert [encoding.parameters["dimensions"] for encoding in config.encodings] == [4, 8]


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        (
            "train.epochs",
            "--set train.epochs: an override must be KEY=VALUE; write for example --set train",
        ),
        ("=5", "--set =5: an override must be KEY=VALUE"),
        ("train..epochs=5", "--set train..epochs=5: an override must be KEY=VALUE"),
        ("train.epoch=5", "--set train.epoch=5: train.epoch: unknown key 'epoch'; known: lr, "),
        ("trian.epochs=5", "--set trian.epochs=5: trian: unknown key 'trian'; known: name, "),
        ("train.epochs=x", "--set train.epochs=x: train.epochs: found the text 'x', needed a wh"),
        ("train.epochs=[1", "--set train.epochs=[1: train.epochs: column 3: not valid YAML, "),
        ("name.x=1", "--set name.x=1: name.x: `name` is the text 'demo', not a section; set `na"),
        ("encodings.1.seed=1", "--set encodings.1.seed=1: encodings.1.seed: no item '1'; the it"),
        ("encodings.x=1", "--set encodings.x=1: encodings.x: no item 'x'; the items of `encodin"),
        ("score.source=x", "--set score.source=x: score.candidates: a required key is missing"),
        ("graph={}", "--set graph={}: graph.edges: a required key is missing"),
        ("split.by=time", "--set split.by=time: split.by: `split.by: time` needs `graph.time`"),
        ("train={lr: 1, lr: 2}", "--set train={lr: 1, lr: 2}: train.lr: found twice"),
    ],
)
def test_mistakes_in_overrides_name_the_override(override, expected):
    text = MINIMAL + "encodings:\n  - kind: le\n"
    assert the_problem(text, override).startswith(expected)


def test_mistakes_in_file_and_overrides_come_in_one_list():
    lines = problems(MINIMAL + "train: {epochs: 0}\n", "oops", "train.lr=0")
    assert [line.split(": ")[0] for line in lines] == [
        "run.yaml:5",
        "--set oops",
        "--set train.lr=0",
    ]
    lines = problems("name: [\n", "oops")
    assert lines[0].startswith("run.yaml:2: column 1: not valid YAML")
    assert lines[1].startswith("--set oops: ")
