"""What the names of columns say."""

from __future__ import annotations

import re

# Two ends of a link between nodes of one kind, the source first.
ENDS = (
    ("src", "dst"), ("source", "target"), ("source", "destination"), ("source", "dest"),
    ("src", "dest"), ("src", "target"), ("src", "tgt"), ("from", "to"), ("head", "tail"),
    ("start", "end"), ("u", "v"), ("a", "b"), ("x", "y"), ("i", "j"), ("row", "col"), ("1", "2"),
    ("0", "1"), ("left", "right"), ("first", "second"), ("subject", "object"), ("user", "friend"),
    ("person", "friend"), ("author", "coauthor"), ("protein", "partner"), ("page", "link"),
    ("one", "two"), ("one", "2"), ("one", "other"),
)  # fmt: skip
# The same where (u, v) and (v, u) are two statements.
DIRECTED_ENDS = (
    ("citing", "cited"), ("follower", "followee"), ("follower", "followed"),
    ("follower", "following"), ("sender", "receiver"), ("sender", "recipient"),
    ("payer", "payee"), ("buyer", "seller"), ("debtor", "creditor"), ("caller", "callee"),
    ("caller", "called"), ("parent", "child"), ("referrer", "referred"), ("linking", "linked"),
    ("truster", "trustee"), ("trustor", "trustee"), ("rater", "rated"), ("voter", "votee"),
    ("predecessor", "successor"), ("replier", "replied"), ("manager", "employee"),
    ("origin", "destination"),
)  # fmt: skip
# Two kinds of node, those that lists are made for first.
KINDS = (
    ("user", "item"), ("customer", "product"), ("customer", "item"), ("user", "product"),
    ("user", "artist"), ("user", "movie"), ("user", "film"), ("user", "book"), ("user", "song"),
    ("user", "track"), ("user", "business"), ("user", "group"), ("user", "page"),
    ("user", "article"), ("user", "ad"), ("author", "paper"), ("author", "book"),
    ("author", "article"), ("actor", "movie"), ("actor", "film"), ("drug", "target"),
    ("drug", "disease"), ("drug", "protein"), ("gene", "disease"), ("disease", "gene"),
    ("host", "virus"), ("student", "course"), ("patient", "disease"), ("query", "document"),
    ("document", "word"), ("reader", "book"), ("viewer", "movie"), ("session", "item"),
    ("basket", "item"), ("order", "product"), ("account", "merchant"), ("investor", "company"),
    ("person", "company"), ("candidate", "job"), ("listener", "artist"), ("buyer", "item"),
    ("member", "group"), ("reviewer", "product"), ("playlist", "track"), ("plant", "pollinator"),
)  # fmt: skip
# Words that say nothing of which end a column holds.
FILLERS = frozenset({"id", "ids", "node", "idx", "index", "key", "uid", "uuid", "no", "nr", "code"})
TIMES = frozenset({
    "time", "timestamp", "date", "datetime", "ts", "t", "when", "day", "year", "month",
    "created", "created_at", "at", "modified", "updated", "unixtime", "epoch", "added",
    "published",
})  # fmt: skip
WEIGHTS = frozenset({
    "weight", "weights", "w", "count", "counts", "cnt", "n", "num", "number", "strength",
    "plays", "clicks", "views", "amount", "quantity", "qty", "freq", "frequency", "times",
    "rating", "ratings", "stars", "value", "score", "confidence", "probability", "similarity",
    "listens", "visits", "messages", "calls", "transactions", "total",
})  # fmt: skip
LABELS = frozenset({
    "label", "labels", "class", "y", "category", "split", "fold", "part", "set",
})  # fmt: skip
NODE_IDS = frozenset({
    "id", "ids", "node", "key", "index", "idx", "uid", "uuid", "name", "code",
})  # fmt: skip


def words_of(column: str) -> tuple[str, ...]:
    """The words of a name: ``sourceNodeId`` and ``SOURCE_NODE_ID`` are source, node, id."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column)
    apart = re.sub(r"(?<=[A-Za-z])(?=[0-9])", "_", apart).lower()
    return tuple(word for word in re.split(r"[^0-9a-zà-ÿ]+", apart) if word)


def bare_words(column: str) -> tuple[str, ...]:
    """The words that say what a column holds; ``user_id`` is user."""
    words = words_of(column)
    return tuple(_singular(word) for word in words if word not in FILLERS) or words


def pair_words(first: str, second: str) -> tuple[str, str]:
    """What tells two names apart: ``source_paper`` and ``target_paper`` are source and target."""
    one, other = bare_words(first), bare_words(second)
    shared = set(one) & set(other)
    rest = ["_".join(word for word in words if word not in shared) for words in (one, other)]
    return rest[0] or "one", rest[1] or "other"


def has_word(column: str, known: frozenset[str]) -> bool:
    """Whether a name is one of some words, or ends in one."""
    words = words_of(column)
    return bool(words) and ("_".join(words) in known or words[-1] in known or words[0] in known)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
