"""Papers: laws of the links drawn, and what shapes them."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peg_core.errors import ConfigError
from peg_core.generators.citation_graph import DAYS, FIRST_DAY, CitationGraph

GRAPH = CitationGraph(papers=1500, edges=12_000, topics=15)


@settings(max_examples=25, deadline=None)
@given(
    papers=st.integers(60, 300),
    topics=st.integers(1, 10),
    inside_share=st.floats(0, 1),
    skew=st.floats(0, 1),
    seed=st.integers(0, 99),
)
def test_links_are_distinct_and_lead_to_an_earlier_day(papers, topics, inside_share, skew, seed):
    graph = CitationGraph(papers, 2 * papers // 3, topics, inside_share, skew)
    citing, cited = graph.citations(seed=seed)
    days = graph.paper_days(seed=seed)
    assert len(citing) == graph.edges == len(set(zip(citing, cited, strict=True)))
    assert (days[citing] > days[cited]).all()
    assert max(citing.max(), cited.max()) < papers
    first, second = graph.candidates(rows=papers, seed=seed)
    assert len(set(zip(first, second, strict=True))) == papers
    assert (days[first] > days[second]).all()


def test_there_is_no_way_round():
    assert nx.is_directed_acyclic_graph(nx.DiGraph(zip(*GRAPH.citations(seed=0), strict=True)))


def test_most_links_stay_in_a_topic_and_some_papers_are_popular():
    citing, cited = GRAPH.citations(seed=1)
    topics = GRAPH.paper_topics(seed=1)
    assert set(np.bincount(topics)) == {100}
    assert 0.7 < (topics[citing] == topics[cited]).mean() < 0.85
    incoming = np.sort(np.bincount(cited, minlength=GRAPH.papers))[::-1]
    outgoing = np.sort(np.bincount(citing, minlength=GRAPH.papers))[::-1]
    assert incoming[:15].mean() > 2 * outgoing[:15].mean()
    assert incoming[0] > 5 * incoming.mean()


def test_without_skew_age_alone_makes_papers_popular():
    incoming = [
        np.sort(np.bincount(replace(GRAPH, popularity_skew=skew).citations(seed=1).target))[-15:]
        for skew in (0.0, 0.8)
    ]
    assert incoming[1].mean() > 1.5 * incoming[0].mean()


def test_days_are_those_of_ten_years_and_ids_do_not_tell_them():
    days = GRAPH.paper_days(seed=2)
    assert str(days.min().astype("datetime64[D]")) >= FIRST_DAY.isoformat() == "2010-01-01"
    assert str(days.max().astype("datetime64[D]")) <= "2019-12-31"
    assert np.ptp(days) > 0.95 * DAYS
    assert abs(np.corrcoef(np.arange(len(days)), days)[0, 1]) < 0.1


def test_a_seed_decides_everything():
    def lists(seed):
        return np.concatenate([*GRAPH.citations(seed=seed), *GRAPH.candidates(rows=50, seed=seed)])

    np.testing.assert_array_equal(lists(4), lists(4))
    assert not np.array_equal(lists(4), lists(5))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"papers": 1}, "1 papers were asked for, between 2 and"),
        ({"topics": 751}, "751 topics were asked for, between 1 and 750"),
        ({"inside_share": -1}, "`inside_share` is -1"),
        ({"popularity_skew": -0.1}, "`popularity_skew` is -0.1"),
        ({"edges": 112_426}, "112,426 edges were asked for, between 1 and 112,425"),
    ],
)
def test_wrong_parameters_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        replace(GRAPH, **changes).check()


def test_more_candidates_than_are_possible_are_refused():
    with pytest.raises(ConfigError, match="112,426 candidates were asked for, between 1 and"):
        GRAPH.candidates(rows=112_426, seed=0)
