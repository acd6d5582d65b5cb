"""Pipeline files that cannot be meant."""

from __future__ import annotations

from typing import Any

import yaml

from tests.faults.bad_inputs.graphs import change_settings
from tests.faults.bad_inputs.kind import ACCEPTED, REFUSED, Group, Make
from tests.faults.bad_inputs.place import Place

configurations = Group("configurations", command="peg plan CONFIG", says=r"tiny\.yaml")


def line(key: str, text: str) -> Make:
    """A key has this text as its value, as a user would type it."""

    def make(place: Place) -> None:
        section, _, name = key.rpartition(".")
        marker = "VALUE-TO-REPLACE"
        if section:
            change_settings(place, {section: {name: marker}})
        else:
            place.settings[name] = marker
        whole = yaml.safe_dump(place.settings, sort_keys=False)
        place.config_bytes = whole.replace(marker, text).encode()

    return make


def content(data: bytes) -> Make:
    """The file holds this and nothing else."""

    def make(place: Place) -> None:
        place.config_bytes = data

    return make


def added(text: bytes) -> Make:
    """The file ends with this."""

    def make(place: Place) -> None:
        place.config_bytes = yaml.safe_dump(place.settings, sort_keys=False).encode() + text

    return make


# The key, and what is typed behind it.
VALUES = {
    "an unknown key": ("train.epoch", "5"),
    "a number that is a word": ("train.epochs", "many"),
    "a number in quotes": ("train.epochs", "'5'"),
    "a time of day for a number": ("train.epochs", "1:30"),
    "a fraction of an epoch": ("train.epochs", "1.5"),
    "epochs below zero": ("train.epochs", "-1"),
    "a learning rate of NaN": ("train.lr", ".nan"),
    "an infinite learning rate": ("train.lr", ".inf"),
    "a learning rate of zero": ("train.lr", "0"),
    "yes for a number": ("train.epochs", "yes"),
    "a list for a number": ("train.epochs", "[5]"),
    "a number for a section": ("train", "5"),
    "a list for a section": ("train", "[epochs]"),
    "an unknown model": ("model.kind", "transformer"),
    "an unknown encoding": ("encodings", "[spectral]"),
    "no encoding at all": ("encodings", "[]"),
    "an unknown parameter of an encoding": ("encodings", "[{kind: le, dimension: 4}]"),
    "encodings of no dimensions": ("encodings", "[{kind: le, dimensions: 0}]"),
    "shares that leave nothing to train on": ("split.test", "0.95"),
    "a share above one": ("split.valid", "5"),
    "a split by time without a time": ("split.by", "time"),
    "no folds": ("split.folds", "0"),
    "a million folds": ("split.folds", "1000000"),
    "an unknown metric": ("train.metric", "accuracy"),
    "hits at zero": ("evaluate.hits", "[0]"),
    "an unknown protocol": ("evaluate.protocol", "strict"),
    "memory that is no size": ("cluster.task_memory", "lots"),
    "no workers": ("cluster.workers", "0"),
    "an empty name": ("name", "''"),
    "a name that leaves the folder": ("name", "../../etc"),
    "a store in hdfs": ("store", "hdfs://host/store"),
    "a store on the web": ("store", "https://example.org/store"),
    "an empty store": ("store", "''"),
    "a store that is a number": ("store", "5"),
    "a store with a zero byte": ("store", '"a\\0b"'),
    "edges in an empty place": ("graph.edges", "''"),
    "edges with a zero byte": ("graph.edges", '"a\\0b.parquet"'),
    "edges in hdfs": ("graph.edges", "hdfs://host/edges.parquet"),
    "source and target the same": ("graph.target", "src"),
    "an empty column name": ("graph.source", "''"),
    "candidates in an empty place": ("score.candidates", "''"),
    "candidates of one column": ("score.target", "src"),
    "a variable that is not set": ("store", "${PEG_NO_SUCH_VARIABLE}"),
    "a seed of a hundred digits": ("split.seed", "9" * 100),
    "a seed below zero": ("split.seed", "-1"),
    "a layer of 2^62 numbers": ("model.hidden", str(2**62)),
    "epochs without end": ("train.epochs", "9" * 30),
}
for name, (key, text) in VALUES.items():
    leaf = key.rpartition(".")[2]
    configurations.add(name, line(key, text), REFUSED, says=f"{leaf}|{key.partition('.')[0]}")

BOMB = b"".join(
    b"a%d: &a%d [%s]\n" % (i, i, b",".join([b"*a%d" % (i - 1)] * 10 if i else [b"x"] * 10))
    for i in range(8)
)
CONTENTS = {
    "no bytes": b"",
    "comments alone": b"# nothing yet\n",
    "a list at the top": b"- name: tiny\n",
    "a word at the top": b"tiny\n",
    "broken YAML": b"name: [tiny\n",
    "tabs for indents": b"name: tiny\ngraph:\n\tedges: e.parquet\n",
    "not UTF-8": "name: tüny\n".encode("latin-1"),
    "UTF-16": "name: tiny\n".encode("utf-16"),
    "zero bytes": b"name: tiny\0\n",
    "a Parquet file": b"PAR1" + bytes(range(256)) + b"PAR1",
    "two documents": b"name: one\n---\nname: two\n",
    "a Python object": b"name: !!python/object/apply:os.getcwd []\n",
    "nested a thousand deep": b"name: " + b"[" * 1_000 + b"]" * 1_000,
    "nested a hundred thousand deep": b"name: " + b"[" * 100_000 + b"]" * 100_000,
    "aliases that multiply": BOMB,
    "an alias of itself": b"name: tiny\ngraph: &a\n  edges: *a\n",
    "an alias of nothing": b"name: *nothing\n",
    "a number as key": b"name: tiny\n5: five\n",
    "a list as key": b"name: tiny\n? [a, b]\n: five\n",
    "a line of ten million letters": b"name: " + b"a" * 10_000_000,
}
# These may run for very long.
ALONE = {"nested a hundred thousand deep", "aliases that multiply", "a line of ten million letters"}
for name, data in CONTENTS.items():
    configurations.add(name, content(data), REFUSED, alone=name in ALONE)

configurations.add("a key twice", added(b"name: other\n"), REFUSED, says="name")
configurations.add("a section twice", added(b"train: {epochs: 3}\n"), REFUSED, says="train")
configurations.add(
    "an alias of itself beside the rest", added(b"refresh: &a {retrain: *a}\n"), REFUSED
)


@configurations.kind(ACCEPTED, says="")
def a_mark_of_byte_order(place: Place) -> None:
    place.config_bytes = b"\xef\xbb\xbf" + yaml.safe_dump(place.settings).encode()


@configurations.kind(REFUSED)
def no_such_file(place: Place) -> None:
    place.config_bytes = None
    place.config = place.folder / "missing" / "tiny.yaml"


@configurations.kind(REFUSED)
def a_folder_instead(place: Place) -> None:
    place.config.mkdir()


@configurations.kind(REFUSED, not_as_root=True)
def no_permission_to_read(place: Place) -> None:
    place.config.write_text(yaml.safe_dump(place.settings))
    place.config.chmod(0)


@configurations.kind(REFUSED, says="store")
def a_store_that_is_a_file(place: Place) -> None:
    place.store.write_text("not a folder")


@configurations.kind(REFUSED, command="peg run CONFIG", says="store")
def a_store_below_a_file(place: Place) -> None:
    (place.folder / "file").write_text("not a folder")
    place.settings["store"] = str(place.folder / "file" / "store")


def override(text: str) -> dict[str, Any]:
    return {"command": f"peg plan CONFIG --set {text}", "says": text.partition("=")[0]}


def nothing(place: Place) -> None:
    """The damage is in the command."""


configurations.add("an override without a value", nothing, REFUSED, **override("train.epochs"))
configurations.add("an override of nothing", nothing, REFUSED, **override("train.epoch=5"))
configurations.add("an override that is broken YAML", nothing, REFUSED, **override("split.seed=["))
configurations.add("an override beyond a list", nothing, REFUSED, **override("encodings.9.kind=le"))
configurations.add(
    "an unknown stage", nothing, REFUSED, command="peg plan CONFIG --from trian", says="train"
)
