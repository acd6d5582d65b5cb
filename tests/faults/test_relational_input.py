"""Wrong descriptions of relational graphs: one clear error, exit code 1 or 2, nothing written."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from tests.faults.bad_inputs.call import call_here
from tests.faults.bad_inputs.trial import REMEDY

LISTS = """
  edges:
    - {name: plays, files: plays.parquet, source: user, target: item}
    - {name: friends, files: friends.parquet, source: user, target: friend,
       source_kind: user, target_kind: user}
  predict: plays
"""
SHORT = " {edges: plays.parquet, source: user, target: item, bipartite: true}\n"
SCORE = "score: {candidates: pairs.parquet"


@pytest.fixture(autouse=True)
def _tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"user": [1, 2, 3], "item": [1, 1, 2]}).write_parquet("plays.parquet")
    pl.DataFrame({"user": [1, 2], "friend": [2, 3]}).write_parquet("friends.parquet")
    pl.DataFrame({"user": [1], "friend": [2]}).write_parquet("pairs.parquet")
    pl.DataFrame({"user": ["a"], "item": ["b"]}).write_parquet("texts.parquet")
    pl.DataFrame({"user": [1, 2, 3], "item": [1, 1, 2]}).clear().write_parquet("empty.parquet")


@pytest.mark.parametrize(
    ("graph", "code", "says"),
    [
        (LISTS.replace("predict: plays", "predict: play"), 2, "names 'play', .* plays, friends"),
        (LISTS.replace("  predict: plays\n", ""), 2, "`predict` is missing"),
        (LISTS + "  nodes: {usr: {files: n.parquet}}\n", 2, "kind 'usr', .*mean 'user'"),
        (LISTS + "  nodes: n.parquet\n", 2, "`nodes` is one table, .* user, item"),
        (LISTS.replace("files: friends.parquet, ", ""), 2, r"edges\.1\.files: a required key"),
        (" {edges: []}\n", 2, "lists 0 relations"),
        (LISTS.replace("friends.parquet", "frends.parquet"), 1, "no Parquet file at .*frends"),
        (LISTS.replace("friends.parquet", "empty.parquet"), 1, "no column 'friend'"),
        (SHORT.replace("plays.parquet", "empty.parquet"), 1, "empty.parquet holds no edges"),
        (LISTS.replace("item}", "itm}"), 1, "no column 'itm'; .* did you mean 'item'"),
        (SHORT.replace("true", "true, directed: true"), 2, "leave `directed` out"),
        (SHORT + SCORE + "}\n", 1, "pairs.parquet has no column 'item'"),
        (SHORT + SCORE.replace("pairs", "texts") + "}\n", 1, "'user' of .*large_string"),
        (SHORT + "split: {by: time}\n", 2, "needs `graph.time`"),
    ],
)
def test_a_wrong_description_is_refused_before_anything_is_written(graph, code, says):
    Path("wrong.yaml").write_text(f"name: wrong\nstore: store\ngraph:{graph}")
    answer = call_here(["run", "wrong.yaml"])
    assert answer.code == code
    text = (answer.out + answer.err).replace("\n", " ")
    assert "Traceback" not in text
    error = text[text.index("error: ") :]
    assert error.count("error: ") == 1
    assert re.search(says, error)
    assert REMEDY.search(error)
    assert not list(Path("store").glob("*/*/manifest.json"))
