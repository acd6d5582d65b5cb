"""Papers with titles: laws of what is drawn, and that it is like a citation graph."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from peg_core.errors import ConfigError
from peg_core.generators.paper_graph import PaperGraph
from peg_core.generators.paper_words import TOPICS, VOCABULARY

GRAPH = PaperGraph(papers=1200)


@pytest.fixture(scope="module")
def papers():
    return GRAPH.draw_papers(seed=3)


@pytest.fixture(scope="module")
def citations(papers):
    return GRAPH.citations(papers, seed=3)


@pytest.mark.parametrize(("count", "seed"), [(100, 0), (300, 5)])
def test_titles_differ_and_every_paper_cites_older_ones_once(count, seed):
    graph = PaperGraph(count, references=3)
    papers = graph.draw_papers(seed=seed)
    citing, cited = graph.citations(papers, seed=seed)
    assert len(set(papers.titles)) == len(papers.titles) == count
    assert (citing > cited).all()
    assert set(citing) == set(range(1, count))
    assert len(set(zip(citing, cited, strict=True))) == len(citing)
    assert (np.diff(papers.years) >= 0).all()


def test_a_title_names_its_topic_and_words_that_the_paper_uses(papers):
    for title, topic, used in zip(papers.titles, papers.topics, papers.words, strict=True):
        words = {VOCABULARY[place] for place in np.flatnonzero(used)}
        said = title.removesuffix(TOPICS[topic].name).lower().replace(",", "").split()
        assert title.endswith(TOPICS[topic].name)
        assert len(words & set(said) & set(TOPICS[topic].words)) == 2


def test_links_follow_topics_and_half_of_them_have_no_common_neighbour(papers, citations):
    inside = papers.topics[citations.source] == papers.topics[citations.target]
    assert 0.6 < inside.mean() < 0.85
    graph = nx.Graph(zip(*citations, strict=True))
    assert nx.is_connected(graph)
    alone = np.mean([not set(graph[u]) & set(graph[v]) for u, v in graph.edges])
    assert 0.3 < alone < 0.7
    degrees = np.sort([degree for _, degree in graph.degree])
    assert degrees[-1] > 8 * np.median(degrees)


def test_papers_that_share_words_are_likelier_to_be_linked(papers, citations):
    shared = papers.words.astype(int) @ papers.words.T.astype(int)
    topic = np.equal.outer(papers.topics, papers.topics)
    linked = np.zeros_like(topic)
    linked[citations] = True
    older = np.tri(len(topic), k=-1, dtype=bool) & topic
    assert shared[linked & topic].mean() > shared[older & ~linked].mean() + 0.3


def test_a_seed_decides_everything(papers, citations):
    again = GRAPH.draw_papers(seed=3)
    assert again.titles == papers.titles
    np.testing.assert_array_equal(GRAPH.citations(again, seed=3), citations)
    assert GRAPH.draw_papers(seed=4).titles != papers.titles


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (PaperGraph(99), "99 papers were asked for, between 100 and 5,000"),
        (PaperGraph(5001), "5,001 papers were asked for"),
        (PaperGraph(200, references=1.5), "1.5 references per paper were asked for"),
    ],
)
def test_wrong_parameters_are_refused(graph, message):
    with pytest.raises(ConfigError, match=message):
        graph.check()
