"""The split by ranges against the split by one task, file by file."""

import dataclasses
import json
import os
import pickle

import networkx as nx
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peg_core.atomic_file import written_files
from peg_core.errors import GraphTooSmall, InputError, LeakFound, PegError
from peg_core.graph.fading import LISTED, Fading
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.node_ids import NodeIds
from peg_core.splits import edge_split, entry_chunk, held_out_pairs, order_statistic
from peg_core.splits.split_store import SplitStore
from peg_core.splits.split_work import SplitWork
from peg_core.storage.mirror import Attempt
from peg_core.storage.object_storage import Storage
from peg_core.storage.stored_path import publish, release_mirrors
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.stage import StageContext
from pipeline.run.stage_inputs import StageInputs
from pipeline.stages import split as split_stage
from pipeline.stages.range_split import RangeSplit
from workers.artifact_ref import ArtifactRef
from workers.task_map import TaskMap
from workers.tasks.encode import fold_graph_task
from workers.tasks.split import SplitRequest, split_task
from workers.tasks.split_ranges import RangeRequest

NOTHING = {"valid": None, "test": None}
ARRAYS = (
    "entry_parts.npy",
    "entry_folds.npy",
    "links.npy",
    "fold_starts.npy",
    "train_graph/indptr.npy",
    "train_graph/indices.npy",
    "train_graph/weights.npy",
)


def run_here(task, shards, step):
    """Every shard twice, and its result through a marker."""
    for shard in shards:
        task(**shard.arguments)
    return [json.loads(json.dumps(task(**shard.arguments))) for shard in shards]


def write_graph(folder, nodes, edges, seed, *, weighted=False, times=None, text=False):
    """A random graph with isolated nodes at its end and hubs among its first nodes."""
    ends = np.array(nx.gnm_random_graph(nodes, edges, seed=seed).edges()).T
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 2, edges) if weighted else None
    graph = GraphStore.from_edges(*ends, num_nodes=nodes + 3, weights=weights)
    graph.save(folder)
    ids = rng.permutation(10 * graph.num_nodes)[: graph.num_nodes]
    NodeIds(pa.array([f"n{i}" for i in ids] if text else ids)).save(folder)
    if times is not None:
        rows = np.repeat(np.arange(graph.num_nodes), graph.degrees)
        low, high = np.minimum(rows, graph.indices), np.maximum(rows, graph.indices)
        np.save(folder / "times.npy", (low * 7919 + high * 104729) % times - times // 2)
    return graph


def request_of(folder, name, by="random", folds=3, seed=0, valid=0.1, test=0.2, **given):
    return SplitRequest(
        by=by,
        valid=valid,
        test=test,
        folds=folds,
        seed=seed,
        given_links=given.get("links", NOTHING),
        given_negatives=given.get("negatives", NOTHING),
        columns=("src", "dst"),
        negatives=given.get("drawn", "random"),
        leave_out=given.get("leave_out", 0.0),
        graph=ArtifactRef.of_folder(folder / "graph", GraphStore),
        out=ArtifactRef.of_folder(folder / name, SplitStore),
    )


def split_in_ranges(request, entries=50):
    work = ArtifactRef.of_folder(request.out.folder / "work", SplitWork)
    return RangeSplit(RangeRequest(request, work), run_here, entries).run()


def assert_same(folder, expected, found):
    for name in ARRAYS:
        assert (folder / expected / name).exists() == (folder / found / name).exists()
        if (folder / expected / name).exists():
            one, two = (np.load(folder / split / name) for split in (expected, found))
            assert one.dtype == two.dtype
            np.testing.assert_array_equal(one, two, err_msg=name)
    for part in ("valid", "test"):
        one, two = (
            pl.read_parquet(folder / split / f"{part}.parquet") for split in (expected, found)
        )
        assert one.schema == two.schema
        assert one.equals(two)


@pytest.fixture(scope="module", params=[29, None])
def pieces(request):
    """Tiny pieces make no difference: chunks of entries, ranges of hashes, row groups."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param is not None:
            patch.setattr(entry_chunk, "CHUNK", request.param)
            patch.setattr(order_statistic, "MOST_SORTED", request.param)
            patch.setattr(edge_split, "MOST_RANKED", request.param)
            patch.setattr(held_out_pairs, "CHUNK", request.param)
        yield request.param


@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    nodes=st.integers(20, 30),
    share=st.floats(0.1, 0.95),
    ranges=st.integers(1, 7),
    folds=st.integers(1, 6),
    times=st.sampled_from([None, 2, 30, 10**6]),
    weighted=st.booleans(),
    text=st.booleans(),
    rest=st.sampled_from([{}, {"drawn": "matched"}, {"drawn": "matched", "leave_out": 0.15}]),
)
def test_ranges_give_the_files_of_one_task(
    pieces, tmp_path_factory, seed, nodes, share, ranges, folds, times, weighted, text, rest
):
    folder = tmp_path_factory.mktemp("split")
    edges = max(40, int(share * nodes * (nodes - 1) / 2))
    write_graph(folder / "graph", nodes, edges, seed, weighted=weighted, times=times, text=text)
    settings = {"by": "random" if times is None else "time", "folds": folds, "seed": seed}
    settings |= rest if times is not None else {}
    expected = split_task(request_of(folder, "one", **settings))
    found = split_in_ranges(request_of(folder, "ranges", **settings), -(-2 * edges // ranges))
    assert found == expected
    assert_same(folder, "one", "ranges")


@pytest.mark.parametrize("weighted", [False, True])
def test_faded_weights_know_nothing_of_the_age_of_held_out_links(tmp_path, weighted):
    """As the formula says from the newest training edge, however new the others are."""
    weights = []
    for shift in (0, 10**5):
        folder = tmp_path / str(shift)
        write_graph(folder / "graph", 60, 500, seed=1, times=40, weighted=weighted)
        times = np.load(folder / "graph" / "times.npy")
        order = np.sort(times)
        times = np.where(times > order[-320], times + shift, times)  # all 15 % and some
        np.save(folder / "graph" / "times.npy", times)
        listed = np.load(folder / "graph" / "weights.npy") if weighted else np.ones(1000)
        fading = Fading(5.0)
        if weighted:
            np.save(folder / "graph" / LISTED, listed)
        faded = fading.fade(times, int(times.max()), listed.astype(np.float32))
        np.save(folder / "graph" / "weights.npy", faded)
        fading.save(folder / "graph")
        settings = {"by": "time", "valid": 0.2, "test": 0.2}
        expected = split_task(request_of(folder, "one", **settings))
        assert split_in_ranges(request_of(folder, "ranges", **settings)) == expected
        assert_same(folder, "one", "ranges")
        train = np.load(folder / "one" / "entry_parts.npy") == 0
        newest = times[train].max()
        assert newest < times.max()
        found = np.load(folder / "one" / "train_graph" / "weights.npy")
        assert found.shape == (train.sum(),)
        ages = newest - times[train]
        np.testing.assert_allclose(found, listed[train] * 2.0 ** (-ages / 5), rtol=1e-6)
        weights.append(found)
    np.testing.assert_array_equal(*weights)


@pytest.fixture
def graph(tmp_path):
    return write_graph(tmp_path / "graph", 60, 500, seed=1, times=40)


def write_pairs(file, graph_folder, pairs):
    ids = np.asarray(NodeIds.open(graph_folder).values)
    pl.DataFrame({"src": ids[pairs[1]], "dst": ids[pairs[0]]}).write_parquet(file)
    return str(file)


def test_given_links_and_negatives_stay_as_they_are(tmp_path, graph):
    source, target = graph.edges()
    free = np.array(np.triu_indices(graph.num_nodes, k=1))
    free = free[:, ~graph.contains(*free)][:, :17]
    files = {
        name: write_pairs(tmp_path / f"{name}.parquet", tmp_path / "graph", pairs)
        for name, pairs in (
            ("valid", (source[::9], target[::9])),
            ("test", (source[4::9], target[4::9])),
            ("free", free),
        )
    }
    given = {
        "links": {n: files[n] for n in NOTHING},
        "negatives": {**NOTHING, "test": files["free"]},
    }
    expected = split_task(request_of(tmp_path, "one", by="files", **given))
    assert split_in_ranges(request_of(tmp_path, "ranges", by="files", **given)) == expected
    assert (expected["test_negatives"], expected["valid_links"]) == (17, 56)
    assert_same(tmp_path, "one", "ranges")
    same = {"valid": files["valid"], "test": files["valid"]}
    with pytest.raises(LeakFound, match=r"56 link\(s\) stand in both"):
        split_in_ranges(request_of(tmp_path, "again", by="files", links=same))


def test_non_links_of_links_of_their_own_stay_with_them(tmp_path, graph):
    source, target = graph.edges()
    files = {
        name: write_pairs(tmp_path / f"{name}.parquet", tmp_path / "graph", pairs)
        for name, pairs in (
            ("valid", (source[::9], target[::9])),
            ("test", (source[4::9], target[4::9])),
        )
    }
    free = np.array(np.triu_indices(graph.num_nodes, k=1))
    free = free[:, ~graph.contains(*free)][:, :111]
    free[:, 5] = source[13], target[13]  # a link
    file = write_pairs(tmp_path / "free.parquet", tmp_path / "graph", free)
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(56), 2))[:111]
    pl.read_parquet(file).with_columns(link=pl.Series(rows)).write_parquet(file)
    given = {"links": files, "negatives": {**NOTHING, "test": file}}
    for on_known, left in (("keep", 111), ("drop", 110)):
        requests = [
            dataclasses.replace(
                request_of(tmp_path, f"{name}-{on_known}", by="files", **given),
                negatives_link="link",
                on_known=on_known,
            )
            for name in ("one", "ranges")
        ]
        expected = split_task(requests[0])
        assert split_in_ranges(requests[1]) == expected
        assert (expected["test_negatives"], expected["test_known_negatives"]) == (left, 1)
        assert_same(tmp_path, f"one-{on_known}", f"ranges-{on_known}")
    assert len(SplitStore(tmp_path / "one-keep").held_out("test").link) == 56 + 111


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({"valid": 0.0001}, GraphTooSmall, "a valid share of 0.0001 of 500 edges leaves no edge"),
        ({"valid": 0.6, "test": 0.39}, GraphTooSmall, "leaves 5 of 500 edges to learn from"),
        ({"folds": 200, "valid": 0.4, "test": 0.4}, PegError, "200 folds .* 100 training links"),
    ],
)
def test_shares_and_folds_that_leave_too_little_are_refused(
    tmp_path, graph, settings, error, match
):
    for split in (split_task, split_in_ranges):
        with pytest.raises(error, match=match):
            split(request_of(tmp_path, split.__name__, **settings))


def test_times_that_are_all_the_same_are_refused(tmp_path, graph):
    np.save(tmp_path / "graph" / "times.npy", np.full(1000, 7))
    with pytest.raises(InputError, match="all 500 edges have the same time, 7"):
        split_in_ranges(request_of(tmp_path, "ranges", by="time"))


@pytest.mark.parametrize("spoil", ["leak", "loss"])
def test_every_held_out_link_is_compared_with_the_training_graph(
    tmp_path, graph, monkeypatch, spoil
):
    """The tables as they lie there, all row groups of them."""
    monkeypatch.setattr(held_out_pairs, "CHUNK", 7)
    request = request_of(tmp_path, "ranges")

    def spoil_pairs(task, shards, step):
        if step == "leaks":
            assert len(shards) > 4
            file = request.out.open().held_out_file("test")
            table = pq.ParquetFile(file)
            groups = [table.read_row_group(n).to_pydict() for n in range(table.num_row_groups)]
            last = groups[sum(1 in group["label"] for group in groups) - 1]
            if spoil == "loss":
                last["label"][0] = 0
            else:
                ends = (end[0].item() for end in request.out.open().links())
                last["source"][0], last["target"][0] = ends
            with pq.ParquetWriter(file, held_out_pairs.COLUMNS) as writer:
                for group in groups:
                    writer.write_table(pa.table(group, held_out_pairs.COLUMNS))
        return run_here(task, shards, step)

    work = ArtifactRef.of_folder(tmp_path / "work", SplitWork)
    error, match = {
        "leak": (LeakFound, r"1 test link\(s\) stand in the training graph"),
        "loss": (PegError, "99 of 100 test links were compared"),
    }[spoil]
    with pytest.raises(error, match=match):
        RangeSplit(RangeRequest(request, work), spoil_pairs, 200).run()


@pytest.mark.ray
def test_a_killed_stage_goes_on_and_leaves_nothing_but_the_split(
    cluster, tmp_path, graph, monkeypatch
):
    """The stage on Ray; as long as a graph is small enough it is one task."""
    config = PipelineConfig(
        name="split",
        store=str(tmp_path),
        graph={"edges": "none", "source": "src", "target": "dst", "time": "when"},
        split={"by": "time", "valid": 0.1, "test": 0.2, "folds": 3, "seed": 0},
    )

    def run_stage(name):
        notes = []
        tasks = TaskMap(cluster, tmp_path / name / "done", lambda *told: notes.append(told[2]))
        inputs = StageInputs({"ingest": ArtifactRef.of_folder(tmp_path / "graph", GraphStore)})
        out = ArtifactRef.of_folder(tmp_path / name, SplitStore)
        return split_stage.STAGE.run(StageContext(config, out, inputs, tasks, None, None)), notes

    expected, notes = run_stage("one")
    assert set(notes) == {"splitting", "looking for ties"}
    monkeypatch.setattr(split_stage, "ENTRIES_PER_TASK", 600)
    with monkeypatch.context() as patch:
        patch.setattr("pipeline.stages.range_split.mirror_task", None)
        with pytest.raises(PegError):
            run_stage("ranges")
    done = (tmp_path / "ranges").glob("work/done/*/*.json")
    marks = {file: file.stat().st_mtime_ns for file in done}
    assert {file.parent.name for file in marks} >= {"mark", "train", "folds"}
    found, notes = run_stage("ranges")
    assert found == expected
    assert {"mirror", "leaks"} <= set(notes)
    assert_same(tmp_path, "one", "ranges")
    assert not (tmp_path / "ranges" / "work").exists()
    assert run_stage("ranges") == (expected, ["splitting"] * 2 + ["looking for ties"] * 3)


def test_two_machines_share_an_object_store_alone(object_store, tmp_path, graph, monkeypatch):
    """Each task has the cache of its machine, and the last look is that of a third."""
    expected = split_task(request_of(tmp_path, "one"))
    storage = Storage(f"s3://{object_store.new_bucket()}/store{object_store.options()}")
    attempt = Attempt(storage.location(), "split/f", "token", finished=False, run="run")
    turn = iter(range(10**6))

    def on_machine(machine, task, arguments):
        """What a worker does, beside its marker."""
        kept = os.environ.get("PEG_CACHE_DIR", "")
        sent = pickle.dumps(arguments)
        os.environ["PEG_CACHE_DIR"] = str(tmp_path / f"cache-{machine}")
        try:
            with written_files() as written:
                result = task(**pickle.loads(sent))
            publish(sorted(written))
            release_mirrors()
        finally:
            os.environ["PEG_CACHE_DIR"] = kept
        return json.loads(json.dumps(result))

    def run_apart(task, shards, step):
        return [on_machine(next(turn) % 2, task, shard.arguments) for shard in shards]

    monkeypatch.setenv("PEG_CACHE_DIR", str(tmp_path / "cache-driver"))
    out = ArtifactRef(attempt.store, "split", "f", SplitStore, attempt=attempt)
    request = request_of(tmp_path, "none")
    request = dataclasses.replace(request, out=out)
    work = ArtifactRef.of_folder(out.folder / "work", SplitWork)
    assert RangeSplit(RangeRequest(request, work), run_apart, 400).run() == expected
    assert not list((tmp_path / "cache-driver").rglob("train_graph/*.npy"))
    kept = ArtifactRef.of_folder(out.folder / "without-fold-1", GraphStore)
    on_machine(0, fold_graph_task, {"split": out, "fold": 1, "out": kept})
    sent = pickle.dumps((out, kept))
    monkeypatch.setenv("PEG_CACHE_DIR", str(tmp_path / "cache-third"))
    third, without = (artifact.open() for artifact in pickle.loads(sent))
    one = SplitStore(tmp_path / "one")
    for fold in (-1, 0, 1, 2):
        for ours, theirs in zip(third.links(fold), one.links(fold), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        found, wanted = third.graph_without(fold), one.graph_without(fold)
        np.testing.assert_array_equal(found.indptr, wanted.indptr)
        np.testing.assert_array_equal(found.indices, wanted.indices)
    np.testing.assert_array_equal(without.indices, one.graph_without(1).indices)
    for part in ("valid", "test"):
        ours, theirs = third.held_out(part), one.held_out(part)
        for name in ("source", "target", "label"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
