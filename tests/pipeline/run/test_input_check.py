"""What is wrong with a table is told before the first stage, by all commands that start it."""

from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner

from peg_core.errors import InputError
from pipeline.cli.plan_command import plan
from pipeline.cli.submit_command import submit
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.input_check import check_from_here, check_inputs
from pipeline.run.runner import plan_run, run_pipeline


def changed(config, **sections):
    """The configuration with other values, by section."""
    values = config.model_dump()
    for section, value in sections.items():
        values[section] = {**(values[section] or {}), **value}
    return PipelineConfig(**values)


def links(config, folder, name="links.parquet", **columns):
    """The first edges as a table of their own, some columns as given."""
    table = pl.read_parquet(config.graph.edges).head(20)
    file = folder / name
    table.with_columns(**columns).write_parquet(file)
    return str(file)


def as_text(name):
    return pl.col(name).cast(pl.String)


BAD = {
    "weights that are text": (
        lambda config, folder: changed(
            config,
            graph={
                "edges": links(config, folder, weight=pl.lit("heavy")),
                "weight": "weight",
            },
        ),
        "column 'weight' of .*links.parquet is of type (large_)?string.*needed is a number",
    ),
    "times that are numbers with a point": (
        lambda config, folder: changed(
            config, graph={"edges": links(config, folder, at=pl.lit(0.5)), "time": "at"}
        ),
        "column 'at' of .*links.parquet .*an integer or timestamp",
    ),
    "edges without rows": (
        lambda config, folder: changed(
            config,
            graph={"edges": empty(config.graph.edges, folder)},
        ),
        "empty.parquet holds no edges",
    ),
    "a node table with another kind of id": (
        lambda config, folder: changed(
            config,
            graph={
                "nodes": links(config, folder, src=as_text("src")),
                "node_id": "src",
                "features": None,
            },
        ),
        "column 'src' of .*links.parquet .*one kind of id everywhere",
    ),
    "features that are text": (
        lambda config, folder: changed(
            config,
            graph={
                "nodes": links(config, folder, x=pl.lit("red")),
                "node_id": "src",
                "features": ["x"],
            },
        ),
        "column 'x' of .*links.parquet .*a number or a list of numbers",
    ),
    "validation links without a column": (
        lambda config, folder: changed(
            config, split={"valid_negatives": links(config, folder, other=1).replace("links", "no")}
        ),
        "no Parquet file at",
    ),
    "negatives of another kind of id": (
        lambda config, folder: changed(
            config,
            split={"test_negatives": links(config, folder, src=as_text("src"), dst=as_text("dst"))},
        ),
        r"column 'src' of .*links.parquet .*ids as those of the graph \(int64\)",
    ),
    "candidates of another kind of id": (
        lambda config, folder: changed(
            config,
            score={"candidates": links(config, folder, src=as_text("src"), dst=as_text("dst"))},
        ),
        r"column 'src' of .*links.parquet .*ids as those of the graph \(int64\)",
    ),
    "candidates that have scores": (
        lambda config, folder: changed(
            config, score={"candidates": links(config, folder, score=pl.lit(1.0))}
        ),
        "has a column 'score' already",
    ),
    "nodes to recommend for of another kind of id": (
        lambda config, folder: changed(
            config,
            recommend={"nodes": links(config, folder, src=as_text("src")), "column": "src"},
        ),
        "column 'src' of .*links.parquet .*ids as those of the graph",
    ),
    "allowed nodes of another kind of id": (
        lambda config, folder: changed(
            config,
            recommend={"allowed": {"files": links(config, folder, id=as_text("src"))}},
        ),
        "column 'id' of .*links.parquet .*ids as those of the graph",
    ),
    "pairs to exclude without a column": (
        lambda config, folder: changed(
            config, recommend={"exclude": {"files": links(config, folder), "target": "bought"}}
        ),
        "links.parquet has no column 'bought'",
    ),
    "another graph without its column": (
        lambda config, folder: changed(
            config,
            graph={"nodes": None, "features": None},
            evaluate={"on": {"edges": links(config, folder), "target": "to"}},
        ),
        "links.parquet has no column 'to'",
    ),
}


def empty(edges, folder):
    file = folder / "empty.parquet"
    pl.read_parquet(edges).clear().write_parquet(file)
    return str(file)


@pytest.mark.parametrize("name", BAD)
def test_what_a_stage_would_refuse_hours_later_is_refused_at_once(
    name, small_pipeline, tmp_path, display
):
    make, message = BAD[name]
    config = make(small_pipeline, tmp_path)
    with pytest.raises(InputError, match=message):
        run_pipeline(config, display)
    assert not Path(config.store).exists()


def write_config(config, folder):
    file = folder / "pipeline.yaml"
    file.write_text(yaml.safe_dump(config.model_dump(mode="json", exclude_defaults=True)))
    return str(file)


@pytest.mark.parametrize(
    ("command", "options"), [(plan, []), (submit, ["--address", "http://127.0.0.1:1"])]
)
def test_plan_and_submit_tell_it_too(command, options, small_pipeline, tmp_path):
    make, message = BAD["candidates of another kind of id"]
    file = write_config(make(small_pipeline, tmp_path), tmp_path)
    with pytest.raises(InputError, match=message):
        CliRunner().invoke(command, [file, *options], catch_exceptions=False)


def test_good_inputs_pass_and_their_rows_are_counted(small_pipeline):
    checked = check_inputs(small_pipeline, plan_run(small_pipeline))
    assert {item.table.setting: item.rows for item in checked} == {
        "graph.edges": len(pl.read_parquet(small_pipeline.graph.edges)),
        "graph.nodes": len(pl.read_parquet(small_pipeline.graph.nodes)),
        "score.candidates": len(pl.read_parquet(small_pipeline.score.candidates)),
    }
    assert check_from_here(small_pipeline) == []


def test_signed_and_unsigned_ids_go_together(small_pipeline, tmp_path):
    candidates = links(small_pipeline, tmp_path, src=pl.col("src").cast(pl.UInt64))
    config = changed(small_pipeline, score={"candidates": candidates})
    assert len(check_inputs(config, plan_run(config))) == 3


def test_a_table_that_only_the_cluster_sees_is_named_and_left(small_pipeline):
    config = changed(small_pipeline, score={"candidates": "/of/the/cluster/*.parquet"})
    [text] = check_from_here(config)
    assert text == "score.candidates /of/the/cluster/*.parquet is not on this machine"


def test_every_file_of_a_folder_is_looked_at(small_pipeline, tmp_path):
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(40):
        links(small_pipeline, folder, f"{number:02}.parquet")
    pq.write_table(pa.table({"src": [1]}), folder / "37.parquet")
    config = changed(small_pipeline, score={"candidates": str(folder)})
    with pytest.raises(InputError, match=r"37.parquet has no column 'dst'"):
        check_inputs(config, plan_run(config))


@pytest.fixture
def shop(small_pipeline, tmp_path):
    """Users by number buy items by name."""
    file = tmp_path / "bought.parquet"
    pl.DataFrame({"user": [1, 2, 3], "item": ["a", "b", "1"]}).write_parquet(file)
    graph = {"edges": str(file), "source": "user", "target": "item", "bipartite": True}
    return small_pipeline.model_dump() | {"graph": graph, "score": None, "features": {}}


@pytest.mark.parametrize(
    ("recommend", "column"),
    [
        ({"nodes": "FILE", "column": "item"}, "item"),
        ({"nodes": "FILE", "column": "user", "for": "item"}, "user"),
        ({"allowed": {"files": "FILE", "column": "user"}}, "user"),
        ({"allowed": {"files": "FILE", "column": "item"}, "for": "item"}, "item"),
        ({"exclude": {"files": "FILE", "source": "item", "target": "user"}}, "item"),
    ],
)
def test_ids_of_the_other_kind_are_refused_where_their_types_differ(shop, recommend, column):
    def located(value):
        if isinstance(value, dict):
            return {key: located(inner) for key, inner in value.items()}
        return shop["graph"]["edges"] if value == "FILE" else value

    config = PipelineConfig(**shop | {"recommend": located(recommend)})
    with pytest.raises(InputError, match=f"column '{column}' of .* ids as those of the graph"):
        check_inputs(config, plan_run(config))


def test_excluded_pairs_are_called_as_links_and_kinds_are_those_of_links(shop):
    pairs = {"exclude": {"files": shop["graph"]["edges"]}}
    config = PipelineConfig(**shop | {"recommend": pairs})
    assert len(check_inputs(config, plan_run(config))) == 2
    for wanted, message in (("usr", "links lead from 'user' to 'item'"), ("edges", "name one of")):
        with pytest.raises(ValueError, match=message):
            PipelineConfig(**shop | {"recommend": {"for": wanted}})
