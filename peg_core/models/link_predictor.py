"""What every model offers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional

from peg_core.errors import ConfigError
from peg_core.graph.graph_store import GraphStore
from peg_core.layers.edge_rule import EdgeRule
from peg_core.layers.message_graph import MessageGraph, Positions
from peg_core.models.heads import HEADS, CosineHead, Head
from peg_core.models.model_spec import ModelSpec

State = Tensor | tuple[Tensor, Tensor]

# Of the input, between layers, in the head. Few inputs of the head carry much: dropping half
# of them cost half a point of AUC.
PRESET_DROPOUT = {"best": (0.3, 0.5, 0.1), "faithful": (0.0, 0.0, 0.0), "ranking": (0.6, 0.3, 0.0)}
NO_DROPOUT = (0.0, 0.0, 0.0)
PRESET_HEAD = {"best": "structural", "faithful": "inner_product", "ranking": "branches"}


class LinkPredictor(nn.Module):
    """Embeds nodes layer by layer, then turns pairs into logits.

    Subclasses fill ``layers`` and say what they ask of an edge; ``reads_positions`` says whether
    the first state needs them, ``table_deviation`` how far learned features lie apart at first,
    ``maps_features`` whether the first state is made of the features by weights,
    ``reads_sparse_rows`` whether those may come without their zeros, ``reads_geometry`` whether
    edges and head read distances and inner products of positions, and ``is_local`` whether a
    layer reads none but a node and its neighbours.
    """

    reads_positions: ClassVar[bool] = False
    table_deviation: ClassVar[float | None] = None
    maps_features: ClassVar[bool] = False
    reads_sparse_rows: ClassVar[bool] = False
    reads_geometry: ClassVar[bool] = True
    is_local: ClassVar[bool] = True
    rule: EdgeRule
    layers: nn.ModuleList

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.spec = spec
        name = self.preset_head(spec) if spec.head == "preset" else spec.head
        shares = self.preset_dropout(spec)
        if spec.dropout is not None:
            shares = (0.0, spec.dropout, spec.dropout)
        self.input_dropout, self.dropout, head_dropout = shares
        if name == "placed_branches" and not self.reads_geometry:
            raise ConfigError(
                f"`model.head` is placed_branches, which reads positions, {spec.kind} reads none; "
                "set it to branches"
            )
        self.head: Head = HEADS[name](
            spec.hidden,
            spec.num_encodings if self.reads_geometry else 0,
            dropout=head_dropout,
            width=spec.head_width,
            directed=spec.directed,
        )
        self.table = (
            nn.Embedding(spec.learned_nodes, spec.in_channels) if spec.learned_nodes else None
        )
        if self.table is not None:
            deviation = spec.initial_deviation or self.table_deviation
            if deviation is None:
                # small, so that what is learnt soon outweighs it
                nn.init.xavier_uniform_(self.table.weight)
            else:
                nn.init.normal_(self.table.weight, std=deviation)

    @staticmethod
    def preset_dropout(spec: ModelSpec) -> tuple[float, float, float]:
        """Shares dropped from the input, between layers and in the head, where none is given."""
        return PRESET_DROPOUT[spec.preset]

    @staticmethod
    def preset_head(spec: ModelSpec) -> str:
        """The head of a preset, a name of ``HEADS``."""
        return PRESET_HEAD[spec.preset]

    def whole_messages(self, graph: GraphStore, positions: Positions) -> MessageGraph:
        """The messages of a whole graph: along its edges, where the model is local.

        Args:
            graph: The edges that may be seen.
            positions: [num_nodes, dimensions] for every encoding.
        """
        return MessageGraph.of_graph(graph, positions, self.rule)

    def require_local(self) -> None:
        """Refuse steps that take a part of the messages, where a node reads more than that."""
        if not self.is_local:
            raise ConfigError(
                f"{self.spec.kind} reads the whole graph in every step, `train.batching` is "
                "sampled or masked, or became sampled above a million edges; set it to full, or "
                "use another model"
            )

    def first_state(
        self, x: Tensor, positions: Sequence[Tensor], nodes: Tensor | None = None
    ) -> Tensor:
        """What the first layer reads of nodes: their features, and for some models more.

        Args:
            x: [num_nodes, in_channels]; not read where features are learned.
            positions: [num_nodes, dimensions] for every encoding.
            nodes: [num_nodes] which nodes these are; None: all, in order.
        """
        del positions
        return self.features(x, nodes)

    def features(self, x: Tensor, nodes: Tensor | None) -> Tensor:
        """The given features, or the learned ones."""
        if self.table is None:
            return x
        rows: Tensor = self.table.weight if nodes is None else self.table(nodes)
        return rows

    def state_width(self, layer: int) -> int:
        """Columns of what ``embed_layer(layer, ...)`` returns; the last one's is the embedding."""
        del layer
        return self.spec.hidden

    def forward(self, state: Tensor, messages: MessageGraph | Sequence[MessageGraph]) -> Tensor:
        """Embeddings from the first state, [num_targets of the last layer, hidden].

        Args:
            state: Of all nodes of the first layer's messages.
            messages: One graph for all layers, or one for each.
        """
        for layer in range(len(self.layers)):
            edges = messages if isinstance(messages, MessageGraph) else messages[layer]
            state = self.embed_layer(layer, state, edges)
        return state

    @abstractmethod
    def embed_layer(self, layer: int, state: State, messages: MessageGraph) -> Tensor:
        """One layer for the targets of ``messages``, [num_targets, state_width(layer)].

        Args:
            layer: Its number.
            state: Of the sources, the targets being the first of them; or of (sources,
                targets) apart.
            messages: The edges.
        """

    def ends(self, layer: int, state: State, messages: MessageGraph) -> tuple[Tensor, Tensor]:
        """The state of sources and of targets, with dropout while training."""
        if isinstance(state, tuple):
            return state
        if self.training:
            state = functional.dropout(state, self.dropout if layer else self.input_dropout)
        return state, state[: messages.num_targets]

    def activate(self, layer: int, out: Tensor) -> Tensor:
        """ReLU between layers, the authors' code has none; length 1 after the last for a cosine."""
        if layer < len(self.layers) - 1:
            return out.relu() if self.spec.preset == "best" else out
        return functional.normalize(out, dim=-1) if isinstance(self.head, CosineHead) else out

    def take_penalty(self) -> Tensor | None:
        """What training adds to the loss of the last forward pass, once; None for most models."""
        return None

    def decode(self, first: Tensor, second: Tensor, geometry: Tensor, structure: Tensor) -> Tensor:
        """Logits of pairs, [num_pairs]; symmetric in the two ends unless links are directed."""
        logits: Tensor = self.head(first, second, geometry, structure)
        return logits


def preset_rule(spec: ModelSpec, normalisation: str = "symmetric") -> EdgeRule:
    """Distances by default, their squares in the authors' code."""
    preset = "squared" if spec.preset == "faithful" else "distance"
    measure = preset if spec.gate == "preset" else spec.gate
    return EdgeRule(measure, normalisation)  # type: ignore[arg-type]
