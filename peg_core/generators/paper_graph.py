"""Papers that a person can read about: titles, fields, words, and references between them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
import numpy.typing as npt

from peg_core.errors import ConfigError
from peg_core.generators.distinct_pairs import check_count
from peg_core.generators.edge_generator import EdgeChunk, check_seed
from peg_core.generators.paper_words import GENERAL, TITLES, TOPICS, VOCABULARY
from peg_core.kernels.generator_kernels import Int64Array
from peg_core.random_streams import random_stream

FIRST_YEAR, YEARS = 1990, 35
MOST_PAPERS = 5000
# Of the references that are not copied: to a paper of the own topic, and of the own field.
OWN_TOPIC, OWN_FIELD = 0.7, 0.2
# A reference that is copied is one of a paper that is cited already: triangles.
COPIED = 0.25
# Every word that two papers share makes a reference this much likelier.
WORD_PULL = 1.8
POPULARITY_SKEW = 0.5
# Words of a paper: from its topic beside the two of its title, its field, all topics, all fields.
FROM_TOPIC, FROM_FIELD, FROM_ANYWHERE, FROM_GENERAL = 5, 3, 3, 5


@dataclass(frozen=True)
class Papers:
    """Generated papers, from the oldest to the newest.

    Args:
        titles: Different ones, [papers].
        topics: Index into ``TOPICS``, [papers].
        years: [papers].
        words: Whether a paper uses a word of ``VOCABULARY``, [papers, words].
    """

    titles: list[str]
    topics: Int64Array
    years: Int64Array
    words: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class PaperGraph:
    """Papers that cite older ones, as in the citation graphs that link prediction is tested on.

    Most references lead to a paper of the own topic, likelier to one that shares words and to a
    popular one; a quarter is copied from the references of a paper that is cited. A paper has few
    references, so most pairs that belong together have no common neighbour.

    Args:
        papers: Number of papers; the oldest one cites none.
        references: Mean number of references drawn for a paper, two at least; a paper that is
            drawn twice is cited once.
    """

    papers: int
    references: float = 2.6

    def check(self) -> None:
        """Raise a ConfigError when the parameters describe no graph."""
        check_count("papers", self.papers, least=100, most=MOST_PAPERS)
        if not 2 <= self.references <= 20:
            raise ConfigError(
                f"{self.references} references per paper were asked for, between 2 and 20 are "
                "possible; change `references`"
            )

    def draw_papers(self, *, seed: int) -> Papers:
        """What the papers are called and about."""
        self.check()
        check_seed(seed)
        stream = random_stream(seed=seed, purpose="papers")
        sizes = stream.lognormal(0.0, 0.4, len(TOPICS))
        room = len(TITLES) * len(TOPICS[0].words) * (len(TOPICS[0].words) - 1)
        share = np.minimum(sizes / sizes.sum(), 0.9 * room / self.papers)
        topics = stream.choice(len(TOPICS), self.papers, p=share / share.sum())
        titles, words = [""] * self.papers, np.zeros((self.papers, len(VOCABULARY)), np.bool_)
        for topic in range(len(TOPICS)):
            members = np.flatnonzero(topics == topic)
            for member, (title, used) in zip(members, _titles(topic, stream), strict=False):
                titles[member] = title
                words[member, _places(used)] = True
        for paper, topic in enumerate(topics.tolist()):
            words[paper, _places(_more_words(topic, stream))] = True
        years = np.sort(FIRST_YEAR + (YEARS * stream.random(self.papers) ** 0.6).astype(np.int64))
        return Papers(titles, topics, years, words)

    def citations(self, papers: Papers, *, seed: int) -> EdgeChunk:
        """Different pairs of a citing and an older cited paper, [edges] each."""
        stream = random_stream(seed=seed, purpose="references of papers")
        popularity = (1 - stream.random(self.papers)) ** -POPULARITY_SKEW
        fields = np.unique([topic.field for topic in TOPICS], return_inverse=True)[1][papers.topics]
        shared = papers.words.astype(np.float32) @ papers.words.T.astype(np.float32)
        cited: list[list[int]] = [[]]
        for paper in range(1, self.papers):
            weight = popularity[:paper] * WORD_PULL ** shared[paper, :paper]
            groups = (
                weight * (papers.topics[:paper] == papers.topics[paper]),
                weight * (fields[:paper] == fields[paper]),
                popularity[:paper],
            )
            cited.append(self._references(cited, groups, stream))
        citing = np.repeat(np.arange(self.papers), [len(found) for found in cited])
        return EdgeChunk(citing, np.concatenate([np.array(found, np.int64) for found in cited]))

    def _references(
        self,
        earlier: list[list[int]],
        groups: tuple[npt.NDArray[np.floating], ...],
        stream: np.random.Generator,
    ) -> list[int]:
        """What the next paper cites, each paper once."""
        found: dict[int, None] = {}
        for _ in range(1 + stream.geometric(1 / (self.references - 1))):
            second = [paper for first in found for paper in earlier[first]]
            if second and stream.random() < COPIED:
                found[second[stream.integers(len(second))]] = None
                continue
            kind = int(np.searchsorted([OWN_TOPIC, OWN_TOPIC + OWN_FIELD], stream.random()))
            if groups[kind].any():  # else the topic, or the field, is new
                found[_draw(groups[kind], stream)] = None
        return list(found) or [_draw(groups[-1], stream)]


def _draw(weight: npt.NDArray[np.floating], stream: np.random.Generator) -> int:
    reach = np.cumsum(weight)
    return int(np.searchsorted(reach, stream.random() * reach[-1], side="right"))


def _titles(topic: int, stream: np.random.Generator) -> list[tuple[str, tuple[str, str]]]:
    """Every title of a topic with its two words, in random order."""
    name, words = TOPICS[topic].name, TOPICS[topic].words
    found = [
        (form.format(A=a.capitalize(), a=a, b=b, topic=name), (a, b))
        for form, (a, b) in product(TITLES, permutations(words, 2))
    ]
    return [found[place] for place in stream.permutation(len(found))]


def _more_words(topic: int, stream: np.random.Generator) -> list[str]:
    """What the abstract says beside the title; some of it is off the topic."""
    of_field = [word for each in TOPICS if each.field == TOPICS[topic].field for word in each.words]
    sources = (
        (TOPICS[topic].words, FROM_TOPIC),
        (of_field, FROM_FIELD),
        (VOCABULARY, FROM_ANYWHERE),
        (GENERAL, FROM_GENERAL),
    )
    return [words[stream.integers(len(words))] for words, count in sources for _ in range(count)]


_PLACES = {word: place for place, word in enumerate(VOCABULARY)}


def _places(words: list[str] | tuple[str, ...]) -> list[int]:
    return [_PLACES[word] for word in words]
