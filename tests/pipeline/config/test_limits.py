"""Files and values beyond reason: refused at once, in words, wherever they stand."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from peg_core.errors import ConfigError
from pipeline.cli.app import cli
from pipeline.config.loading import load_config
from pipeline.config.pipeline_config import PipelineConfig

MINIMAL = "name: demo\nstore: runs/demo\ngraph:\n  edges: edges.parquet\n"
LOCATIONS = {
    "store": "",
    "graph.edges": "",
    "graph.nodes": "",
    "split.valid_edges": "",
    "split.test_edges": "",
    "split.valid_negatives": "",
    "split.test_negatives": "",
    "score.candidates": "",
    "recommend.nodes": "",
    "recommend.allowed.files": "",
    "recommend.exclude.files": "",
    "evaluate.on.edges": "",
    "evaluate.on.nodes": "evaluate.on.edges=e.parquet",
}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def load(text: str, *overrides: str) -> PipelineConfig:
    Path("run.yaml").write_text(text, encoding="utf-8")
    return load_config(Path("run.yaml"), overrides)


def the_problem(text: str, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(text, *overrides)
    _, line = str(caught.value).splitlines()
    return line


def aliases(levels: int, wide: int) -> str:
    """Lists of lists: so many levels, each of them so many times the one before."""
    lines = ["x0: &x0 [a]"]
    for level in range(1, levels):
        lines.append(f"x{level}: &x{level} [{', '.join([f'*x{level - 1}'] * wide)}]")
    return "\n".join(lines) + "\n"


def merges(levels: int) -> str:
    """Sections that take in one section twice, which takes in another twice, ..."""
    inner = "&m0 {k: 1}"
    for level in range(1, levels):
        inner = f"&m{level} {{<<: [{inner}, *m{level - 1}], k{level}: 1}}"
    return f"x: {inner}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x: " + "[" * 3000 + "]" * 3000, "nested more than 32 levels deep; no setting needs that"),
        ("x: " + "{a: " * 3000 + "1" + "}" * 3000, "nested more than 32 levels deep"),
        ("\n".join(" " * depth + "a:" for depth in range(500)), "nested more than 32 levels"),
        ("x:\n" + "- " * 3000 + "1", "nested more than 32 levels deep"),
        ("? " * 3000 + "1", "nested more than 32 levels deep"),
        (aliases(10, 9), "more than 20,000 values, aliases written out"),
        (aliases(30, 2), "more than 20,000 values, aliases written out"),
        ("x: [" + "1, " * 30_000 + "1]", "more than 20,000 values"),
        ("x: " + "a" * 1_000_001, "the file is larger than 1,000,000 bytes, a pipeline file is"),
        (merges(14), "unknown key 'x'"),
        ("x: {<<: {[a]: b}}", "a key must be text"),
        ('x: "\\ud800"', "a character that Unicode does not have"),
    ],
)
def test_bombs_are_refused_before_they_are_expanded(text, expected):
    """What would be expanded takes hours, or all memory: the time limit of tests would end it."""
    assert expected in the_problem(MINIMAL + text)


def test_a_device_that_never_ends_is_no_pipeline_file():
    with pytest.raises(ConfigError, match="the file is larger than 1,000,000 bytes"):
        load_config(Path("/dev/zero"))


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("train.epochs=" + "[" * 3000, "nested more than 32 levels deep"),
        ("train.epochs=" + "[" * 40 + "]" * 40, "nested more than 32 levels deep"),
        (".".join("a" * 2000) + "=1", "an override must be KEY=VALUE"),
        ("encodings." + "9" * 5000 + "=1", "no item '9"),
        ("encodings.\u0663=1", "no item '\u0663'; the items of `encodings` are 0 to 0"),
        ("store=\udcff", "a character that Unicode does not have|unacceptable character"),
    ],
)
def test_bombs_in_overrides_are_refused_too(override, expected):
    line = the_problem(MINIMAL + "encodings: [le]\n", override)
    assert any(part in line for part in expected.split("|"))
    line.encode()  # can be shown


def test_a_thousand_problems_are_counted_but_not_all_shown():
    with pytest.raises(ConfigError) as caught:
        load(MINIMAL + "".join(f"key{number}: 1\n" for number in range(1000)))
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("1000 problems found")
    assert len(lines) == 102
    assert lines[-1] == "and 900 more"


def test_every_location_of_the_schema_is_tested_here():
    def names(model: object, path: tuple[str, ...] = ()) -> set[str]:
        found = set()
        for name, field in model.model_fields.items():  # type: ignore[attr-defined]
            kinds = (field.annotation, *getattr(field.annotation, "__args__", ()))
            if "as_location" in repr([field, *(getattr(k, "__metadata__", "") for k in kinds)]):
                found.add(".".join((*path, name)))
            for kind in kinds:
                if hasattr(kind, "model_fields"):
                    found |= names(kind, (*path, name))
        return found

    assert names(PipelineConfig) == set(LOCATIONS)


@pytest.mark.parametrize("key", LOCATIONS)
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("''", "found an empty location, needed a path or a URL"),
        ("'  '", "found an empty location"),
        ('"a\\0b"', "found the character U+0000 in 'a\\x00b'"),
        ('"a\\nb"', "found the character U+000A"),
        ('"a\\x1bb"', "found the character U+001B"),
        ("hdfs://name/runs", "begins with 'hdfs://', known are paths and URLs with s3://, gs://"),
        ("ftp://host/x", "begins with 'ftp://'"),
        ("http://host/x", "begins with 'http://'"),
        ("s3://", "names no bucket"),
        ("'~/x'", "write ${HOME} instead"),
    ],
)
def test_what_cannot_be_a_location_is_refused_at_its_key(key, value, expected):
    before = [LOCATIONS[key]] if LOCATIONS[key] else []
    line = the_problem(MINIMAL, *before, f"{key}={value}")
    assert line.startswith(f"--set {key}={value}: {key}: ")
    assert expected in line


@pytest.mark.parametrize("location", ["a b", "données/ä", "C:/x", "./hdfs:/x", "s3://b/k?region=x"])
def test_odd_locations_that_can_be_are_accepted(location):
    assert load(MINIMAL, f"graph.edges='{location}'").graph.edges == location


@pytest.mark.parametrize(
    "value",
    [
        "0",
        "-1",
        "many",
        "99999999999",
        "1.5",
        "true",
        "",
        "[1]",
        "[4, 2]",
        "[1, 2, 3]",
        "[0, 2]",
        "[a, b]",
        "{a: 1}",
        "[1, true]",
        ".inf",
        "'4'",
    ],
)
def test_wrong_numbers_of_train_workers_say_what_to_write(value):
    line = the_problem(MINIMAL, f"cluster.train_workers={value}")
    assert "cluster.train_workers: found " in line
    assert "needed a whole number from 1 to 10,000, or [least, most]; write for example 4" in line


@pytest.mark.parametrize(("value", "expected"), [("4", 4), ("[2, 8]", (2, 8)), ("[3, 3]", (3, 3))])
def test_train_workers_are_one_number_or_two(value, expected):
    cluster = load(MINIMAL, f"cluster.train_workers={value}").cluster
    assert cluster.train_workers == expected
    assert cluster.settings().train_workers == expected


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("1:30", "found the text '1:30', needed a whole number; write it in plain digits"),
        ("190:20:30", "found the text '190:20:30', needed a whole number; write it in plain"),
        ("010", "found the text '010', needed a whole number; write it in plain digits"),
        ("0b11", "found the text '0b11', needed a whole number; write it in plain digits"),
        ("!!int 1:30", "found the text '1:30', needed a whole number"),
        ("on", "found true, needed a whole number"),
        ("9" * 5000, "needed a whole number"),
        ("0x" + "f" * 5000, "needed a whole number"),
        ("1e30", "found 1e+30, needed a whole number; leave `epochs` out for the default, 'auto'"),
        ("1" + "0" * 30, "needed at most 1000000000"),
        ("[5]", "found a list, needed a whole number"),
        ("-5", "found -5, needed at least 1"),
    ],
)
def test_numbers_are_plain_digits(value, hint):
    line = the_problem(MINIMAL, f"train.epochs={value}")
    assert "train.epochs: found " in line
    assert hint in line


@pytest.mark.parametrize(("value", "expected"), [("1_000", 1000), ("0x1F", 31), ("+7", 7)])
def test_other_ways_to_write_a_whole_number_stay(value, expected):
    assert load(MINIMAL, f"train.epochs={value}").train.epochs == expected


@pytest.mark.parametrize("word", ["yes", "no", "on", "off"])
def test_a_bare_yes_or_no_is_no_text(word):
    hint = "yes, no, on and off mean true and false: write the word in quotes"
    assert hint in the_problem(MINIMAL, f"graph.source={word}")
    assert load(MINIMAL, f"graph.source='{word}'").graph.source == word
    assert load(MINIMAL, f"features.standardise={word}").features.standardise in (True, False)


@pytest.mark.parametrize(
    "setting",
    [
        "train.lr=.inf",
        "train.lr=.nan",
        "train.lr=1e400",
        "train.lr=1e300",
        "train.lr=true",
        "train.weight_decay=-.inf",
        "model.hidden=1e30",
        "model.hidden=100000000",
        "model.dropout=.nan",
        "split.test=-.1",
        "score.prior=2",
        "model.layers=999",
        "cluster.task_memory=1e30",
        "cluster.task_memory=99999999999999999999999TB",
        "cluster.task_memory=²GB",
        "cluster.address=''",
        "cluster.gpus_per_worker=-1",
        "cluster.retries=-1",
        "cluster.workers=0",
        "train.seed=99999999999999999999",
        "train.fan_outs=[-2, 1]",
        "evaluate.hits=[1.5]",
        "encodings.0.dimensions=1e30",
        "encodings.0.dimensions=100000000000000",
        "encodings.0.tolerance=.nan",
        "encodings=[{kind: node2vec, p: .inf}]",
        "graph.weight=''",
        "encodings=[{kind: node2vec, q: .nan}]",
        "graph.feature_width=2000000",
        "repeats=0",
        "encodings.0.dimensions=true",
        "encodings.0.dimensions=[1]",
        "recommend.top_k=0",
    ],
)
def test_numbers_beyond_reason_are_one_problem(setting):
    base = MINIMAL + "score: {candidates: c.parquet}\nencodings: [{kind: le}]\n"
    base = base.replace("  edges: e", "  nodes: n.parquet\n  features: x\n  edges: e")
    line = the_problem(base, setting)
    assert "needed" in line or "write for example" in line


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (["graph.source=dst"], "graph.source: `source` and `target` are both the column 'dst'"),
        (["graph.weight=src"], "graph.weight: `weight` and `source` are both the column 'src'"),
        (["graph.time=dst"], "graph.time: `time` and `target` are both the column 'dst'"),
        (["graph.nodes=n", "graph.label=id"], "`label` and `node_id` are both the column 'id'"),
        (["graph.nodes=n", "graph.features=[x, x]"], "`features` names the column 'x' twice"),
        (["graph.nodes=n", "graph.features=id"], "`features` names 'id', the column of `node_id`"),
        (["score={candidates: c, source: a, target: a}"], "`source` and `target` are both the co"),
        (["evaluate.on={edges: e, source: dst}"], "`source` and `target` are both the column"),
        (
            ["split={by: files, valid_edges: v.parquet, test_edges: ./v.parquet}"],
            "`test_edges` and `valid_edges` are both './v.parquet'; links that choose the model",
        ),
    ],
)
def test_two_keys_do_not_name_one_thing(settings, expected):
    assert expected in the_problem(MINIMAL, *settings)


@pytest.mark.parametrize(
    "setting", ["store=hdfs://x/y", "store=", "graph.edges=''", "cluster.train_workers=no"]
)
def test_the_command_leaves_nothing_behind(setting):
    Path("run.yaml").write_text(MINIMAL)
    for command in (["plan"], ["run"], ["status"], ["config", "show"]):
        done = CliRunner().invoke(cli, [*command, "run.yaml", "--set", setting])
        assert isinstance(done.exception, ConfigError)
        assert done.exception.exit_code == 2
    assert [path.name for path in Path().iterdir()] == ["run.yaml"]
