"""The rules of the schema, as a user meets them: through a file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from peg_core.encoding import ENCODERS
from peg_core.encoding.encoder import Encoder, Encoding
from peg_core.errors import ConfigError
from peg_core.graph.graph_store import GraphStore
from peg_core.splits.mixture.mixed_negatives import Mixture
from pipeline.config.data_sections import EncodingConfig
from pipeline.config.field_types import parse_bytes
from pipeline.config.loading import dump_config, load_config
from pipeline.config.model_sections import TrainConfig
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.config.result_sections import ScoreConfig

MINIMAL = "name: demo\nstore: runs/demo\ngraph:\n  edges: edges.parquet\n"


@dataclass(frozen=True)
class Walker(Encoder):
    """An encoder with a rule over two parameters."""

    version: ClassVar[int] = 1
    dimensions: int = 8
    length: int = 10
    window: int = 5

    def __post_init__(self) -> None:
        if self.window > self.length:
            raise ValueError(f"window is {self.window}, at most length {self.length} is needed")

    def solve(self, graph: GraphStore, *, seed: int) -> Encoding:
        raise NotImplementedError


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def load(text: str) -> PipelineConfig:
    Path("run.yaml").write_text(text, encoding="utf-8")
    return load_config(Path("run.yaml"))


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(text)
    return str(caught.value).splitlines()[1:]


def the_problem(text: str) -> str:
    (line,) = problems(text)
    return line


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("500MB", 500_000_000),
        ("2GB", 2_000_000_000),
        ("1.5 kb", 1500),
        ("7B", 7),
        ("3TB", 3 * 10**12),
    ],
)
def test_sizes_are_read_with_their_unit(written, expected):
    assert parse_bytes(written) == expected


def test_a_size_without_a_unit_is_a_number_of_bytes():
    assert load(MINIMAL + "cluster: {task_memory: 12}\n").cluster.task_memory == 12


@pytest.mark.parametrize("written", ["2", "GB", "2 gigabytes", "1.2.3GB", "1,500MB", "-1GB", ""])
def test_what_is_not_a_size_is_refused(written):
    with pytest.raises(ValueError, match="is not a size; write for example 500MB or 2GB"):
        parse_bytes(written)


def test_a_configuration_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        TrainConfig().epochs = 3  # type: ignore[misc]


def test_an_encodings_other_keys_are_its_encoders_parameters():
    assert EncodingConfig(kind="le", seed=3, dimensions=16).parameters == {"dimensions": 16}


def test_the_settled_example_is_valid():
    config = load(
        "name: quickstart\n"
        "store: runs/quickstart\n"
        "graph: {edges: e.parquet, source: src, target: dst, weight: null, time: null}\n"
        "split: {by: random, valid: 0.05, test: 0.10, folds: 10, seed: 0}\n"
        "encodings: [{kind: le, dimensions: 128}]\n"
        "model: {kind: peg, preset: best}\n"
        "train: {seeds: 1, batching: auto}\n"
        "evaluate: {hits: [20, 50]}\n"
        "score: {candidates: c.parquet, source: src, target: dst}\n"
        "cluster: {address: null, workers: 2, cpus_per_worker: 1, gpus_per_worker: 0, "
        "task_memory: 2GB}\n"
    )
    assert config.cluster.task_memory == 2_000_000_000
    assert config.evaluate.hits == [20, 50]


@pytest.mark.parametrize(
    ("written", "expected"),
    [("1e-3", 0.001), ("1E-3", 0.001), ("1.5e3", 1500.0), (".5e1", 5.0), ("1.0e-3", 0.001)],
)
def test_numbers_with_an_exponent_need_no_dot(written, expected):
    assert load(MINIMAL + f"train: {{lr: {written}}}\n").train.lr == expected


def test_a_date_is_a_name_like_any_other():
    assert load(MINIMAL.replace("demo", "2024-05-01", 1)).name == "2024-05-01"


def test_relative_paths_stay_as_they_are():
    assert load(MINIMAL.replace("edges.parquet", "../data/*.parquet")).graph.edges == (
        "../data/*.parquet"
    )


def test_files_of_held_out_edges_are_needed_together():
    line = the_problem(MINIMAL + "split:\n  by: files\n  valid_edges: v.parquet\n")
    assert line.startswith("run.yaml:6: split.by: `by: files` needs both `valid_edges` and `test_")


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
        (
            "train: {epochs: 0}",
            "found 0, needed at least 1; leave `epochs` out for the default, 'auto'",
        ),
        ("train: {epochs: 0b_}", "found the text '0b_', needed a whole number"),
        ("train: {epochs: !!bool x}", "found the text 'x', needed a whole number"),
        ("train: {lr: fast}", "found the text 'fast', needed a number"),
        ("train: {lr: 0}", "found 0, needed more than 0"),
        ("train: [1]", "found a list, needed a section with keys of its own; write its keys"),
        ("train:", "found nothing, needed a section with keys of its own; write its keys"),
        ("split: {test: 1}", "found 1, needed less than 1"),
        ("split: {folds: 101}", "found 101, needed at most 100"),
        ("split: {by: tame}", "found the text 'tame', needed 'random', 'time' or 'files'"),
        ("split: {by: tame}", "did you mean 'time'?"),
        ("evaluate: {protocol: []}", "found an empty list, needed at least 1 item(s)"),
        ("evaluate: {protocol: hart}", "did you mean 'heart'?"),
        ("evaluate: {protocol: given}", "`evaluate.protocol: given` needs `split.test_negatives`"),
        ("evaluate: {heuristics: [kats]}", "did you mean 'katz'?"),
        ("evaluate: {intervals: {level: 1}}", "found 1, needed less than 1"),
        ("evaluate: {hits: 20}", "found 20, needed a list"),
        ("evaluate: {hits: []}", "found an empty list, needed at least 1 item(s)"),
        ("score: {candidates: 2024}", "found 2024, needed text; write it in quotes"),
        ("score: {candidates: {a: b}}", "found a section, needed text; Parquet pairs"),
        ("cluster: {task_memory: 2QB}", "'2QB' is not a size; write for example 500MB or 2GB"),
        ("cluster: {task_memory: 0GB}", "needed more than 0"),
        ("model: {kind: pge}", "no model 'pge'; known: "),
        ("model: {kind: pge}", "did you mean 'peg'?"),
        ("features: {kind: one_hat}", "did you mean 'one_hot'?"),
        ("model: {preset: ranking, kind: peg}", "`preset: ranking` is made of `kind: linear_peg`"),
        ("train: {negatives: unifrm}", "found 'unifrm', needed uniform, degree, hard, or shares"),
        ("train: {negatives: unifrm}", "did you mean 'uniform'?"),
        ("train: {negatives: {hart: 1}}", "unknown key 'hart'; known: uniform, corrupt, hard"),
        ("train: {negatives: {hard: 0}}", "all shares are 0, one must be above"),
        ("train: {negatives: {hard: 2}}", "found 2, needed at most 1"),
        ("train: {metric: link_mrr}", "needs `split.valid_negatives` and `split.negatives_link`"),
        ("split: {negatives_link: link}", "needs non-links in `valid_negatives` or"),
        ("split: {on_known_negatives: keep}", "needs `valid_negatives` or `test_negatives`"),
        ("features: {standardise: maybe}", "found the text 'maybe', needed true or false"),
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


@pytest.mark.parametrize(
    ("split", "match"),
    [
        ("windows: 3", "`windows` needs `by: time`, found `by: random`"),
        ("leave_out: 0.1", "`leave_out` needs `by: time`, found `by: random`"),
        ("by: time\n  windows: 2\n  leave_out: 0.1", "`windows` decides what is left out"),
        ("by: time\n  windows: 10", "`windows`, .* set 105% of the edges aside"),
    ],
)
def test_windows_that_cannot_be_are_refused(split, match):
    assert re.search(match, the_problem(MINIMAL + f"split:\n  {split}\n"))


def test_a_split_by_time_has_matched_non_links_unless_asked_otherwise():
    graph = {"edges": "e.parquet", "time": "day"}
    for by, asked, expected in (
        ("random", None, "random"),
        ("random", "matched", "matched"),
        ("time", None, "matched"),
        ("time", "random", "random"),
    ):
        evaluate = {} if asked is None else {"negatives": asked}
        config = PipelineConfig(
            name="n", store="s", graph=graph, split={"by": by}, evaluate=evaluate
        )
        assert config.negatives == expected


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
    assert line == "run.yaml:5: encodings.0: window is 6, at most length 4 is needed"


def test_the_dump_keeps_the_order_of_the_schema_and_is_plain_yaml():
    config = load(MINIMAL + "cluster: {workers: 3}\nmodel: {layers: 4}\n")
    dumped = dump_config(config)
    assert list(yaml.safe_load(dumped)) == list(PipelineConfig.model_fields)
    assert "\ncluster:\n  address: null\n  workers: 3\n" in dumped
    assert "\nencodings:\n- kind: le\n  seed: 0\n" in dumped


printable = st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"])
text_values = st.text(printable, max_size=12).map(lambda text: f"./{text}") | st.sampled_from(
    [
        "1e-3",
        "${HOME}",
        "$${HOME}",
        "$$${",
        "yes",
        "null",
        "2024-05-01",
        "0x1F",
        "a: b",
        "- a",
        "1:30",
        "010",
        "0b11",
        "-.5",
        "1_000",
        "0o7",
        ".inf",
        "1e5",
        "1.e-5",
    ]
)
configs = st.fixed_dictionaries(
    {
        "name": st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,9}", fullmatch=True),
        "store": text_values,
        "graph": st.fixed_dictionaries({"edges": text_values, "weight": st.none() | text_values}),
        "train": st.fixed_dictionaries(
            {
                "lr": st.floats(min_value=1e-300, max_value=1e6),
                "epochs": st.integers(1, 10**9),
            }
        ),
        "encodings": st.lists(
            st.fixed_dictionaries(
                {"seed": st.integers(0, 2**63)},
                optional={"dimensions": st.integers(1, 999), "scale": st.just("plain")},
            ),
            min_size=1,
            max_size=3,
        ),
    }
)


def test_one_feature_column_is_a_list_of_one():
    nodes = MINIMAL + "  nodes: n.parquet\n"
    assert load(nodes + "  features: x\n").graph.features == ["x"]
    assert load(nodes + "  features: [days, views]\n").graph.features == ["days", "views"]
    assert "found 5, needed a list" in the_problem(nodes + "  features: 5\n")
    assert "graph.features.1: found 5, needed text" in the_problem(nodes + "  features: [x, 5]\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  features: x\n", "graph.features: `features` needs `nodes`, the table"),
        ("  label: y\n", "graph.label: `label` needs `nodes`"),
        ("  node_split: part\n", "graph.node_split: `node_split` needs `nodes`"),
        ("  feature_width: 9\n", "graph.feature_width: `feature_width` needs `features` to name"),
        (
            "features: {kind: node}\n",
            "features.kind: `features.kind: node` needs node features; set `graph.nodes` and "
            "`graph.features`, or another kind",
        ),
    ],
)
def test_what_a_node_table_is_needed_for_is_told_at_the_key(text, expected):
    assert expected in the_problem(MINIMAL + text)


@given(values=configs)
@settings(max_examples=60, deadline=None)
def test_loading_a_dump_gives_an_equal_configuration(values: dict[str, Any], tmp_path_factory):
    config = PipelineConfig.model_validate(values)
    path = tmp_path_factory.getbasetemp() / "dump.yaml"
    path.write_text(dump_config(config), encoding="utf-8", newline="")
    assert load_config(path) == config


@pytest.mark.parametrize("written", ["null", "~", "'null'", ""])
def test_unknown_null_may_be_written_as_yaml_writes_it(written):
    text = f"candidates: c.parquet\non_unknown: {written}\ncolumns: logit\n"
    score = ScoreConfig(**yaml.safe_load(text))
    assert (score.on_unknown, score.columns) == ("null", ["logit"])


def test_the_preset_for_ranking_stands_for_keys_that_are_not_given():
    model = load(MINIMAL + "model: {preset: ranking, hidden: 64}\n").model
    assert (model.kind, model.layers, model.hidden) == ("linear_peg", 1, 64)
    assert load(MINIMAL + "model: {preset: best}\n").model.kind == "peg"


def test_a_mixture_of_non_links_counts_and_a_word_is_as_before():
    mixed = load(MINIMAL + "train: {negatives: {corrupt: 0.5, hard: 0.5}}\n").train
    assert mixed.sampling().negatives == Mixture(corrupt=0.5, hard=0.5)
    assert mixed.dependencies()["negatives"] == {"uniform": 0, "corrupt": 0.5, "hard": 0.5}
    word = load(MINIMAL + "train: {negatives: hard}\n").train
    assert word.sampling().negatives == word.dependencies()["negatives"] == "hard"
    assert PipelineConfig(**load(MINIMAL).model_dump()) == load(MINIMAL)
