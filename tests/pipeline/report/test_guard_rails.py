"""Each sentence where its numbers ask for it, and nowhere else."""

import pytest

from pipeline.report.guard_rails import (
    calibration_rails,
    direction_rails,
    evaluation_rails,
    kind_rails,
    side_rails,
)

FINE = {
    "links": 1000, "cold_links": 200, "non_links": 1000, "cold_non_links": 190,
    "degree_shift": 0.3, "median_test_degree": 3.0, "median_train_degree": 9.0,
}  # fmt: skip


def row(method, auc, half=0.01):
    return {"method": method, "auc": auc, "auc_low": auc - half, "auc_high": auc + half}


SIDES = {"rows": 500, "whole": True, "sources": 50, "targets": 80, "both": 40, "outside": 16}


def rails(rows=None, features=False, metric="auc", tables=None, stacked=False, **changes):
    rows = rows or [row("peg", 0.8), row("katz", 0.7)]
    asked = {"metric": metric, "features": features, "tables": tables, "stacked": stacked}
    return evaluation_rails(rows, FINE | changes, **asked)


def test_nothing_is_said_of_a_test_that_is_in_order():
    assert rails() == []
    assert rails([row("peg", 0.5)]) == []
    assert (
        rails([{"method": "peg", "mrr": 0.1}, {"method": "katz", "mrr": 0.1}], metric="mrr") == []
    )


def test_worse_than_chance():
    (text,) = rails([row("peg", 0.1609)])
    assert text.startswith("test AUC is 0.1609 on 2,000 pairs, worse than chance; look for")
    (text, _) = rails([row("peg", 0.1609)], cold_links=998)
    assert "99.8% of the links and 19.0% of the non-links" in text
    assert "set `evaluate.negatives: matched`" in text


def test_worse_than_chance_where_nobody_looks_first():
    tables = {
        "random": [row("peg", 0.8), row("katz", 0.1)],
        "random, warm pairs": [row("peg", 0.9)],
        "random, cold pairs": [row("peg", 0.4312)],
        "heart": [{"method": "peg", "mrr": 0.1}],
    }
    (text,) = rails(tables=tables)
    assert text.startswith(
        "test AUC is 0.4312 on 390 pairs (random, cold pairs), worse than chance; do not use the "
        "scores of such pairs, or give `graph.features`"
    )
    assert "features" not in rails(tables=tables, features=True)[0]
    tables["random, warm pairs"] = [row("peg", 0.2)]
    (text,) = rails(tables=tables)
    assert "0.2000 on 1,610 pairs (random, warm pairs) and 0.4312 on 390 pairs" in text
    assert "features" not in text


def test_worse_than_chance_is_said_once():
    below = [row("peg", 0.3)]
    (text,) = rails(below, tables={"random": below, "random, cold pairs": below})
    assert "on 2,000 pairs" in text


@pytest.mark.parametrize(
    ("model", "heuristic", "told"),
    [(0.7, 0.73, True), (0.7, 0.711, True), (0.7, 0.709, False), (0.7, 0.69, False)],
)
def test_a_heuristic_that_is_better_beyond_the_interval(model, heuristic, told):
    found = rails([row("peg", model), row("katz", 0.2), row("adamic_adar", heuristic)])
    assert len(found) == told
    if told:
        assert found[0].startswith("adamic adar needs no training and is better than the model on ")
        assert f"1,000 test links: auc {heuristic:.4f} against 0.7000" in found[0]


def test_a_heuristic_that_is_ahead_at_the_top_is_named_where_the_auc_is_not_its_own():
    model = row("peg", 0.9) | {"mrr": 0.74, "mrr_low": 0.7, "mrr_high": 0.78}
    ahead = row("resource_allocation", 0.8) | {"mrr": 0.85}
    (text,) = rails([model, ahead])
    assert "resource allocation needs no training" in text
    assert "mrr 0.8500 against 0.7400; set `calibrate.stack: true`" in text
    assert rails([model, ahead | {"mrr": 0.78}]) == []
    (text,) = rails([model, ahead], stacked=True)
    assert "0.7400; train longer" in text
    (text,) = rails([model, ahead | {"auc": 0.95}])  # said once, by the first metric
    assert "auc 0.9500 against 0.9000" in text


def test_without_intervals_any_difference_counts():
    rows = [{"method": "peg", "mrr": 0.1}, {"method": "katz", "mrr": 0.11}]
    assert len(rails(rows, metric="mrr")) == 1


def test_many_cold_links():
    (text,) = rails(cold_links=201)
    assert text.startswith("201 of 1,000 test links (20.1%) have a node without a training edge")
    assert "give `graph.features`" in text
    assert rails(cold_links=201, features=True)[0].endswith(
        "rest on node features alone, look at warm and cold pairs apart"
    )
    assert rails(cold_links=1000, features=True)[0].endswith("rest on node features alone")
    assert rails(cold_links=1000)[0].endswith("give `graph.features`")


def test_degrees_far_apart():
    (text,) = rails(degree_shift=0.31)
    assert "median 3 against 9, distance 0.31" in text


def test_calibration():
    assert calibration_rails([0.9, 1.1], [2.0, 1.5], 50) == []
    assert calibration_rails([0.001], [2.0], 50) == []  # wide logits
    (text,) = calibration_rails([0.9, -0.2], [2.0, 0.5], 1500)
    assert "slope -0.2000 on 1,500 validation pairs" in text
    (text,) = calibration_rails([0.02], [0.01], 1500)
    assert "1,500 validation pairs are all nearly the same (slope 0.0200)" in text


def test_two_kinds_of_node_in_one_list():
    assert side_rails(None, "a", "b") == []
    assert side_rails(SIDES, "a", "b") == []
    (text,) = side_rails(SIDES | {"both": 0}, "user", "item")
    assert text.startswith("no node stands in both 'user' (50 nodes) and 'item' (80) in 500 rows")
    assert "set `graph.bipartite: true`" in text
    (text,) = side_rails(SIDES | {"sources": 500, "targets": 400, "both": 4}, "user", "item")
    assert text.startswith("only 4 nodes stand in both")


def test_two_kinds_of_node_that_share_numbers():
    (text,) = side_rails(SIDES | {"outside": 17}, "user", "item")
    assert text.startswith(
        "17 numbers in one of the columns 'user' (50 nodes) and 'item' (80) lie beyond all of the "
        "other in 500 rows"
    )
    assert "set `graph.bipartite: true`" in text
    assert side_rails(SIDES | {"outside": 17, "rows": 99}, "user", "item") == []


@pytest.mark.parametrize(
    ("duplicates", "reversed_duplicates", "told"),
    [
        (0, 5000, True),  # a friendship list: every link both ways
        (10, 10, True),  # half of the duplicates, one row in a hundred
        (11, 10, False),
        (0, 9, False),  # two papers of a day that cite each other
        (0, 0, False),
        (500, 0, False),
    ],
)
def test_a_directed_list_that_gives_its_links_both_ways(duplicates, reversed_duplicates, told):
    found = direction_rails(
        rows=1000 if reversed_duplicates < 1000 else 10_000,
        duplicates=duplicates,
        reversed_duplicates=reversed_duplicates,
    )
    assert len(found) == told
    if told:
        total = duplicates + reversed_duplicates
        assert f"{reversed_duplicates:,} of {total:,} duplicates" in found[0]
        assert "leave `directed` out" in found[0]


@pytest.mark.parametrize(
    ("shared", "covered", "told"),
    [(1.0, 1.0, True), (0.9, 0.25, True), (0.89, 1.0, False), (1.0, 0.24, False)],
)
def test_a_kind_of_node_that_is_another_one(shared, covered, told):
    names = {"relation": "friends", "key": "target_kind", "kind": "friend", "other": "user"}
    found = kind_rails(**names, shared=shared, covered=covered)
    assert len(found) == told
    if told:
        assert found[0].startswith(f"{shared:.1%} of the ids of the kind 'friend' are ids of 'us")
        assert found[0].endswith("set `target_kind: user` in the relation 'friends'")
