"""Where graphs are looked for, and what stands in for them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from peg_core.errors import ConfigError
from pipeline.reproduce.graph_data import GraphData
from pipeline.reproduce.stand_in import write_stand_in


def pairs(folder: Path, table: str) -> list[tuple[int, int]]:
    return pl.read_parquet(folder / f"{table}.parquet", columns=["src", "dst"]).rows()


def test_a_stand_in_has_a_whole_split_and_non_links_that_are_none(tmp_path):
    write_stand_in(tmp_path / "small")
    edges = pairs(tmp_path / "small", "edges")
    parts = [pairs(tmp_path / "small", part) for part in ("train", "valid", "test")]
    assert sorted(pair for part in parts for pair in part) == sorted(set(edges))
    for part, links in zip(("valid", "test"), parts[1:], strict=True):
        assert len(pairs(tmp_path / "small", f"{part}_neg")) == len(links)
        for kind in ("neg", "heart"):
            assert not set(pairs(tmp_path / "small", f"{part}_{kind}")) & set(edges)
        of_link = pl.read_parquet(tmp_path / f"small/{part}_heart.parquet")["link"]
        assert of_link.n_unique() == len(links)
    nodes = pl.read_parquet(tmp_path / "small/nodes.parquet")
    assert {node for pair in edges for node in pair} <= set(nodes["id"])
    for row in nodes.rows(named=True)[:20]:
        assert row["x_indices"] == [i for i, value in enumerate(row["x"]) if value > 0]


def test_a_stand_in_depends_on_the_name_of_the_graph_alone(tmp_path):
    for folder in ("a/small", "b/small", "a/small-heart", "a/other"):
        write_stand_in(tmp_path / folder)
    one, again, official, other = (
        pairs(tmp_path / folder, "edges")
        for folder in ("a/small", "b/small", "a/small-heart", "a/other")
    )
    assert one == again == official != other


def test_real_graphs_are_taken_where_they_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PEG_DATA_DIR", raising=False)
    out = Path("out")
    assert GraphData.choose(None, out=out, quick=True) == GraphData(out / "generated", True)
    with pytest.raises(ConfigError, match=r"no graphs at \.\./shared/data.*--data DIR"):
        GraphData.choose(None, out=out, quick=False)
    monkeypatch.setenv("PEG_DATA_DIR", str(tmp_path))
    for quick in (True, False):
        assert GraphData.choose(None, out=out, quick=quick) == GraphData(tmp_path)
    with pytest.raises(ConfigError, match="no graphs at nowhere"):
        GraphData.choose(Path("nowhere"), out=out, quick=True)
