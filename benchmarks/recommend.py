"""Recommending artists to the users of last.fm: ours, LightGCN of PyG, ItemKNN, popularity.

    PEG_DATA_DIR=... python benchmarks/recommend.py

All learn from the same links: `train.parquet` less 10 % of each user's links, which choose the
number of epochs (and the neighbours of ItemKNN) by Recall@20. `test.parquet` is ranked once, over
all artists that the user is not known to have. A refit repeats the chosen epochs on all of
`train.parquet`. Ours has two layers of 128, with and without PEG's gate, without and with
friendships as a second relation. The last line is our Recall@20 without refit, gate and friends
over that of LightGCN.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
import torch
from torch_geometric.nn.models import LightGCN as PygLightGCN

from peg_core.encoding import ENCODERS
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_features import NodeFeatures
from peg_core.graph.relations import NodeKind, Relation, Relations
from peg_core.inference.partner_ranking import PartnerRanking
from peg_core.metrics.recommendation import Relevant, node_metrics
from peg_core.models import MODELS
from peg_core.splits.held_out_pairs import HeldOutPairs
from peg_core.splits.partners import Partners
from peg_core.splits.split_store import SplitStore
from peg_core.training.checkpoint import TrainingState
from peg_core.training.course import Course, follow
from peg_core.training.graph_view import FullView
from peg_core.training.link_trainer import LinkTrainer, PairLogits
from peg_core.training.partner_schedule import PartnerSchedule
from peg_core.training.settings import ModelSettings, Optimisation
from peg_core.training.step_source import FullGraphSource

K = 20
METRIC = f"recall@{K}"
Links = np.ndarray[Any, Any]  # [2, num_links] of user and artist, numbered as nodes


@dataclass(frozen=True)
class Data:
    """The links of each part; users are the nodes before ``users``."""

    users: int
    nodes: int
    train: Links
    valid: Links
    test: Links
    friends: Links | None = None

    @property
    def known(self) -> Links:
        return np.concatenate([self.train, self.valid], axis=1)

    def graph(self, links: Links) -> GraphStore:
        kinds = (NodeKind("user", 0, self.users), NodeKind("artist", self.users, self.nodes))
        listens = Relation("listens", "user", "artist")
        if self.friends is None:
            graph = GraphStore.from_edges(*links, num_nodes=self.nodes)
            relations = Relations(kinds, (listens,))
            return GraphStore(graph.indptr, graph.indices, relations=relations)
        both = np.concatenate([links, self.friends], axis=1)
        graph = GraphStore.from_edges(*both, num_nodes=self.nodes)
        relations = Relations(kinds, (listens, Relation("friends", "user", "user")))
        rows = np.repeat(np.arange(self.nodes), graph.degrees)
        among_users = (rows < self.users) & (graph.indices < self.users)
        bits = (sum(relations.bits(number)) for number in (1, 0))
        codes = np.where(among_users, *bits).astype(np.uint16)
        return GraphStore(graph.indptr, graph.indices, codes=codes, relations=relations)


def read(folder: Path, *, seed: int, friends: bool = False) -> Data:
    """Number the nodes, and set 10 % of each user's training links aside.

    Args:
        friends: Take friendships as a second relation; of people without a play they say nothing.
    """
    tables = [pl.read_parquet(folder / f"{name}.parquet") for name in ("train", "test")]
    both = pl.concat([table.select("user", "artist") for table in tables])
    users, artists = (both[name].unique().sort().to_numpy() for name in ("user", "artist"))
    train, test = (
        np.stack(
            [
                np.searchsorted(users, table["user"].to_numpy()),
                len(users) + np.searchsorted(artists, table["artist"].to_numpy()),
            ]
        )
        for table in tables
    )
    drawn = np.random.default_rng(seed).random(train.shape[1])
    order = np.lexsort((drawn, train[0]))
    place = np.arange(len(order)) - np.searchsorted(train[0][order], train[0][order])
    counts = np.bincount(train[0], minlength=len(users))
    aside = np.zeros(len(order), dtype=bool)
    aside[order] = place < np.round(0.1 * counts[train[0][order]])
    nodes = len(users) + len(artists)
    parts = train[:, ~aside], train[:, aside], test
    return Data(len(users), nodes, *parts, _friends(folder, users) if friends else None)


def _friends(folder: Path, users: np.ndarray[Any, Any]) -> Links:
    """The friendships of those who play something."""
    table = pl.read_parquet(folder / "friends.parquet")
    ends = np.stack([table[name].to_numpy() for name in ("user", "friend")])
    ends = ends[:, np.isin(ends, users).all(axis=0)]
    return np.searchsorted(users, ends)


def measure(ranking: PartnerRanking, links: Links) -> dict[str, float]:
    """Recall and NDCG of the links of one part."""
    relevant = Relevant.of(*links)
    values = node_metrics(ranking.lists(relevant.nodes, K), relevant, top_k=[K])
    return {name: float(values[f"{name}@{K}"].mean()) for name in ("recall", "ndcg")}


def of_matrix(data: Data, scores: np.ndarray[Any, Any], known: Links) -> PartnerRanking:
    """A ranking by a matrix of users and artists."""

    def some(nodes: Any, first: int, last: int) -> Any:
        return scores[nodes, first - data.users : last - data.users]

    graph = data.graph(known)
    return PartnerRanking(Partners.of(graph), [graph], some)


def both(data: Data, scores: np.ndarray[Any, Any]) -> tuple[dict[str, float], dict[str, float]]:
    """Of the validation and of the test links."""
    valid = measure(of_matrix(data, scores, data.train), data.valid)
    return valid, measure(of_matrix(data, scores, data.known), data.test)


def popularity(data: Data) -> Any:
    degrees = np.bincount(data.train[1] - data.users, minlength=data.nodes - data.users)
    return both(data, np.broadcast_to(degrees.astype(np.float32), (data.users, len(degrees))))


def item_knn(data: Data) -> Any:
    """Cosine of artists, the k most similar of each; k by validation."""
    user, artist = data.train[0], data.train[1] - data.users
    likes = sp.csr_matrix(
        (np.ones(len(user), np.float32), (user, artist)), (data.users, data.nodes - data.users)
    )
    norm = np.sqrt(np.maximum(np.asarray(likes.sum(axis=0)).ravel(), 1))
    cosine = (likes.T @ likes).toarray() / norm[:, None] / norm
    np.fill_diagonal(cosine, 0)
    found = []
    for k in (20, 50, 100, 200):
        limit = -np.partition(-cosine, k, axis=1)[:, k : k + 1]
        similar = sp.csr_matrix(np.where(cosine > limit, cosine, 0).astype(np.float32))
        found.append(both(data, (likes @ similar.T).toarray()))
    return max(found, key=lambda item: item[0]["recall"])


def light_gcn(data: Data, *, seed: int, epochs: int, patience: int = 5) -> Any:
    """PyG's, with BPR on all links a step; every tenth epoch is validated."""
    torch.manual_seed(seed)
    edges = torch.from_numpy(np.concatenate([data.train, data.train[::-1]], axis=1))
    model = PygLightGCN(data.nodes, embedding_dim=64, num_layers=3)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    rng = np.random.default_rng(seed)
    best: Any = None
    waited = 0
    for epoch in range(1, epochs + 1):
        order = torch.from_numpy(rng.permutation(data.train.shape[1]))
        for links in torch.from_numpy(data.train)[:, order].split(8192, dim=1):
            embedding = model.get_embedding(edges)
            other = torch.from_numpy(rng.integers(data.users, data.nodes, links.shape[1]))
            user, artist, wrong = (embedding[rows] for rows in (links[0], links[1], other))
            loss = model.recommendation_loss(
                (user * artist).sum(-1), (user * wrong).sum(-1), torch.cat([*links, other]), 1e-4
            )
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        if epoch % 10 == 0:
            with torch.no_grad():
                embedding = model.get_embedding(edges)
                scores = (embedding[: data.users] @ embedding[data.users :].T).numpy()
            valid = measure(of_matrix(data, scores, data.train), data.valid)
            waited += 1
            if best is None or valid["recall"] > best[0]["recall"]:
                best, waited = (valid, scores, epoch), 0
            if waited > patience:
                break
    print(f"  LightGCN stopped at epoch {epoch}, best {best[2]}", flush=True)
    return best[0], measure(of_matrix(data, best[1], data.known), data.test)


@dataclass(frozen=True)
class Ours:
    """Our LightGCN with a softmax over all artists."""

    data: Data
    seed: int
    gated: bool
    folder: Path

    def trainer(self, links: Links, valid: Links, wanted: Optimisation) -> LinkTrainer:
        graph = self.data.graph(links)
        store = SplitStore(self.folder)
        store.write_train(
            graph, np.zeros(len(graph.indices), np.uint8), np.arange(graph.num_nodes),
            folds=1, seed=0,
        )  # fmt: skip
        encoder = ENCODERS["le"](dimensions=32 if self.gated else 2)
        positions = [encoder.encode(graph, seed=0)]
        torch.manual_seed(self.seed)
        settings = ModelSettings(
            kind="light_gcn", hidden=128, layers=2, head="cosine", gated=self.gated
        )
        spec = settings.spec(
            in_channels=128, num_encodings=1, encoding_widths=(positions[0].shape[1],),
            learned_nodes=graph.num_nodes, relation_columns=graph.num_columns,
        )  # fmt: skip
        model = MODELS["light_gcn"](spec)
        view = FullView.of(graph, positions, NodeFeatures("learned", learned_width=128), model)
        schedule = PartnerSchedule(store, folds=1, seed=self.seed)
        schedule.graph, schedule.partners = graph, Partners.of(graph)
        rng = np.random.default_rng(0)
        # the AUC is told of, nothing goes by it
        others = np.stack([rng.permutation(valid[0]), rng.permutation(valid[1])])
        pairs = np.concatenate([valid, others], axis=1)
        label = np.repeat(np.array([1, 0], np.uint8), valid.shape[1])
        return LinkTrainer(
            PairLogits(model, wanted.temperature),
            torch.optim.Adam(model.parameters(), lr=wanted.lr, weight_decay=wanted.weight_decay),
            FullGraphSource(schedule, lambda _: view),
            HeldOutPairs(*pairs, label),
            seed=self.seed,
            device=torch.device("cpu"),
            optimisation=wanted,
        )

    def tested(self, trainer: LinkTrainer) -> dict[str, float]:
        """Of the test links; neither training nor validation links are recommended."""
        model = trainer.average.averaged_model()
        scorer = trainer.source.scorer(model, torch.device("cpu"))
        known = [self.data.graph(self.data.known)]
        ranking = PartnerRanking.by_model(scorer, known, Partners.of(scorer.graph))
        return measure(ranking, self.data.test)

    def run(self, wanted: Optimisation, *, refit: bool) -> Any:
        trainer = self.trainer(self.data.train, self.data.valid, wanted)
        state = TrainingState()
        for _ in follow(Course(trainer.source.schedule, wanted), trainer, state):
            pass
        curve = " ".join(f"{row[f'valid_{METRIC}']:.3f}" for row in state.history)
        print(f"  epochs of ours: best {state.best_epoch}; {curve}", flush=True)
        trainer.average.values = state.best
        valid, tested = {"recall": state.best_value}, self.tested(trainer)
        if not refit:
            return valid, tested, None
        again = self.trainer(self.data.known, self.data.valid, wanted)
        for epoch in range(int(state.best_epoch) + 1):
            again.run_epoch(epoch)
        return valid, tested, self.tested(again)


def told(name: str, seconds: float, valid: dict[str, float], test: dict[str, float]) -> None:
    print(
        f"{name:<44}{valid.get('recall', float('nan')):>10.4f}"
        f"{test['recall']:>10.4f}{test['ndcg']:>10.4f}{seconds:>9.1f}",
        flush=True,
    )


def timed(task: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    found = task()
    return time.perf_counter() - begun, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=12, help="of ours, ten steps each")
    parser.add_argument("--peer-epochs", type=int, default=400)
    parser.add_argument("--only", choices=["ours", "peers"])
    parser.add_argument("--gates", type=int, nargs="*", default=[0, 1])
    parser.add_argument("--friends", type=int, nargs="*", default=[0, 1], help="as a relation")
    arguments = parser.parse_args()
    folder = Path(os.environ["PEG_DATA_DIR"]) / "lastfm"
    wanted = Optimisation(
        objective="softmax", metric=METRIC, lr=0.02, weight_decay=0.0, average=0.0,
        epochs=arguments.epochs, patience=4,
    )  # fmt: skip
    data = read(folder, seed=0)
    print(f"{'':<44}{'valid':>10}{'recall@20':>10}{'ndcg@20':>10}{'s':>9}")
    peer = float("nan")
    if arguments.only != "ours":
        for name, task in (("popularity", popularity), ("ItemKNN", item_knn)):
            told(name, *_flat(timed(lambda task=task: task(data))))
        seconds, found = timed(lambda: light_gcn(data, seed=0, epochs=arguments.peer_epochs))
        told("LightGCN of PyG, 3 layers, 64, BPR", seconds, *found)
        peer = found[1]["recall"]
    mine: list[float] = []
    if arguments.only != "peers":
        for friends, gated in product(arguments.friends, arguments.gates):
            found = ours(folder, wanted, arguments.seeds, friends=bool(friends), gated=bool(gated))
            mine.append(found["recall"])
    print(f"ratio: {mine[0] / peer if mine else float('nan'):.4f}")


def ours(
    folder: Path, wanted: Optimisation, seeds: int, *, friends: bool, gated: bool
) -> dict[str, float]:
    """Print every seed and the means; returns the mean without refit."""
    name = f"ours{', PEG gate' if gated else ''}{', friends' if friends else ''}"
    rows = []
    for seed in range(seeds):
        with tempfile.TemporaryDirectory() as scratch:
            model = Ours(read(folder, seed=seed, friends=friends), seed, gated, Path(scratch))
            seconds, (valid, test, again) = timed(lambda one=model: one.run(wanted, refit=True))
        told(f"{name}, seed {seed}", seconds, valid, test)
        told(f"{name}, seed {seed}, refit", seconds, {}, again)
        rows.append((test, again))
    means = [
        {metric: float(np.mean([row[which][metric] for row in rows])) for metric in rows[0][which]}
        for which in (0, 1)
    ]
    told(f"{name}, mean", float("nan"), {}, means[0])
    told(f"{name}, mean, refit", float("nan"), {}, means[1])
    return means[0]


def _flat(found: tuple[float, Any]) -> tuple[float, dict[str, float], dict[str, float]]:
    return found[0], *found[1]


if __name__ == "__main__":
    main()
