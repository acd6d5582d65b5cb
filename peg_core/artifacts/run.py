"""A finished run, opened from Python: its graph, its model, its scores."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from peg_core.artifacts.embedded_graph import EmbeddedGraph, Embeddings
from peg_core.artifacts.evaluation import Evaluation
from peg_core.artifacts.manifest import Manifest, require_whole
from peg_core.artifacts.positions import Positions
from peg_core.artifacts.scored_pairs import ScoredPairs
from peg_core.artifacts.trained_model import TrainedModel, Training, seed_part
from peg_core.errors import InputError
from peg_core.explain.explanation import FILE_NAME, PairExplanation
from peg_core.explain.pair_explainer import PairExplainer
from peg_core.explain.pair_nodes import pair_nodes
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.graph.ids.id_types import normalise_ids
from peg_core.graph.ids.node_ids import NodeIds
from peg_core.graph.ids.wrong_kind import require_kind
from peg_core.graph.node_features import NodeFeatures
from peg_core.inference.pair_scoring import PairScorer
from peg_core.metrics.calibration import Calibration
from peg_core.object_url import is_url
from peg_core.splits.split_store import SplitStore
from peg_core.storage.mirror import Attempt
from peg_core.storage.object_storage import CURRENT_NAME, Storage
from peg_core.storage.stored_path import stored_folder


@dataclass(frozen=True)
class Run:
    """What the last run of a store made; everything is opened when it is asked for."""

    store: Path | str
    verify: Literal["full", "sizes"] = "sizes"

    @classmethod
    def open(cls, store: Path | str, verify: Literal["full", "sizes"] = "sizes") -> Self:
        """The last run of a store: a folder, or the URL of an object store.

        Of an object store those files come to this machine's cache that are read.

        Args:
            verify: Whether the contents of an artifact are compared with what was written, or
                the sizes of its files alone; files of an object store are compared as they come.
        """
        if is_url(store):
            if not isinstance(Storage(str(store)).read_json(CURRENT_NAME), dict):
                raise InputError(
                    f"{store} holds no run: it has no {CURRENT_NAME}; name the `store` of a "
                    "pipeline file, and run `peg run` with that file first"
                )
            return cls(str(store), verify)
        if not (Path(store) / "current").is_dir():
            raise InputError(
                f"{store} holds no run: it has no folder `current`; name the `store` of a pipeline "
                "file, and run `peg run` with that file first"
            )
        return cls(Path(store), verify)

    def folder(self, stage: str) -> Path:
        """The artifact of a stage."""
        folder = self._folder(stage)
        if folder is None or Manifest.read(folder) is None:
            raise InputError(
                f"the run in {self.store} has no finished stage {stage!r}; finish it with `peg run`"
            )
        if not is_url(self.store):
            require_whole(folder, contents=self.verify == "full")
        return folder

    def _folder(self, stage: str) -> Path | None:
        if not is_url(self.store):
            return (Path(self.store) / "current" / stage).resolve()
        storage = Storage(str(self.store))
        fingerprint = (storage.read_json(CURRENT_NAME) or {}).get(stage)
        if fingerprint is None:
            return None
        name = f"{stage}/{fingerprint}"
        return stored_folder(Attempt.of(storage, name, finished=True, run=self._reader))

    @cached_property
    def _reader(self) -> str:
        """Files are compared with what was written once for every run that is opened."""
        return uuid.uuid4().hex

    def manifest(self, stage: str) -> Manifest:
        """What a stage was made from, what it counted and what it cost."""
        return Manifest.require(self.folder(stage))

    @cached_property
    def graph(self) -> GraphStore:
        """All known edges."""
        return GraphStore.open(self.folder("ingest"))

    @cached_property
    def ids(self) -> GraphIds:
        """By kind: ``ids.source`` and ``ids.target`` are those of the ends of a predicted link."""
        return GraphIds.open(self.folder("ingest"))

    @cached_property
    def node_ids(self) -> NodeIds:
        """Of a graph with one kind of node."""
        if len(self.ids.kinds) > 1:
            names = ", ".join(str(kind.name) for kind in self.ids.kinds)
            raise InputError(
                f"the graph of {self.store} has several kinds of node ({names}), whose ids are "
                "apart; use `ids.source`, `ids.target` or `ids.kinds`"
            )
        return self.ids.source.ids

    @cached_property
    def features(self) -> NodeFeatures:
        return NodeFeatures.open(self.folder("features"))

    @cached_property
    def split(self) -> SplitStore:
        """The training graph and the held-out pairs."""
        return SplitStore(self.folder("split"))

    @cached_property
    def positions(self) -> Positions:
        """In the graph of all known edges."""
        return Positions(self.folder("encode_all"))

    @cached_property
    def train_positions(self) -> Positions:
        """In the training graph, and without each of its folds."""
        return Positions(self.folder("encode"))

    @cached_property
    def evaluation(self) -> Evaluation:
        return Evaluation(self.folder("evaluate"))

    @cached_property
    def model(self) -> TrainedModel:
        """The model that was best on the validation pairs, calibrated."""
        training = Training(self.folder("train"))
        part = seed_part(training.best_seed)
        return TrainedModel(
            training.model().folder, Calibration.open(self.folder("calibrate") / part)
        )

    @cached_property
    def scoring_model(self) -> TrainedModel:
        """The model that embedded all known edges: fitted again to them where that was asked."""
        embedded = self.manifest("embed_all").identity
        if "refit" not in embedded.inputs:
            return self.model
        part = seed_part(Training(self.folder("train")).best_seed)
        return TrainedModel(self.folder("refit") / part, self.model.calibration)

    @cached_property
    def embedded(self) -> EmbeddedGraph:
        """The graph of all known edges, as the model's head reads it."""
        embeddings = Embeddings(self.folder("embed_all"))
        return EmbeddedGraph.of(self.graph, self.positions, embeddings)

    @cached_property
    def scorer(self) -> PairScorer:
        return self.embedded.scorer(self.scoring_model)

    def score(self, source: Any, target: Any) -> npt.NDArray[np.float32]:
        """Chance that each pair is a link, as `peg run` would score it; NaN for unknown ids.

        Args:
            source, target: [num_pairs] ids as in the edge list: a list, an array or a column.
                Where the predicted relation is directed, of the link from source to target.
        """
        ends = []
        for name, kind, given in zip(
            ("source", "target"), self.ids.ends, (source, target), strict=True
        ):
            column = normalise_ids(_column(given))
            require_kind(self.ids, kind, column, column=name, location="the call")
            ends.append(kind.lookup(column))
        known = (ends[0] >= 0) & (ends[1] >= 0)
        scores = np.full(len(known), np.nan, dtype=np.float32)
        calibration = self.model.calibration
        assert calibration is not None  # opened with one above
        logits = self.scorer.logits(ends[0][known], ends[1][known])
        scores[known] = calibration.probabilities(logits)
        return scores

    @cached_property
    def explainer(self) -> PairExplainer:
        """Explains pairs of node indices; the random pairs it compares with are drawn once."""
        return self.embedded.explainer(self.scoring_model, self.ids, self.features)

    def explain(self, source: Any, target: Any) -> PairExplanation:
        """Why a pair has its score.

        Args:
            source, target: An id each, as in the edge list.

        Raises:
            InputError: An id is not in the graph, or both are one node.
        """
        return self.explainer.explain(*pair_nodes(self.ids, source, target))[0]

    def scores(self) -> pl.LazyFrame:
        """The scored candidates of the run."""
        return ScoredPairs(self.folder("score")).table()

    def explanations(self) -> pl.DataFrame:
        """The best pairs with a column `why`, where `score.explain` is top."""
        return pl.read_parquet(self.folder("explain") / FILE_NAME)

    def metrics(self) -> pl.DataFrame:
        """How well links were ranked, a row for every protocol, method and metric."""
        return self.evaluation.metrics()


def _column(ids: Any) -> pa.Array:
    if isinstance(ids, pl.Series):
        ids = ids.to_arrow()
    return pa.array(ids) if not isinstance(ids, pa.Array | pa.ChunkedArray) else ids
