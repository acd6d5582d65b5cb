"""``peg top`` in words; with a finished run it is tried beside the documents."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from peg_core.errors import ConfigError
from peg_core.graph.ids.graph_ids import KindIds
from peg_core.graph.ids.node_ids import NodeIds
from peg_core.inference.top_links import TopLinks
from pipeline.cli.links.top_command import describe, node_values
from pipeline.config.pipeline_config import PipelineConfig

BEST = TopLinks(
    names=[("ada", "bob"), ("ada", "cy")],
    source=np.array([0, 0]),
    target=np.array([1, 2]),
    scores=np.array([0.98765, 0.5]),
    common_neighbours=np.array([1, 0]),
)


@pytest.fixture
def config(tmp_path):
    """A configuration whose node table says nothing of cy."""
    file = tmp_path / "nodes.parquet"
    table = {"who": ["bob", "ada"], "town": ["Ulm", "Ulm"], "likes": [["tea", "jam"], ["jam"]]}
    pq.write_table(pa.table(table), file)
    graph = {"edges": "edges.parquet", "nodes": str(file), "node_id": "who"}
    return PipelineConfig.model_validate({"name": "x", "store": "y", "graph": graph})


def test_pairs_are_told_with_what_both_ends_have(config):
    columns = ("town", "likes")
    kind = KindIds(NodeIds(pa.array(["ada", "bob", "cy"])))
    known = [node_values(config, kind, nodes, columns) for nodes in (BEST.source, BEST.target)]
    assert known[0] == {0: {"who": "ada", "town": "Ulm", "likes": ["jam"]}}
    assert list(describe(BEST, columns, *known)) == [
        "  1  0.9877  ada",
        "             bob",
        "             town Ulm; likes jam; 1 common neighbour",
        "  2  0.5000  ada",
        "             cy",
        "             no common neighbours",
    ]


def test_a_column_that_is_not_there_is_refused(config):
    kind = KindIds(NodeIds(pa.array(["ada", "bob"])))
    with pytest.raises(ConfigError, match="has no column 'age'; its columns: who, town, likes"):
        node_values(config, kind, BEST.source, ("age",))
