"""A small split and trainers on it, also for processes that a test starts."""

from functools import cache

import networkx as nx
import numpy as np
import torch

from peg_core.encoding import ENCODERS
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_features import NodeFeatures
from peg_core.models import MODELS
from peg_core.models.model_spec import ModelSpec
from peg_core.random_streams import random_stream
from peg_core.splits.edge_split import split_randomly
from peg_core.splits.held_out_pairs import HeldOutPairs
from peg_core.splits.negative_sampling import sample_non_edges
from peg_core.splits.split_store import SplitStore
from peg_core.training.graph_view import FullView
from peg_core.training.link_schedule import LinkSchedule
from peg_core.training.link_trainer import LinkTrainer, PairLogits
from peg_core.training.partner_schedule import PartnerSchedule
from peg_core.training.sampled_view import SampledView
from peg_core.training.settings import Optimisation
from peg_core.training.step_source import FullGraphSource, MaskedSource, SampledSource


def write_split(folder):
    """Three communities of 25 nodes, four folds."""
    ends = np.array(nx.stochastic_block_model([25] * 3, np.eye(3) * 0.4 + 0.01, seed=1).edges())
    graph = GraphStore.from_edges(ends[:, 0], ends[:, 1], num_nodes=75)
    source, target = graph.edges()
    store, keys = SplitStore(folder), np.arange(graph.num_nodes)
    entries = store.new_parts(graph)
    split_randomly(graph, keys, entries, valid=0.1, test=0.1, seed=0)
    parts = entries[np.repeat(keys, graph.degrees) < graph.indices]
    store.write_train(graph, entries, keys, folds=4, seed=0)
    for name, part in (("valid", 1), ("test", 2)):
        links = [end[parts == part].astype(np.int64) for end in (source, target)]
        rng = random_stream(seed=0, purpose=name)
        free = sample_non_edges(graph, len(links[0]), rng=rng)
        ends = [np.concatenate(pair) for pair in zip(links, free, strict=True)]
        label = np.repeat(np.array([1, 0], np.uint8), len(links[0]))
        store.write_held_out(name, HeldOutPairs(*ends, label))
    return store


def build_trainer(
    split, folds, *, kind="peg", fan_outs=None, share=None, batch_size=None, learned=False,
    threads=2, most_embedded=1000, masked=False, wrap=lambda network: network, **options,
):  # fmt: skip
    """A trainer of a small model on ``split``; ``fan_outs`` makes it a sampled one."""
    torch.manual_seed(0)
    nodes = split.train_graph().num_nodes
    width = 3 if learned else 2
    spec = ModelSpec(
        kind, "best", in_channels=width, num_encodings=1,
        hidden=width if kind == "light_gcn" else 8, encoding_widths=(4,),
        learned_nodes=nodes if learned else 0,
        head="cosine" if options.get("objective") == "softmax" else "preset",
    )  # fmt: skip
    model = MODELS[kind](spec)
    features = NodeFeatures("learned", learned_width=width) if learned else NodeFeatures("degree")
    view = FullView if fan_outs is None else SampledView

    @cache
    def view_of(fold):
        graph = split.graph_without(fold)
        positions = [ENCODERS["le"](dimensions=4).encode(graph, seed=0)]
        return view.of(graph, positions, features, model)

    kind = PartnerSchedule if options.get("objective") == "softmax" else LinkSchedule
    negatives = "partner" if options.get("objective") == "bpr" else "uniform"
    schedule = kind(
        split, folds=folds, seed=0, share=share, batch_size=batch_size, negatives=negatives
    )
    if fan_outs is None:
        source = (MaskedSource if masked else FullGraphSource)(schedule, view_of)
    else:
        source = SampledSource(
            schedule, view_of, fan_outs=fan_outs, seed=0, threads=threads,
            most_embedded=most_embedded,
        )  # fmt: skip
    return LinkTrainer(
        wrap(PairLogits(model)),
        torch.optim.Adam(model.parameters(), lr=0.01),
        source,
        split.held_out("valid"),
        seed=0,
        device=torch.device("cpu"),
        optimisation=Optimisation(**{"average": 0.0, **options}),
    )
