"""What generated papers are about: fields, their topics, and the words of a topic."""

from __future__ import annotations

from typing import NamedTuple


class Topic(NamedTuple):
    """A topic and the words that its papers use more than others do."""

    field: str
    name: str
    words: tuple[str, ...]


# By field, by topic.
_WORDS = {
    "astronomy": {
        "exoplanets": "transits habitability migration spectra orbits haze eclipses tides",
        "galaxy clusters": "mergers lensing plasma shocks filaments haloes dwarfs redshift",
        "pulsars": "timing glitches beams magnetospheres dispersion binaries accretion spin",
        "the Milky Way": "bulges streams metallicity bars warps parallax dust dynamics",
    },
    "ecology": {
        "coral reefs": "bleaching larvae symbionts acidification grazers calcification algae heat",
        "boreal forests": "wildfire permafrost mosses spruce logging beetles carbon snow",
        "pollination": "bumblebees nectar orchids pesticides meadows flowering mimicry foraging",
        "rivers": "dams salmon sediment floods invertebrates nutrients beavers drought",
    },
    "genetics": {
        "gene editing": "guides off-targets repair delivery enzymes mosaicism knockouts screens",
        "ancient DNA": "burials admixture plague contamination migrations hair kinship bones",
        "plant breeding": "wheat hybrids yield rust seeds selection genotyping domestication",
        "the microbiome": "fermentation antibiotics infants phages mucus diet probiotics biofilms",
    },
    "linguistics": {
        "sign languages": "handshapes classifiers deafness fluency gesture rhyme faces villages",
        "creoles": "contact substrates plantations lexifiers islands tense mixing pidgins",
        "phonology": "vowels tones syllables harmony stress consonants lenition rhythm",
        "dialects": "isoglosses borders slang prestige surveys accents towns radio",
    },
    "medicine": {
        "asthma": "inhalers pollen steroids airways children smoke allergy wheezing",
        "stroke": "clots thrombolysis rehabilitation aphasia imaging arteries gait bleeding",
        "vaccines": "adjuvants antibodies boosters hesitancy influenza trials aerosols immunity",
        "sleep": "insomnia shifts melatonin dreams apnoea naps arousal memory",
    },
    "computing": {
        "databases": "indexes joins transactions caches replication recovery columns queries",
        "compilers": "registers inlining types loops vectors linking garbage parsing",
        "robotics": "grasping legs maps lidar planning swarms tactility drones",
        "cryptography": "lattices signatures hashes leakage voting keys proofs elections",
    },
    "mathematics": {
        "random walks": "mixing hitting returns coupling trees conductance drift percolation",
        "number theory": "primes sieves curves lifts zeros partitions fields residues",
        "topology": "knots braids surfaces homology foliations bundles invariants links",
        "optimisation": "gradients duality constraints rounding saddles descent cuts schedules",
    },
    "history": {
        "medieval trade": "guilds salt ports fairs credit cloth pirates tolls",
        "the printing press": "pamphlets type censorship almanacs engravers paper heresy readers",
        "railways": "gauges strikes tunnels timetables coal stations tickets suburbs",
        "ancient Egypt": "papyri tombs scribes amulets pharaohs granaries temples quarries",
    },
    "economics": {
        "housing": "rents mortgages zoning landlords bubbles evictions tenure commuting",
        "auctions": "bids collusion reserves spectrum art signals budgets entry",
        "labour markets": "wages unions automation vacancies apprentices layoffs gender pensions",
        "tax": "havens evasion audits inheritance loopholes compliance rebates tariffs",
    },
    "materials": {
        "batteries": "anodes electrolytes dendrites lithium cycling separators sodium fading",
        "concrete": "cement cracks curing ash rebar creep recycling slag",
        "glass": "relaxation ageing fracture silica fibres cooling scratches windows",
        "perovskites": "tandems halides stability grains tin films ions moisture",
    },
}  # fmt: skip

TOPICS = tuple(
    Topic(field, name, tuple(words.split()))
    for field, topics in _WORDS.items()
    for name, words in topics.items()
)
# What papers of every field say.
_GENERAL = (
    "models experiments uncertainty archives networks simulation policy theory sampling cost "
    "climate learning scale history risk statistics evidence methods surveys software"
)
GENERAL = tuple(_GENERAL.split())
TITLES = (
    "{A} and {b} in {topic}",
    "From {a} to {b} in {topic}",
    "{A}, {b} and {topic}",
    "On {a} and {b} in {topic}",
    "{A} without {b} in {topic}",
    "{A} before {b} in {topic}",
    "Measuring {a} and {b} in {topic}",
    "Notes on {a} and {b} in {topic}",
)
# Every word once; topics may share some.
VOCABULARY = tuple(
    dict.fromkeys([word for topic in TOPICS for word in topic.words] + list(GENERAL))
)
