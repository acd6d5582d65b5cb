"""Readable files whose columns do not hold what they should."""

from __future__ import annotations

import datetime

import polars as pl
import pyarrow as pa

from tests.faults.bad_inputs.changed_tables import (
    candidate_column,
    column_twice,
    edge_column,
    features,
    ids_as,
    node_column,
    times,
    with_first,
    without_column,
)
from tests.faults.bad_inputs.kind import ACCEPTED, REFUSED, Group, Make

tables = Group("tables", command="peg run CONFIG", says=r"edges\.parquet", stage="ingest")
INTEGERS = pa.list_(pa.int64())
NAN, INFINITY = float("nan"), float("inf")
src, dst, weight = pl.col("src"), pl.col("dst"), pl.col("weight")

EDGES: dict[str, Make] = {
    "no source column": without_column("edges", "src"),
    "no weight column": without_column("edges", "weight", weight="weight"),
    "no time column": without_column("edges", "time", time="time"),
    "two columns of one name": column_twice("edges", "src"),
    "ids of type float": edge_column("src", src + 0.5),
    "ids of type boolean": edge_column("src", src > 5),
    "ids of type date": edge_column("src", pl.lit(datetime.date(2020, 1, 1))),
    "ids of type list": edge_column("src", pl.concat_list("src", "dst")),
    "ids of type struct": edge_column("src", pl.struct("src", "dst")),
    "ids of type decimal": edge_column("src", src.cast(pl.Decimal(10, 2))),
    "ids all null": edge_column("src", pl.lit(None)),
    "one id null": edge_column("src", with_first("src", None)),
    "source integer, target string": edge_column("dst", dst.cast(pl.String)),
    "weights of type string": edge_column("weight", pl.lit("heavy"), weight="weight"),
    "weights of type date": edge_column(
        "weight", pl.lit(datetime.date(2020, 1, 1)), weight="weight"
    ),
    "weights of type list": edge_column("weight", pl.concat_list("weight"), weight="weight"),
    "a weight null": edge_column("weight", with_first("weight", None), weight="weight"),
    "a weight NaN": edge_column("weight", with_first("weight", NAN), weight="weight"),
    "a weight infinite": edge_column("weight", with_first("weight", INFINITY), weight="weight"),
    "a weight negative": edge_column("weight", -weight, weight="weight"),
    "a weight zero": edge_column("weight", with_first("weight", 0.0), weight="weight"),
    "times of type string": times(pl.lit("yesterday")),
    "times of type float": times(pl.col("time") + 0.5),
    "times of type boolean": times(src > 5),
    "times all null": times(pl.lit(None)),
    "one time null": times(with_first("time", None)),
}
for name, make in EDGES.items():
    tables.add(name, make, REFUSED)

NODES: dict[str, Make] = {
    "no id column of nodes": without_column("nodes", "id"),
    "no feature column": without_column("nodes", "x"),
    "no label column": features([[1.0, 2.0]], label="y"),
    "two feature columns of one name": column_twice("nodes", "x"),
    "ids of nodes of type string": ids_as(lambda ids: ids.cast(pl.String), tables="nodes"),
    "ids of nodes of type float": ids_as(lambda ids: ids + 0.5, tables="nodes"),
    "a node id null": node_column("id", with_first("id", None)),
    "a node listed twice": node_column("id", with_first("id", 7)),
    "features of type string": features(["red", "green"]),
    "features of type date": features([datetime.date(2020, 1, 1)]),
    "features as lists of strings": features([["red"], ["green"]]),
    "features as lists of lists": features([[[1.0]], [[2.0]]]),
    "features of unequal width": features([[1.0, 2.0], [1.0, 2.0, 3.0]]),
    "features of no width": features([[]], pa.list_(pa.float32())),
    "a feature null": features([[1.0, None], [1.0, 2.0]]),
    "a row of features null": features([None, [1.0, 2.0]]),
    "a feature NaN": features([[NAN, 1.0], [1.0, 2.0]]),
    "a feature infinite": features([[INFINITY, 1.0], [1.0, 2.0]]),
    "a feature index of 2^40": features([[2**40], [1]], INTEGERS),
    "a negative feature index": features([[-1], [1]], INTEGERS),
    "a feature index above the width": features([[9], [1]], INTEGERS, feature_width=4),
    "a feature index null": features([[None, 1], [1]], INTEGERS),
}
for name, make in NODES.items():
    tables.add(name, make, REFUSED, says=r"nodes\.parquet")

CANDIDATES: dict[str, Make] = {
    "no target among candidates": without_column("candidates", "dst"),
    "two candidate columns of one name": column_twice("candidates", "src"),
    "candidates with a score": candidate_column("score", pl.lit(0.5)),
    "candidates with a reason": candidate_column("reason", pl.lit("why")),
    "candidate ids of type string": ids_as(lambda ids: ids.cast(pl.String), tables="candidates"),
    "candidate ids of type float": ids_as(lambda ids: ids + 0.5, tables="candidates"),
    "unknown ids that must be known": candidate_column(
        "src", with_first("src", 10**9), on_unknown="error"
    ),
}
for name, make in CANDIDATES.items():
    tables.add(name, make, REFUSED, says=r"candidates\.parquet", stage="score")

# Unusual and fine; no word is needed.
FINE: dict[str, Make] = {
    "ids of 32 bits": ids_as(lambda ids: ids.cast(pl.Int32)),
    "ids without sign": ids_as(lambda ids: ids.cast(pl.UInt16)),
    "ids below zero": ids_as(lambda ids: ids - 30),
    "ids near the largest integer": ids_as(lambda ids: ids + (2**63 - 100)),
    "ids as strings": ids_as(lambda ids: pl.format("node {}", ids)),
    "ids as categories": ids_as(lambda ids: ids.cast(pl.String).cast(pl.Categorical)),
    "ids as bytes": ids_as(lambda ids: ids.cast(pl.String).cast(pl.Binary)),
    "ids with a zero byte": ids_as(lambda ids: pl.format("a\0{}", ids)),
    "ids with all of Unicode": ids_as(lambda ids: pl.format("ä✓\U0001f600\n{}", ids)),
    "ids of a hundred thousand letters": ids_as(lambda ids: pl.format("a" * 100_000 + "{}", ids)),
    "an empty string as id": ids_as(
        lambda ids: pl.when(ids == 0).then(pl.lit("")).otherwise(ids.cast(pl.String))
    ),
    "weights as integers": edge_column("weight", pl.lit(2), weight="weight"),
    "times of type date": times(pl.lit(datetime.date(2020, 1, 1)) + pl.duration(days="time")),
    "features as single numbers": features([1.5, 2.5, 3.5]),
    "candidates with other columns": candidate_column("note", pl.lit("\0" * 100)),
}
for name, make in FINE.items():
    tables.add(name, make, ACCEPTED, says="")

tables.add(
    "ids above the largest integer",
    ids_as(lambda ids: ids.cast(pl.UInt64) + pl.lit(2**63, pl.UInt64)),
    REFUSED,
    ACCEPTED,
    warns=False,
)
tables.add(
    "candidates without rows",
    lambda place: pl.read_parquet(place.candidates).clear().write_parquet(place.candidates),
    ACCEPTED,
    REFUSED,
    says=r"candidates\.parquet|pairs 0",
    stage="score",
)
tables.add(
    "candidates with a null id",
    candidate_column("src", with_first("src", None)),
    ACCEPTED,
    says="null ids 1",
)
tables.add(
    "candidates with an unknown id",
    candidate_column("src", with_first("src", 10**9)),
    ACCEPTED,
    says="unknown 1",
)
tables.add(
    "bad rows that may be dropped",
    edge_column("src", with_first("src", None), on_bad_rows="drop"),
    ACCEPTED,
    says="ingest .*null ids 1",
)
