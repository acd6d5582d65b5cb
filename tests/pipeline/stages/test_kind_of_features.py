"""What `features.kind: auto` becomes."""

import pytest

from pipeline.config.pipeline_config import PipelineConfig
from pipeline.stages.features import kind_of

ENDS = {"edges": "plays.parquet", "source": "user", "target": "item"}
USERS = {"files": "users.parquet", "id": "user", "features": ["age"]}
ITEMS = {"files": "items.parquet", "id": "item"}


@pytest.mark.parametrize(
    ("graph", "kind"),
    [
        (ENDS, "degree"),
        ({**ENDS, "nodes": "nodes.parquet"}, "degree"),
        ({**ENDS, "nodes": "nodes.parquet", "features": "x"}, "node"),
        ({**ENDS, "bipartite": True, "nodes": {"item": ITEMS}}, "degree"),
        ({**ENDS, "bipartite": True, "nodes": {"user": USERS, "item": ITEMS}}, "node"),
    ],
)
def test_features_of_any_node_table_are_read(graph, kind):
    config = PipelineConfig(name="plays", store="store", graph=graph)
    assert kind_of(config) == kind
    given = config.features.model_copy(update={"kind": "random"})
    assert kind_of(config.model_copy(update={"features": given})) == "random"
