"""Splits of graphs with kinds, relations and directions, against sets and dense matrices."""

from itertools import chain

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peg_core.errors import InputError, LeakFound
from peg_core.graph.fading import LISTED, Fading
from peg_core.graph.ids.graph_ids import GraphIds, kind_folder
from peg_core.graph.ids.node_ids import NodeIds
from peg_core.graph.relations import Relations
from peg_core.splits.fold_graph import open_fold_graph
from peg_core.splits.leak_check import count_leaks, require_no_leaks
from peg_core.splits.split_store import SplitStore
from pipeline.config.graph_section import GraphConfig
from tests.fixtures.overlapping_relations import OVERLAPPING, overlapping_graph, save_with_ids
from tests.pipeline.stages.test_relational_ingestion import listens, pairs, run_ingestion
from tests.pipeline.stages.test_split_ranges import assert_same, request_of, split_in_ranges
from workers.tasks.split import all_links_task, split_task

shapes = st.sampled_from(OVERLAPPING)
seeds = st.integers(0, 10**6)
every_shape = pytest.mark.parametrize("shape", OVERLAPPING)


def write(folder, shape, seed, *, times=False, weighted=True):
    made = overlapping_graph(shape, seed, weighted=weighted)
    save_with_ids(made.graph, folder / "graph", seed)
    if times:
        graph = made.graph
        rows = np.repeat(np.arange(graph.num_nodes), graph.degrees)
        low, high = np.minimum(rows, graph.indices), np.maximum(rows, graph.indices)
        np.save(folder / "graph" / "times.npy", (low * 7919 + high * 104729) % 23)
    return made


def pairs_of(ends):
    return list(zip(*(end.tolist() for end in ends), strict=True))


def unordered(links):
    return {frozenset(link) for link in links}


def dense(made, links):
    """Codes and weights with these links alone, beside all context."""
    here = np.zeros(made.codes.shape, dtype=bool)
    for u, v in links:
        here[u, v] = here[v, u] = True
    return (
        np.where(here, made.codes, made.context_codes),
        np.where(here, made.weights, made.context_weights),
    )


def assert_graph(graph, made, links):
    """The graph has these links and all context, with the codes and weights of both."""
    codes, weights = dense(made, links)
    rows = np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr))
    assert pairs_of((rows, graph.indices)) == list(map(tuple, np.argwhere(codes).tolist()))
    if graph.codes is not None:
        np.testing.assert_array_equal(graph.codes, codes[rows, graph.indices])
    if graph.weights is not None:
        np.testing.assert_allclose(graph.weights, weights[rows, graph.indices], rtol=1e-6)
    assert graph.relations == made.graph.relations


@settings(max_examples=25, deadline=None)
@given(
    shape=shapes,
    seed=seeds,
    by=st.sampled_from(["random", "time"]),
    drawn=st.sampled_from(["random", "matched"]),
    weighted=st.booleans(),
    folds=st.integers(1, 4),
)
def test_a_split_holds_out_links_of_the_predicted_relation_alone(
    tmp_path_factory, shape, seed, by, drawn, weighted, folds
):
    folder = tmp_path_factory.mktemp("split")
    made = write(folder, shape, seed, times=by == "time", weighted=weighted)
    request = request_of(folder, "one", by=by, folds=folds, seed=seed, drawn=drawn)
    counts = split_task(request)
    found = split_in_ranges(
        request_of(folder, "ranges", by=by, folds=folds, seed=seed, drawn=drawn), 37
    )
    assert found == counts
    assert_same(folder, "one", "ranges")
    split = request.out.open()
    own = {"train": pairs_of(split.links())}
    for part in ("valid", "test"):
        own[part] = pairs_of(split.held_out(part).links)
        assert counts[f"{part}_links"] == len(own[part])
        assert counts[f"{part}_leaks"] == 0
    assert sorted(chain(*own.values())) == sorted(made.links)
    together = [unordered(links) for links in own.values()]
    assert sum(map(len, together)) == len(set().union(*together))  # a pair is in one part
    num_pairs = len(unordered(made.links))
    assert [len(pairs) for pairs in together[1:]] == [round(s * num_pairs) for s in (0.1, 0.2)]
    for store in (split, SplitStore.open(folder / "ranges")):
        assert_graph(store.train_graph(), made, own["train"])
        assert Relations.open(store.folder / "train_graph") == made.graph.relations
    assert_folds(split, made, folds, folder / "scratch")
    assert_negatives(split, made, unique=drawn == "random")


def assert_folds(split, made, folds, scratch):
    of_fold = [pairs_of(split.links(fold)) for fold in range(folds)]
    sizes = [len(unordered(links)) for links in of_fold]
    assert max(sizes) - min(sizes) <= 1
    assert sum(sizes) == len(unordered(chain(*of_fold)))  # a pair is in one fold
    for fold in range(folds):
        rest = [link for part in of_fold[:fold] + of_fold[fold + 1 :] for link in part]
        for graph in (split.graph_without(fold), open_fold_graph(split, fold, scratch)):
            assert_graph(graph, made, rest)
            require_no_leaks(graph, split.hidden_links(fold), found_in="the fold graph")


def assert_negatives(split, made, *, unique):
    relations = made.graph.relations
    for part in ("valid", "test"):
        pairs = split.held_out(part)
        source, target = pairs.source[pairs.label == 0], pairs.target[pairs.label == 0]
        assert len(source) == len(pairs.links[0])
        assert made.impossible(source, target) == 0
        drawn = pairs_of((source, target))
        assert not unique or len(set(drawn)) == len(drawn)
        turned = [(v, u) for u, v in drawn if (v, u) in made.links]
        if relations.has_reverses and unique:
            assert set(turned) <= set(pairs_of(pairs.links))
        if not relations.target.directed:
            assert not turned


@every_shape
def test_a_leak_is_a_link_of_the_predicted_relation(tmp_path, shape):
    made = write(tmp_path, shape, 3)
    split_task(request_of(tmp_path, "one"))
    split = SplitStore.open(tmp_path / "one")
    held_out = split.held_out_links()
    assert count_leaks(made.graph, held_out) == {
        part: len(split.held_out(part).links[0]) for part in ("valid", "test")
    }
    with pytest.raises(LeakFound, match="valid"):
        require_no_leaks(made.graph, held_out, found_in="the graph")
    if shape in ("directed", "two kinds", "friends"):  # pairs that context joins stay
        train = split.train_graph()
        assert sum(train.contains(*chunk).sum() for chunk in held_out["test"]) > 0
        assert count_leaks(train, held_out) == {"valid": 0, "test": 0}


@every_shape
def test_all_links_train_where_nothing_is_held_out(tmp_path, shape):
    made = write(tmp_path, shape, 5)
    counts = all_links_task(request_of(tmp_path, "one"))
    assert counts == {"train_links": len(made.links)}
    split = SplitStore.open(tmp_path / "one")
    assert sorted(pairs_of(split.links())) == sorted(made.links)
    assert_graph(split.train_graph(), made, made.links)


def test_reverses_of_links_are_a_quarter_of_the_non_links(tmp_path):
    made = overlapping_graph("directed", 1, num_nodes=300, num_links=4000)
    save_with_ids(made.graph, tmp_path / "graph")
    one_way = np.mean([(v, u) not in made.links for u, v in made.links])
    for drawn in ("random", "matched"):
        split_task(request_of(tmp_path, drawn, drawn=drawn, test=0.4))
        pairs = SplitStore.open(tmp_path / drawn).held_out("test")
        non_links = pairs_of((pairs.source[pairs.label == 0], pairs.target[pairs.label == 0]))
        share = np.mean([(v, u) in made.links for u, v in non_links])
        assert abs(share - 0.25 * one_way) < 0.04


def write_links(folder, name, graph, links, *, exchanged=False):
    """A table of links by the ids of their kinds."""
    ids = GraphIds.open(folder / "graph")
    ends = np.array(sorted(links)).T
    values = [kind.take(end) for kind, end in zip(ids.ends, ends, strict=True)]
    names = ("dst", "src") if exchanged else ("src", "dst")
    table = {column: np.asarray(value) for column, value in zip(names, values, strict=True)}
    pl.DataFrame(table).write_parquet(folder / f"{name}.parquet")
    return str(folder / f"{name}.parquet")


@pytest.mark.parametrize("shape", ["directed", "two kinds", "backwards"])
def test_given_links_and_non_links_are_read_in_their_order(tmp_path, shape):
    made = write(tmp_path, shape, 2)
    chosen = sorted(link for link in made.links if link[::-1] not in made.links)
    own = {"valid": chosen[:6], "test": chosen[6:15]}
    free = [(v, u) for u, v in chosen[:5]] if shape == "directed" else None
    negatives = {"valid": None, "test": None}
    if free:
        negatives["test"] = write_links(tmp_path, "free", made.graph, free)
    given_links = {part: write_links(tmp_path, part, made.graph, own[part]) for part in own}
    request = request_of(tmp_path, "one", by="files", links=given_links, negatives=negatives)
    counts = split_task(request)
    ranges = request_of(tmp_path, "ranges", by="files", links=given_links, negatives=negatives)
    assert split_in_ranges(ranges) == counts
    assert_same(tmp_path, "one", "ranges")
    split = SplitStore.open(tmp_path / "one")
    for part in own:
        assert sorted(pairs_of(split.held_out(part).links)) == own[part]
    if free:
        test = split.held_out("test")
        assert sorted(pairs_of((test.source[test.label == 0], test.target[test.label == 0]))) == (
            sorted(free)
        )
    assert_graph(split.train_graph(), made, made.links - set(chosen[:15]))


def test_given_links_of_the_wrong_kind_or_direction_are_refused(tmp_path):
    made = write(tmp_path, "directed", 2)
    turned = [(v, u) for u, v in sorted(made.links) if (v, u) not in made.links][:4]
    files = {part: write_links(tmp_path, part, made.graph, turned) for part in ("valid", "test")}
    files["test"] = write_links(tmp_path, "test", made.graph, sorted(made.links)[-3:])
    with pytest.raises(InputError, match=r"4 of 4 pairs in .* are not links of 'cites'"):
        split_task(request_of(tmp_path, "one", by="files", links=files))


def test_exchanged_columns_are_told_by_the_kind_that_has_the_ids(tmp_path):
    graph = write(tmp_path, "two kinds", 2).graph
    links = np.array(sorted(overlapping_graph("two kinds", 2).links)[:4]).T
    for place, kind in enumerate(graph.relations.kinds):  # no number twice
        NodeIds(pa.array(np.arange(kind.start, kind.stop))).save(
            kind_folder(tmp_path / "graph", place)
        )
    table = pl.DataFrame({"src": links[1], "dst": links[0]})
    table.write_parquet(tmp_path / "turned.parquet")
    files = {part: str(tmp_path / "turned.parquet") for part in ("valid", "test")}
    request = request_of(tmp_path, "one", by="files", links=files)
    message = (
        r"names the node \d+ in row 0 .*, which is of the kind 'item'; .* of the kind 'user', 4 row"
    )
    with pytest.raises(InputError, match=message):
        request.read_pairs(files["valid"])
    pl.DataFrame({"src": [0], "dst": [999]}).write_parquet(tmp_path / "unknown.parquet")
    with pytest.raises(InputError, match=r"no such node of the kind 'item'; remove 1 such"):
        request.read_pairs(str(tmp_path / "unknown.parquet"))


@pytest.mark.parametrize("shape", ["directed", "two kinds"])
def test_context_fades_from_the_newest_training_link_too(tmp_path, shape):
    made = write(tmp_path, shape, 4, times=True)
    graph, folder = made.graph, tmp_path / "graph"
    times, fading = np.load(folder / "times.npy"), Fading(6.0)
    share = fading.fade(times, int(times.max()), None)
    np.save(folder / LISTED, graph.weights)
    np.save(folder / "weights.npy", share * graph.weights)
    fading.save(folder)
    settings = {"by": "time", "valid": 0.2, "test": 0.3}
    counts = split_task(request_of(tmp_path, "one", **settings))
    assert split_in_ranges(request_of(tmp_path, "ranges", **settings)) == counts
    assert_same(tmp_path, "one", "ranges")
    split = SplitStore.open(tmp_path / "one")
    newest = times[split.parts() == 0].max()
    assert newest < times.max()
    train, links = split.train_graph(), pairs_of(split.links())
    _, weights = dense(made, links)
    rows = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    ages = np.zeros(weights.shape)
    ages[rows, graph.indices] = newest - np.minimum(times, newest)
    rows = np.repeat(np.arange(train.num_nodes), train.degrees)
    expected = (weights * 2.0 ** (-ages / 6))[rows, train.indices]
    np.testing.assert_allclose(train.weights, expected, rtol=1e-5)


def test_what_is_ingested_is_split_by_the_ids_of_its_rows(tmp_path):
    """Users and artists have the same numbers; friends are context and no link of theirs."""
    rng = np.random.default_rng(0)
    plays = sorted({(int(u), int(a)) for u, a in rng.integers(0, [40, 30], size=(300, 2))})
    friends = [(int(u), int(v)) for u, v in rng.integers(0, 40, size=(90, 2)) if u != v]
    edges = [pairs(tmp_path, "friends", friends), listens(tmp_path, [(*p, 1) for p in plays])]
    run_ingestion(GraphConfig(edges=edges, predict="listens"), tmp_path / "graph")
    counts = split_task(request_of(tmp_path, "one"))
    assert split_in_ranges(request_of(tmp_path, "ranges")) == counts
    assert_same(tmp_path, "one", "ranges")
    ids, split = GraphIds.open(tmp_path / "graph"), SplitStore.open(tmp_path / "one")

    def rows_of(ends):
        return {
            (u, a)
            for u, a in zip(
                *(kind.take(end).to_pylist() for kind, end in zip(ids.ends, ends, strict=True)),
                strict=True,
            )
        }

    test = split.held_out("test")
    assert rows_of(split.links()) < set(plays)
    assert rows_of(test.links) == set(plays) - rows_of(split.links()) - rows_of(
        split.held_out("valid").links
    )
    negative = test.source[test.label == 0], test.target[test.label == 0]
    assert len(rows_of(negative)) == counts["test_negatives"]
    assert not rows_of(negative) & set(plays)
    train, users = split.train_graph(), ids.source
    assert users.name == "user"
    ends = [users.lookup(pa.array(end)) for end in zip(*friends, strict=True)]
    assert train.contains(*ends).all()
    assert not train.contains_link(*ends).any()
