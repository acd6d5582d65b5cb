"""Relations and kinds of node in a pipeline file."""

from pathlib import Path

import pytest

from peg_core.errors import ConfigError
from pipeline.config.loading import dump_config, load_config

RELATIONS = """
  edges:
    - {name: listens, files: plays.parquet, source: user, target: artist, weight: plays}
    - {name: friends, files: friends.parquet, source: user, target: friend,
       source_kind: user, target_kind: user}
"""


def load(folder: Path, graph: str, rest: str = ""):
    file = folder / "run.yaml"
    file.write_text(f"name: demo\nstore: runs/demo\ngraph: {graph}\n{rest}")
    config = load_config(file)
    file.write_text(dump_config(config))
    assert load_config(file) == config
    return config


def test_kinds_are_called_like_their_columns_those_of_a_predicted_link_first(tmp_path):
    graph = load(tmp_path, RELATIONS + "  predict: listens").graph
    assert graph.kinds == ["user", "artist"]
    assert [relation.kinds for relation in graph.relations] == [("user", "artist"), ("user",) * 2]
    turned = RELATIONS.replace("source: user, target: artist", "source: artist, target: user")
    assert load(tmp_path, turned + "  predict: listens").graph.kinds == ["artist", "user"]
    assert load(tmp_path, RELATIONS + "  predict: friends").graph.kinds == ["user", "artist"]


def test_a_plain_list_depends_on_what_it_always_did(tmp_path):
    plain = load(tmp_path, "{edges: e.parquet}").graph
    assert not plain.is_relational
    assert not {"predict", "bipartite", "directed"} & plain.dependencies().keys()
    assert load(tmp_path, "{edges: e.parquet, directed: true}").graph.dependencies()["directed"]


def test_candidates_have_the_columns_of_the_predicted_relation(tmp_path):
    score = "score: {candidates: c.parquet}"
    found = load(tmp_path, RELATIONS + "  predict: listens", score).score
    assert (found.source, found.target) == ("user", "artist")
    named = load(
        tmp_path, RELATIONS + "  predict: friends", "score: {candidates: c, target: other}"
    )
    assert (named.score.source, named.score.target) == ("user", "other")
    plain = load(tmp_path, "{edges: e.parquet, source: a, target: b}", score).score
    assert (plain.source, plain.target) == ("src", "dst")


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (RELATIONS, r"`predict` is missing: .* listens, friends"),
        (RELATIONS + "  predict: listen", r"graph\.predict: .*'listen'.* are listens, friends"),
        (
            RELATIONS + "  predict: listens\n  time: day",
            r"graph\.time: .*into the relation",
        ),
        (RELATIONS + "  predict: listens\n  nodes: n", r"`nodes` is one table.*user, artist"),
        (RELATIONS + "  predict: listens\n  nodes: {artis: {files: n}}", r"did you mean 'artist'"),
        (RELATIONS + "  predict: listens\n  half_life: 9d", r"`half_life` needs `time`"),
        (RELATIONS.replace("weight", "wieght"), r"graph\.edges\.0\.wieght: .*mean 'weight'"),
        (RELATIONS.replace("friends,", "listens,"), r"two relations 'listens'"),
        (RELATIONS.replace("artist,", "user,"), r"`source` and `target` are both .*'user'"),
        ("{edges: e, bipartite: true, directed: true}", r"leave `directed` out"),
        ("{edges: e, predict: x}", r"`predict` needs `edges` to be a list"),
        ("{edges: []}", r"lists 0 relations, needed are 1 to 8"),
        ("{edges: [{name: a, files: f, directed: true}]}", r"needs both ends to be of one kind"),
    ],
)
def test_a_graph_that_cannot_be_is_refused_with_a_remedy(tmp_path, graph, message):
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, graph)
