"""Official protocols: non-links from files that belong to links of their own."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from peg_core.artifacts.evaluation import TEST_PAIRS, MethodScores
from peg_core.errors import InputError
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.graph.ids.node_ids import NodeIds
from peg_core.metrics.bootstrap import Bootstrap
from peg_core.splits.held_out_pairs import HeldOutPairs
from peg_core.splits.split_store import SplitStore
from workers.artifact_ref import ArtifactRef
from workers.tasks.evaluate import MethodRequest, PairSubset, RankRequest, score_pairs_task
from workers.tasks.link_ranks import rank_linked_task
from workers.tasks.split import SplitRequest, split_task

COLUMNS = ("src", "dst")
# A ring of 30 with chords: nodes i and i + 1, i and i + 3.
RING = [(i, (i + step) % 30) for i in range(30) for step in (1, 3)]
VALID, TEST = [(4, 5), (1, 2)], [(20, 21), (9, 10), (14, 17)]


def write(file, pairs, **columns):
    source, target = np.array(pairs).T
    pl.DataFrame({"src": source, "dst": target, **columns}).write_parquet(file)
    return str(file)


def split_request(folder, edges, num_nodes, links, negatives, **options):
    source, target = (np.asarray(end) for end in np.array(edges).T)
    GraphStore.from_edges(source, target, num_nodes=num_nodes).save(folder)
    NodeIds(pa.array(np.arange(num_nodes))).save(folder)
    shares = {"valid": 0.1, "test": 0.1, "folds": 2, "seed": 0}
    return SplitRequest(
        by="files", **shares, given_links=links, given_negatives=negatives, columns=COLUMNS,
        graph=ArtifactRef.of_folder(folder, GraphStore),
        out=ArtifactRef.of_folder(folder / "split", SplitStore), **options,
    )  # fmt: skip


def ring_request(folder, test_negatives, rows, **options):
    links = {
        "valid": write(folder / "valid.parquet", VALID),
        "test": write(folder / "test.parquet", TEST),
    }
    negatives = {
        "valid": write(folder / "vn.parquet", [(4, 20), (1, 9)], link=[0, 1]),
        "test": write(folder / "tn.parquet", test_negatives, link=rows),
    }
    return split_request(folder, RING, 30, links, negatives, negatives_link="link", **options)


def test_non_links_stay_with_the_link_of_their_row(tmp_path):
    negatives, rows = [(20, 25), (20, 2), (9, 15), (14, 2), (14, 22)], [0, 0, 1, 2, 2]
    order = [4, 1, 2, 0, 3]  # rows of a file may stand in any order
    split_task(ring_request(tmp_path, [negatives[i] for i in order], [rows[i] for i in order]))
    test = SplitStore(tmp_path / "split").held_out("test")
    links = list(zip(*test.links, strict=True))
    assert sorted(links) == sorted(TEST)
    for source, target, label, link in zip(
        test.source, test.target, test.label, test.link, strict=True
    ):
        if label:
            assert links[link] == (source, target)
        else:
            pair = next(p for p in negatives if set(p) == {source, target})
            assert TEST[rows[negatives.index(pair)]] == links[link]


def test_fewer_pairs_are_whole_links(tmp_path):
    label, link = np.array([1] * 6 + [0] * 12), np.append(np.arange(6), np.repeat(np.arange(6), 2))
    ends = np.arange(18), np.arange(18) + 1
    HeldOutPairs(*ends, label.astype(np.uint8), link).write(tmp_path / "pairs.parquet")
    some = HeldOutPairs.open(tmp_path / "pairs.parquet", most=9)
    assert some.link.tolist() == [0, 1, 2, 0, 0, 1, 1, 2, 2]
    assert some.source.tolist() == [0, 2, 4, 6, 7, 10, 11, 14, 15]


KNOWN = [(20, 25), (9, 12), (9, 15), (14, 2)]  # (9, 12) is a chord of the ring


@pytest.mark.parametrize(("on_known", "left"), [("keep", 4), ("drop", 3)])
def test_known_links_among_non_links_are_counted(tmp_path, on_known, left):
    counts = split_task(ring_request(tmp_path, KNOWN, [0, 1, 1, 2], on_known=on_known))
    assert counts["test_known_negatives"] == 1
    assert counts["test_negatives"] == left
    assert "valid_known_negatives" not in counts


def test_known_links_among_non_links_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"1 of 4 negatives in .*on_known_negatives.*drop"):
        split_task(ring_request(tmp_path, KNOWN, [0, 1, 1, 2]))


def test_links_without_a_non_link_are_refused(tmp_path):
    with pytest.raises(InputError, match="1 of 3 links have no non-link of their own"):
        split_task(ring_request(tmp_path, [(20, 25), (9, 15)], [0, 1]))
    with pytest.raises(InputError, match="1 of 3 links have no non-link"):
        split_task(ring_request(tmp_path, KNOWN, [0, 1, 0, 2], on_known="drop"))


@pytest.mark.parametrize(("rows", "says"), [([0, 1, 3], "0 .. 3, needed"), ([-1, 1, 2], "-1 .. 2")])
def test_rows_that_the_links_do_not_have_are_refused(tmp_path, rows, says):
    with pytest.raises(InputError, match=f"column 'link' of .*{says}"):
        split_task(ring_request(tmp_path, [(20, 25), (9, 15), (14, 2)], rows))


def test_a_column_of_text_is_no_row_number(tmp_path):
    with pytest.raises(InputError, match=r"(?s)'?link'?.*row numbers of links"):
        split_task(ring_request(tmp_path, [(20, 25), (9, 15), (14, 2)], ["a", "b", "c"]))


def ranked(folder, request, column, subset=None):
    graph = ArtifactRef.of_folder(folder / "split" / "train_graph", GraphStore)
    table = SplitStore(folder / "split").held_out_file("test")
    method = MethodRequest(
        graph,
        ArtifactRef.of_folder(folder, GraphIds),
        COLUMNS,
        ArtifactRef.of_folder(folder / "scores", MethodScores),
        heuristics=("common_neighbours", "adamic_adar", "resource_allocation"),
    )
    if not (folder / "scores").exists():
        score_pairs_task(method, table, TEST_PAIRS, 0)
    rank = RankRequest(method.out, column, 0, [1, 10], Bootstrap(0), 0)
    cold = None if subset is None else PairSubset(table, graph, cold=subset == "cold")
    return {name: value for name, (value, *_) in rank_linked_task(rank, table, cold).items()}


def test_ranks_are_those_among_a_link_s_own_non_links(tmp_path):
    negatives, rows = [(20, 25), (20, 2), (9, 11), (9, 15), (14, 2), (14, 22)], [0, 0, 1, 1, 2, 2]
    split_task(ring_request(tmp_path, negatives, rows))
    found = ranked(tmp_path, None, "common_neighbours")
    train = [
        set(e) for e in RING if tuple(sorted(e)) not in {tuple(sorted(p)) for p in VALID + TEST}
    ]

    def common(u, v):
        near = [{x for e in train if n in e for x in e if x != n} for n in (u, v)]
        return len(near[0] & near[1])

    best, worst = [], []
    for row, link in enumerate(TEST):
        others = [common(*p) for p, r in zip(negatives, rows, strict=True) if r == row]
        best.append(1 + sum(o > common(*link) for o in others))
        worst.append(1 + sum(o >= common(*link) for o in others))
    best, worst = np.array(best), np.array(worst)
    assert (best != worst).any()
    assert found["mrr_optimistic"] == pytest.approx((1 / best).mean())
    assert found["mrr_pessimistic"] == pytest.approx((1 / worst).mean())
    assert found["mrr"] == pytest.approx((2 / (best + worst)).mean())
    assert found["hits@1"] == pytest.approx(((best + worst) / 2 <= 1).mean())


@pytest.mark.data
def test_heuristics_reach_their_published_figures_on_citeseer(tmp_path, data_folder):
    """CN, AA and RA in the HeaRT setting: 8.42, 10.82 and 10.84."""
    official, num_nodes = data_folder / "citeseer-heart", 3_327
    edges = pl.read_parquet(data_folder / "citeseer" / "edges.parquet").to_numpy()
    request = split_request(
        tmp_path, edges, num_nodes,
        {part: str(official / f"{part}.parquet") for part in ("valid", "test")},
        {part: str(official / f"{part}_heart.parquet") for part in ("valid", "test")},
        negatives_link="link", on_known="keep",
    )  # fmt: skip
    counts = split_task(request)
    assert counts["test_negatives"] == 227_500
    assert counts["test_known_negatives"] == 461
    published = {
        "common_neighbours": 8.42, "adamic_adar": 10.82, "resource_allocation": 10.84,
    }  # fmt: skip
    for name, mrr in published.items():
        assert 100 * ranked(tmp_path, request, name)["mrr"] == pytest.approx(mrr, abs=0.005)
    assert ranked(tmp_path, request, "adamic_adar", "warm")["mrr"] > 0.1082
