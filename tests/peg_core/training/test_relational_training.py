"""What steps see of graphs with relations and directions: never the links that supervise."""

import numpy as np
import pytest
import torch

from peg_core.graph.components import connected_components
from peg_core.graph.node_features import NodeFeatures
from peg_core.models import MODELS
from peg_core.models.model_spec import ModelSpec
from peg_core.models.structural_features import structural_features, training_structure
from peg_core.sampling.neighbour_sampler import ALL, NeighbourSampler
from peg_core.splits.filtered_graph import without_links
from peg_core.splits.split_store import NO_FOLD, SplitStore
from peg_core.training.link_schedule import LinkSchedule, Supervision
from peg_core.training.partner_schedule import PartnerSchedule
from peg_core.training.sampled_view import SampledView
from tests.fixtures.overlapping_relations import OVERLAPPING, overlapping_graph
from tests.fixtures.relational_graphs import listed_graph

every_shape = pytest.mark.parametrize("shape", OVERLAPPING)


def view_of(graph):
    torch.manual_seed(0)
    spec = ModelSpec(
        "peg",
        "best",
        in_channels=2,
        num_encodings=1,
        hidden=6,
        encoding_widths=(3,),
        relation_columns=graph.num_columns,
        directed=graph.is_directed,
    )
    positions = [np.random.default_rng(0).normal(size=(graph.num_nodes, 3)).astype(np.float32)]
    return SampledView.of(graph, positions, NodeFeatures("degree"), MODELS["peg"](spec).eval())


def messages_of(view, supervision):
    """(from, to) of every message of the first layer, with the columns that a gate reads."""
    sampler = NeighbourSampler(view.graph, [ALL] * view.model.spec.layers)
    step = view.step(supervision, sampler, seed=0)
    layer, nodes = step.messages[0], step.nodes.numpy()
    targets = np.repeat(nodes[: len(layer.indptr) - 1], np.diff(layer.indptr.numpy()))
    columns = layer.measures[: len(targets), 1:].numpy().tolist()
    found = zip(nodes[layer.sources.numpy()].tolist(), targets.tolist(), columns, strict=True)
    return {(u, v): tuple(own) for u, v, own in found}


@every_shape
def test_supervising_links_give_no_messages_but_their_context_stays(shape):
    made = overlapping_graph(shape, 3)
    graph, links = made.graph, np.array(sorted(made.links)).T[:, ::4]
    keys = {frozenset(link) for link in links.T.tolist()}
    rows = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    pairs = zip(rows.tolist(), graph.indices.tolist(), strict=True)
    rest = without_links(graph, np.array([frozenset(pair) not in keys for pair in pairs]))
    found = messages_of(view_of(graph), Supervision(0, NO_FOLD, *links, num_links=links.shape[1]))
    expected = messages_of(view_of(rest), Supervision(0, NO_FOLD, *links, num_links=0))
    assert found == expected
    assert len(found) > 0


def test_directed_structure_tells_nothing_of_supervising_links():
    """As if each link were not there while it, or its reverse, is looked at."""
    listed = listed_graph("directed", num_nodes=20, num_links=60, seed=2)
    graph, links = listed.graph, listed.links[0]
    components = connected_components(graph)[1]
    own = set(map(tuple, links.T.tolist()))
    one_way = np.array([link for link in links.T.tolist() if tuple(link[::-1]) not in own]).T
    rows = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    for link in one_way.T[:10].tolist():
        source, target = (np.array([end, other]) for end, other in (link, link[::-1]))
        found = training_structure(graph, source, target, components, 1)
        gone = np.isin(rows, link) & np.isin(graph.indices, link)
        hidden = without_links(graph, ~gone)
        expected = structural_features(hidden, source, target, components)
        np.testing.assert_allclose(found[:, 6:], expected[:, 6:], atol=1e-6)
    both = np.array([link for link in links.T.tolist() if tuple(link[::-1]) in own]).T
    assert both.shape[1] > 0
    known = training_structure(graph, *both, components, both.shape[1])
    assert structural_features(graph, *both, components)[:, -1].all()
    assert not known[:, -1].any()


@every_shape
@pytest.mark.parametrize("folds", [1, 3])
def test_schedules_deal_every_listed_link_once_and_possible_non_links(shape, folds, tmp_path):
    made = overlapping_graph(shape, 6)
    split, everything = SplitStore(tmp_path), np.zeros(len(made.graph.indices), np.uint8)
    split.write_train(made.graph, everything, np.arange(made.graph.num_nodes), folds=folds, seed=0)
    schedule = LinkSchedule(split, folds=folds, seed=1)
    seen = []
    for step in schedule.epoch(0):
        links = slice(0, step.num_links)
        seen += zip(step.source[links].tolist(), step.target[links].tolist(), strict=True)
        others = slice(step.num_links, None)
        assert made.impossible(step.source[others], step.target[others]) == 0
    assert sorted(seen) == sorted(made.links)
    for step, again in zip(list(schedule.epoch(1))[1:], schedule.epoch(1, start=1), strict=True):
        np.testing.assert_array_equal(again.source, step.source)  # a resumed run
        np.testing.assert_array_equal(again.target, step.target)
    relations = made.graph.relations
    first, second = relations.source_nodes, relations.target_nodes
    anchored = []
    for step in PartnerSchedule(split, folds=folds, seed=1).epoch(0):
        assert ((step.source >= first.start) & (step.source < first.stop)).all()
        assert step.partners.tolist() == list(range(second.start, second.stop))
        anchored += zip(step.source.tolist(), step.target.tolist(), strict=True)
    both = first == second and not relations.target.directed
    turned = [(v, u) for u, v in made.links] if both else []
    assert sorted(anchored) == sorted([*made.links, *turned])
