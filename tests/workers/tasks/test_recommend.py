"""Lists of a bipartite graph whose two kinds have equal ids, against sorting everything."""

from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from peg_core.errors import InputError
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.inference.list_side import ListSide
from peg_core.models.heads import CosineHead
from tests.fixtures.stored_lists import ITEMS, USERS, store_lists
from workers.tasks import recommend as module
from workers.tasks.recommend import recall_task, recommend_task
from workers.tasks.recommending.asked_nodes import AskedNodes, asked_task
from workers.tasks.recommending.condition_tables import (
    ConditionFiles,
    allowed_task,
    excluded_task,
)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    return store_lists(tmp_path_factory.mktemp("bipartite"))


def ask(stored, request, table=None, column="id", *, refuse=False):
    nodes = stored.ref(GraphIds)
    return asked_task(AskedNodes(table, column, refuse, nodes, request.asked, request.side))


def lists(stored, request, out):
    asked = ask(stored, request)
    counts = recommend_task(request, 0, asked["nodes"], out / "part.parquet")
    return pl.read_parquet(out / "part.parquet"), counts


def scores(stored):
    """[USERS, ITEMS] by numpy alone."""
    logits = CosineHead.scale * (stored.vectors[:USERS] @ stored.vectors[USERS:].T)
    return 1 / (1 + np.exp(-(1.5 * logits - 0.5)))


def expected(ids, others, score, free, k):
    """Id -> its best free partners by id, of dense scores [num_nodes, num_partners]."""
    found = {}
    for row, name in enumerate(ids.tolist()):
        order = np.argsort(-score[row], kind="stable")
        best = [column for column in order if free[row, column]][:k]
        found[name] = others[best].tolist()
    return found


def of_frame(table):
    grouped = table.group_by("node", maintain_order=True).agg("candidate")
    return dict(zip(grouped["node"], grouped["candidate"].to_list(), strict=True))


def share(found, wanted):
    """Of the wanted that were found."""
    right = sum(len(set(found[name]) & set(best)) for name, best in wanted.items())
    return right / sum(map(len, wanted.values()))


def test_users_get_items_and_the_best_of_them(stored, tmp_path):
    table, counts = lists(stored, stored.request(tmp_path), tmp_path)
    assert counts == {"nodes": USERS, "rows": 10 * USERS, "short": 0, "low": 0}
    found = of_frame(table)
    assert list(found) == stored.user_ids.tolist()
    wanted = expected(stored.user_ids, stored.item_ids, scores(stored), ~stored.likes, 10)
    assert share(found, wanted) >= 0.99
    user = {name: row for row, name in enumerate(stored.user_ids.tolist())}
    item = {name: row for row, name in enumerate(stored.item_ids.tolist())}
    rows = [user[name] for name in table["node"]]
    columns = [item[name] for name in table["candidate"]]  # a KeyError where it were a user's
    np.testing.assert_allclose(table["score"], scores(stored)[rows, columns], rtol=1e-4)
    assert not stored.likes[rows, columns].any()


def test_items_get_users(stored, tmp_path):
    request = stored.request(tmp_path, side=stored.side("item"))
    table, _ = lists(stored, request, tmp_path)
    wanted = expected(stored.item_ids, stored.user_ids, scores(stored).T, ~stored.likes.T, 10)
    assert list(of_frame(table)) == stored.item_ids.tolist()
    assert share(of_frame(table), wanted) >= 0.99


def test_indexes_alone_find_at_least_95_percent(stored, tmp_path):
    """Nothing nearby: what is near a user in one index of both kinds are users."""
    request = stored.request(tmp_path, nearby=1, nearest=50)
    ask(stored, request)
    assert np.mean(recall_task(request, range(USERS))["recall"]) >= 0.95


def test_only_allowed_items_and_no_excluded_pairs_above_the_floor(stored, tmp_path, monkeypatch):
    rng = np.random.default_rng(2)
    allowed = rng.choice(stored.item_ids, 60, replace=False)
    free = np.isin(stored.item_ids, allowed) & ~stored.likes
    best = np.argsort(-np.where(free, scores(stored), -1), axis=1)[:, :3]
    excluded = {
        "u": [*np.repeat(stored.user_ids, 3).tolist(), 10**6, None],
        "i": [*stored.item_ids[best].ravel().tolist(), 0, 1],
    }
    pl.DataFrame(excluded).write_parquet(tmp_path / "sold.parquet")
    pl.DataFrame({"id": [*allowed.tolist(), 5_000]}).write_parquet(tmp_path / "allowed.parquet")
    files = ConditionFiles(tmp_path / "allowed.npy", tmp_path / "excluded.npy")
    graph = stored.ref(GraphStore)
    table = str(tmp_path / "allowed.parquet")
    counted = allowed_task(graph.at(GraphIds), table, "id", stored.side(), files.allowed)
    assert counted == {"known": 60, "unknown": 1}
    table = str(tmp_path / "sold.parquet")
    counted = excluded_task(graph, table, ("u", "i"), files.excluded)
    assert counted == {"known": 3 * USERS, "unknown": 2}
    free[np.arange(USERS)[:, None], best] = False
    wanted = expected(stored.user_ids, stored.item_ids, scores(stored), free, 10)
    request = stored.request(tmp_path, conditions=files)
    table, counts = lists(stored, request, tmp_path)
    assert of_frame(table) == wanted
    assert counts["low"] == 0
    floor = float(np.median(table["score"]))
    above, counts = lists(stored, replace(request, least_score=floor), tmp_path)
    assert above.equals(table.filter(pl.col("score") >= np.float32(floor)))
    assert counts["low"] == len(table) - len(above) > 0
    assert counts["short"] == 0
    monkeypatch.setattr(module, "MOST_COMPARED", 10)  # indexes find 60 of 400 where they find more
    assert share(of_frame(lists(stored, request, tmp_path)[0]), wanted) >= 0.95


def test_both_kinds_of_id_are_written_as_one(stored, tmp_path):
    text = (pa.large_string(), pa.large_string())
    for wanted in ("user", "item"):
        request = stored.request(
            tmp_path / wanted, side=stored.side(wanted), id_types=text, names_kind=True
        )
        (tmp_path / wanted).mkdir(exist_ok=True)
        table, _ = lists(stored, request, tmp_path / wanted)
        assert table["kind"].unique().to_list() == [wanted]
        assert table.schema["node"] == table.schema["candidate"] == pl.String
        numbers = lists(stored, replace(request, id_types=(pa.int64(),) * 2), tmp_path / wanted)[0]
        assert numbers["node"].cast(pl.String).equals(table["node"])


def test_asked_ids_are_those_of_the_kind_that_gets_lists(stored, tmp_path):
    asked = [int(stored.user_ids[7]), USERS + 3, int(stored.user_ids[2])]  # the second is an item
    pl.DataFrame({"id": asked}).write_parquet(tmp_path / "asked.parquet")
    request = stored.request(tmp_path)
    found = ask(stored, request, str(tmp_path / "asked.parquet"))
    assert found == {"nodes": 2, "unknown": 1}
    assert np.load(request.asked).tolist() == [7, 2]
    as_items = stored.request(tmp_path, side=stored.side("item"))
    assert ask(stored, as_items, str(tmp_path / "asked.parquet"))["unknown"] == 0
    assert (np.load(as_items.asked) >= USERS).all()
    pl.DataFrame({"id": range(USERS, ITEMS)}).write_parquet(tmp_path / "asked.parquet")
    with pytest.raises(InputError, match=r"no id of a 'user', but 280 of 280 ids .* of a 'item'"):
        ask(stored, request, str(tmp_path / "asked.parquet"))


def test_tables_of_the_wrong_kind_are_refused(stored, tmp_path):
    graph, table = stored.ref(GraphStore), str(tmp_path / "table.parquet")
    columns = {"i": range(USERS, ITEMS), "u": [0] * (ITEMS - USERS)}
    pl.DataFrame(columns).write_parquet(table)
    with pytest.raises(InputError, match="exchange the columns"):
        excluded_task(graph, table, ("i", "u"), tmp_path / "excluded.npy")
    side = ListSide.of(stored.graph, "item")[0]
    with pytest.raises(InputError, match=r"column 'i' of .* holds no id of a 'user'"):
        allowed_task(graph.at(GraphIds), table, "i", side, tmp_path / "allowed.npy")
    pl.DataFrame({"i": [-1]}).write_parquet(table)
    with pytest.raises(InputError, match=r"none of the 1 ids .* nothing may be recommended"):
        allowed_task(graph.at(GraphIds), table, "i", side, tmp_path / "allowed.npy")
