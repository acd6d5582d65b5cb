"""``peg generate bipartite``: users and items."""

from __future__ import annotations

from pathlib import Path

import click

from peg_core.generators.edge_generator import check_seed
from peg_core.generators.taste_graph import TasteGraph
from pipeline.cli.generate.paired_options import both_given
from pipeline.cli.generate.shared_options import (
    Target,
    path_option,
    rows_option,
    write_and_tell,
    writes_to,
)
from pipeline.generate.generated_files import GeneratedFile
from pipeline.generate.relational_tables import friend_batches, play_batches, user_item_batches


@click.command()
@click.option("--users", type=int, required=True, help="Number of users.")
@click.option("--items", type=int, required=True, help="Number of items.")
@click.option("--edges", type=int, required=True, help="Different pairs of a user and an item.")
@click.option("--tastes", type=int, default=20, show_default=True, help="Communities of taste.")
@click.option(
    "--inside-share",
    type=float,
    default=0.8,
    show_default=True,
    help="Share of the draws with an item of the user's taste; others are of any.",
)
@click.option(
    "--popularity-skew",
    type=float,
    default=0.8,
    show_default=True,
    help="0: all items alike; 2: a few have nearly all edges.",
)
@writes_to("user, item and plays")
@rows_option("--friends", "Also write this many friendships, mostly within a taste.")
@path_option("--friends-out", "user and friend")
@rows_option("--candidates", "Also write this many different random pairs to score.")
@path_option("--candidates-out", "user and item")
def bipartite(
    users: int,
    items: int,
    edges: int,
    tastes: int,
    inside_share: float,
    popularity_skew: float,
    target: Target,
    friends: int | None,
    friends_out: Path | None,
    candidates: int | None,
    candidates_out: Path | None,
) -> None:
    """Users and items: links lead from one kind of node to the other.

    Both kinds count from 0, so user 7 and item 7 are two nodes. Items of a user's taste, and
    popular ones, are played more. No pair is drawn twice.

    \b
    With friendships between the users and pairs to score:
      peg generate bipartite --users 1_000 --items 600 --edges 15_000 --out data/plays.parquet \\
          --friends 4_000 --friends-out data/friends.parquet \\
          --candidates 5_000 --candidates-out data/candidates.parquet
    """
    graph = TasteGraph(users, items, edges, tastes, inside_share, popularity_skew)
    graph.check()
    seed = target.seed
    check_seed(seed)
    files = [GeneratedFile(target.out, edges, "edges", play_batches(graph, seed=seed))]
    wanted = both_given("--friends", friends, "--friends-out", friends_out)
    if wanted:
        rows, path = wanted
        graph.check_friendships(rows)
        batches = friend_batches(graph, rows=rows, seed=seed)
        files.append(GeneratedFile(path, rows, "friendships", batches))
    wanted = both_given("--candidates", candidates, "--candidates-out", candidates_out)
    if wanted:
        rows, path = wanted
        graph.check_candidates(rows)
        batches = user_item_batches(graph, rows=rows, seed=seed)
        files.append(GeneratedFile(path, rows, "candidates", batches))
    write_and_tell(files, overwrite=target.overwrite)
