"""One shard of candidates, scored in this process."""

from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from peg_core.artifacts.embedded_graph import Embeddings
from peg_core.artifacts.positions import Positions
from peg_core.artifacts.trained_model import TrainedModel
from peg_core.errors import InputError, PegError
from peg_core.graph.components import connected_components
from peg_core.graph.edge_table import list_row_groups
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.graph.ids.node_ids import NodeIds
from peg_core.inference.candidate_batch import ScoreColumns
from peg_core.inference.pair_scoring import PairScorer
from peg_core.models.model_spec import ModelSpec
from peg_core.models.peg import PEG
from tests.fixtures.stored_lists import ITEMS, USERS, store_lists
from workers.artifact_ref import ArtifactRef
from workers.embedded_graph_ref import EmbeddedGraphRef, ScorerRef
from workers.tasks import score as score_tasks
from workers.tasks.score import ScoreRequest, kinds_task, score_task

NODES = 50


@pytest.fixture(scope="module")
def request_of(tmp_path_factory):
    """Artifacts of a graph whose nodes are called n0 .. n49."""
    folder = tmp_path_factory.mktemp("artifacts")
    rng = np.random.default_rng(0)
    graph = GraphStore.from_edges(*rng.integers(0, NODES, size=(2, 150)), num_nodes=NODES)
    graph.save(folder)
    NodeIds(pa.array([f"n{i}" for i in range(NODES)])).save(folder)
    Positions(folder).write(rng.normal(size=(NODES, 4)).astype(np.float32), 0)
    torch.manual_seed(0)
    TrainedModel(folder / "model").save(PEG(ModelSpec("peg", "best", 3, 1, hidden=8)))
    np.save(folder / "layer-1.npy", rng.normal(size=(NODES, 8)).astype(np.float32))
    np.save(folder / "components.npy", connected_components(graph)[1])

    def build(**columns):
        graph, positions, embeddings = (
            ArtifactRef.of_folder(folder, kind) for kind in (GraphStore, Positions, Embeddings)
        )
        model = ArtifactRef.of_folder(folder / "model", TrainedModel)
        scorer = ScorerRef(EmbeddedGraphRef(graph, positions, embeddings), model)
        return ScoreRequest(graph.at(GraphIds), scorer, ScoreColumns(**columns))

    return build


@pytest.fixture
def candidates(tmp_path):
    """A thousand pairs in uneven row groups; rows 3, 5 and 7 have no node at an end."""
    rng = np.random.default_rng(1)
    ends = rng.integers(0, NODES, size=(2, 1_000))
    ends[1] = (ends[0] + 1 + ends[1] % (NODES - 1)) % NODES  # no node and itself
    names = [[f"n{i}" for i in end] for end in ends]
    names[0][3], names[1][5], names[0][7] = "nobody", None, None
    names[1][7] = "nobody"
    table = pa.table({"weight": rng.random(1_000), "dst": names[1], "src": names[0]})
    with pq.ParquetWriter(tmp_path / "candidates.parquet", table.schema) as writer:
        for start, stop in ((0, 1), (1, 300), (300, 600), (600, 1_000)):
            writer.write_table(table.slice(start, stop - start))
    return tmp_path / "candidates.parquet"


def score(request, candidates, out, groups=slice(None)):
    found = list_row_groups([candidates], ["src", "dst"])[groups]
    return score_task(request, found, out)


def expected_logits(request, table):
    """By the scorer itself, on known pairs looked up by a dictionary."""
    folder = request.nodes.folder
    scorer = PairScorer(
        request.scorer.model.open().network,
        GraphStore.open(folder),
        np.load(folder / "layer-1.npy"),
        [np.load(folder / "encoding-0" / "all.npy")],
        np.load(folder / "components.npy"),
    )
    index = {f"n{i}": i for i in range(NODES)}
    known = table.filter(pl.col("src").is_in(list(index)) & pl.col("dst").is_in(list(index)))
    ends = [np.array([index[name] for name in known[column]]) for column in ("src", "dst")]
    return scorer.logits(*ends)


def test_rows_keep_their_order_and_columns(request_of, candidates, tmp_path):
    request = request_of(written=("score", "logit"), calibration=(0.5, -1.0))
    result = score(request, candidates, tmp_path / "out.parquet")
    table, before = pl.read_parquet(tmp_path / "out.parquet"), pl.read_parquet(candidates)
    assert table.columns == ["src", "dst", "score", "logit", "reason", "weight"]
    assert table.select(before.columns).equals(before)
    assert table["reason"][3] == "unknown_node"
    assert table["reason"][5] == table["reason"][7] == "null_id"
    assert table["reason"].null_count() == 997
    logits = expected_logits(request, before)
    np.testing.assert_array_equal(table["logit"].drop_nulls(), logits)
    probability = 1 / (1 + np.exp(-(0.5 * logits.astype(np.float64) - 1)))
    np.testing.assert_allclose(table["score"].drop_nulls(), probability, rtol=1e-6)
    counts = np.histogram(probability, bins=50, range=(0, 1))[0]
    assert result == {
        "rows": 1_000, "written": 1_000,
        "reasons": {"unknown": 1, "null_ids": 2, "self_pairs": 0, "cold": 0},
        "histogram": counts.tolist(),
    }  # fmt: skip
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


def test_unknown_rows_are_dropped_where_asked(request_of, candidates, tmp_path):
    result = score(request_of(on_unknown="drop"), candidates, tmp_path / "out.parquet")
    table, before = pl.read_parquet(tmp_path / "out.parquet"), pl.read_parquet(candidates)
    kept = before.with_row_index().filter(~pl.col("index").is_in([3, 5, 7])).drop("index")
    assert table.columns == ["src", "dst", "score", "weight"]
    assert table.select(before.columns).equals(kept)
    assert (result["rows"], result["written"]) == (1_000, 997)


def test_an_unknown_id_stops_where_asked_and_leaves_nothing(request_of, candidates, tmp_path):
    with pytest.raises(InputError, match=r"'src' of .*candidates.parquet holds 'nobody', which is"):
        score(request_of(on_unknown="error"), candidates, tmp_path / "out" / "out.parquet")
    with pytest.raises(InputError, match=r"'dst' .* holds a null"):
        score(request_of(on_unknown="error"), without(candidates, 3), tmp_path / "out/out.parquet")
    assert list((tmp_path / "out").iterdir()) == []


def without(file, row):
    table = pl.read_parquet(file).with_row_index().filter(pl.col("index") != row).drop("index")
    table.write_parquet(file.with_name("fewer.parquet"))
    return file.with_name("fewer.parquet")


def test_scores_do_not_depend_on_shards_or_batches(request_of, candidates, tmp_path, monkeypatch):
    request = request_of(written=("score", "logit"))
    score(request, candidates, tmp_path / "whole.parquet")
    monkeypatch.setattr(score_tasks, "BATCH_ROWS", 64)
    score(request, candidates, tmp_path / "a.parquet", slice(0, 3))
    score(request, candidates, tmp_path / "b.parquet", slice(3, 4))
    parts = [pl.read_parquet(tmp_path / name) for name in ("a.parquet", "b.parquet")]
    assert pl.concat(parts).equals(pl.read_parquet(tmp_path / "whole.parquet"))
    groups = pq.ParquetFile(tmp_path / "b.parquet").metadata
    assert groups.num_row_groups == 7  # 400 rows, 64 in each but the last


def test_a_page_that_cannot_be_read_is_named(request_of, candidates, tmp_path):
    data = bytearray(candidates.read_bytes())
    data[200:4_000] = bytes(3_800)
    candidates.write_bytes(bytes(data))
    with pytest.raises(InputError, match=r"candidates.parquet is not a readable Parquet file"):
        score(request_of(), candidates, tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


def test_fewer_rows_than_promised_are_no_output(request_of, candidates, tmp_path):
    groups = list_row_groups([candidates], ["src", "dst"])
    groups[1] = replace(groups[1], rows=groups[1].rows + 1)
    with pytest.raises(PegError, match="the candidates changed meanwhile"):
        score_task(request_of(), groups, tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


@pytest.fixture
def odd_pairs(tmp_path):
    """A node and itself, a cold node at either end and at both, and a pair like any other."""
    pairs = [("n3", "n3"), ("n7", "n3"), ("n3", "n7"), ("n7", "n7"), ("n3", "n4"), ("n7", None)]
    file = tmp_path / "odd.parquet"
    pl.DataFrame(pairs, schema=["src", "dst"], orient="row").write_parquet(file)
    return file


@pytest.fixture
def cold_request(request_of, tmp_path):
    """The same with n7 cut off: the scorer sees another graph."""

    def build(**columns):
        request = request_of(written=("logit",), **columns)
        graph = GraphStore.open(request.nodes.folder)
        source, target = graph.edges()
        keep = (source != 7) & (target != 7)
        cut = tmp_path / "cut"
        GraphStore.from_edges(source[keep], target[keep], num_nodes=NODES).save(cut)
        embedded = replace(request.scorer.embedded, graph=ArtifactRef.of_folder(cut, GraphStore))
        return replace(request, scorer=replace(request.scorer, embedded=embedded))

    return build


def test_a_node_and_itself_has_no_score_and_a_cold_node_is_told_of(
    cold_request, odd_pairs, tmp_path
):
    result = score(cold_request(), odd_pairs, tmp_path / "out.parquet")
    table = pl.read_parquet(tmp_path / "out.parquet")
    reasons = ["self_pair", "cold_node", "cold_node", "self_pair", None, "null_id"]
    assert table["reason"].to_list() == reasons
    known = [value is not None for value in table["logit"]]
    assert known == [False, True, True, False, True, False]
    assert result["reasons"] == {"unknown": 0, "null_ids": 1, "self_pairs": 2, "cold": 2}
    assert sum(result["histogram"]) == 3


def test_without_features_nothing_is_known_of_a_cold_node(cold_request, odd_pairs, tmp_path):
    request = cold_request(scores_cold=False)
    result = score(request, odd_pairs, tmp_path / "out.parquet")
    table = pl.read_parquet(tmp_path / "out.parquet")
    assert [value is not None for value in table["logit"]] == [False] * 4 + [True, False]
    assert table["reason"][1:3].to_list() == ["cold_node"] * 2
    assert sum(result["histogram"]) == 1
    dropped = cold_request(scores_cold=False, on_unknown="drop")
    assert score(dropped, odd_pairs, tmp_path / "fewer.parquet")["written"] == 1


def test_a_pair_without_a_score_stops_where_asked(cold_request, odd_pairs, tmp_path):
    request = cold_request(on_unknown="error", scores_cold=False)
    with pytest.raises(InputError, match="holds 'n3' at both ends of a pair"):
        score(request, odd_pairs, tmp_path / "out.parquet")
    with pytest.raises(InputError, match="a pair of 'n7' and 'n3', one of which has no edge"):
        score(request, without(odd_pairs, 0), tmp_path / "out.parquet")


@pytest.fixture(scope="module")
def bipartite(tmp_path_factory):
    return store_lists(tmp_path_factory.mktemp("bipartite"))


def test_equal_ids_of_two_kinds_are_two_nodes_and_come_back_as_they_were(bipartite, tmp_path):
    request = bipartite.request(tmp_path)
    rng = np.random.default_rng(3)
    users, items = rng.integers(0, USERS, 200), rng.integers(0, ITEMS, 200)
    pairs = {"src": bipartite.user_ids[users], "dst": bipartite.item_ids[items]}
    pairs["src"][0], pairs["dst"][0] = ITEMS - 1, 3  # an item's id alone
    pairs["src"][1] = pairs["dst"][1] = 5  # user 5 and item 5
    table = pl.DataFrame(pairs)
    table.write_parquet(tmp_path / "pairs.parquet")
    columns = ScoreColumns(written=("logit",))
    whole = ScoreRequest(bipartite.ref(GraphIds), request.scorer, columns)
    score(whole, tmp_path / "pairs.parquet", tmp_path / "out.parquet")
    out = pl.read_parquet(tmp_path / "out.parquet")
    assert out.select("src", "dst").equals(table)
    users[1] = np.flatnonzero(bipartite.user_ids == 5)[0]
    items[1] = np.flatnonzero(bipartite.item_ids == 5)[0]
    cold = ~bipartite.likes.any(axis=1)[users] | ~bipartite.likes.any(axis=0)[items]
    reasons = np.where(cold, "cold_node", None).tolist()
    assert out["reason"].to_list() == ["unknown_node", *reasons[1:]]
    products = (bipartite.vectors[users] * bipartite.vectors[USERS + items]).sum(axis=1)
    np.testing.assert_allclose(out["logit"][1:], products[1:] / 0.15, rtol=1e-4)


def test_columns_that_were_exchanged_are_told_before_anything_is_scored(bipartite, tmp_path):
    items_only = np.arange(USERS, ITEMS)
    pl.DataFrame({"src": items_only, "dst": items_only % USERS}).write_parquet(
        tmp_path / "p.parquet"
    )
    groups = list_row_groups([tmp_path / "p.parquet"], ["src", "dst"])
    ids = bipartite.ref(GraphIds)
    with pytest.raises(InputError, match=r"'src' of .* no id of a 'user', but 280 of 280 ids"):
        kinds_task(ids, ("src", "dst"), groups)
    assert kinds_task(ids, ("dst", "src"), groups) == {"rows": 280}
    pl.DataFrame({"src": [-1, -2], "dst": [-3, -4]}).write_parquet(tmp_path / "p.parquet")
    groups = list_row_groups([tmp_path / "p.parquet"], ["src", "dst"])
    assert kinds_task(ids, ("src", "dst"), groups) == {"rows": 2}  # of no kind at all
