"""A trained model on a graph that it was not trained on: it stays, the graph is made ready for it.

A refresh (the same graph, grown), `peg score --model` (another graph) and `evaluate.on` (the
test links of another graph) all run the usual stages; this is what they do differently.
"""

from __future__ import annotations

from dataclasses import replace

from peg_core.artifacts.recipe import Recipe
from peg_core.artifacts.trained_model import TrainedModel
from peg_core.errors import ArtifactMismatch, InputError
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_features import features_width
from pipeline.config.data_sections import EncodingConfig
from pipeline.config.graph_section import GraphConfig
from pipeline.run.stage import Stage, StageContext, StageResult
from pipeline.run.stage_inputs import StageInputs
from pipeline.stages import features
from workers.artifact_ref import ArtifactRef


def graph_section(recipe: Recipe, edges: str, nodes: str | None) -> GraphConfig:
    """The `graph` section for another graph, which has the columns of the first."""
    known = GraphConfig(**recipe.graph)
    if isinstance(known.edges, list):
        raise InputError(
            f"the model was trained on {len(known.edges)} relations "
            f"({', '.join(relation.name for relation in known.edges)}), another graph is given as "
            "one edge list; run the pipeline file of the other graph instead"
        )
    without = {} if nodes else {"features": None, "feature_width": None}
    rest = {"time": None, "label": None, "node_split": None, **without}
    return known.model_copy(update={"edges": edges, "nodes": nodes, **rest})


def encoding_sections(recipe: Recipe) -> list[EncodingConfig]:
    """As trained; a number of dimensions that was found automatically is kept."""
    return [
        EncodingConfig(**{**item, "dimensions": width})
        for item, width in zip(recipe.encodings, recipe.dimensions, strict=True)
    ]


def features_stage() -> Stage:
    """Features made the way that was fitted in training."""

    def run(context: StageContext) -> StageResult:
        model = context.inputs.best_model.open()
        require_features(model, context.inputs.graph)
        request = replace(features.feature_request(context), fitted=model.transform_file)
        return StageResult(counts=features.build_features(context, request))

    return replace(features.STAGE, inputs=("ingest", "train"), run=run)


def require_features(model: TrainedModel, graph: ArtifactRef[GraphStore]) -> None:
    """Refuse node features that are not those the model was trained on."""
    needed = model.recipe.feature_width
    if needed is None:
        return
    found = features_width(graph.folder)
    if found != needed:
        raise ArtifactMismatch.of(
            what=f"the node features of {graph.folder} and the model {model.folder}",
            found="none" if found is None else f"{found:,} columns",
            needed=f"{needed:,} columns",
        )


def require_width(inputs: StageInputs) -> None:
    """Refuse inputs of another width than the first layer has."""
    model = inputs.best_model.open()
    num_nodes = inputs.graph.open().num_nodes
    positions = inputs.all_positions.open().arrays(num_nodes=num_nodes)
    found, needed = inputs.features.open().width(positions), model.spec.in_channels
    if found != needed:
        raise ArtifactMismatch.of(
            what=f"the features of {inputs.graph.folder} and the model {model.folder}",
            found=f"{found:,} columns",
            needed=f"{needed:,}",
        )
