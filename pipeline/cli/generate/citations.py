"""``peg generate citations``: directed, dated links."""

from __future__ import annotations

from pathlib import Path

import click

from peg_core.generators.citation_graph import CitationGraph
from peg_core.generators.edge_generator import check_seed
from peg_core.generators.synthetic_tables import check_features
from pipeline.cli.generate.paired_options import both_given
from pipeline.cli.generate.shared_options import (
    Target,
    path_option,
    rows_option,
    write_and_tell,
    writes_to,
)
from pipeline.generate.generated_files import GeneratedFile
from pipeline.generate.relational_tables import (
    citation_batches,
    citation_candidate_batches,
    paper_batches,
)


@click.command()
@click.option("--papers", type=int, required=True, help="Number of papers.")
@click.option(
    "--edges", type=int, required=True, help="Different pairs of a citing and a cited paper."
)
@click.option("--topics", type=int, default=20, show_default=True, help="Number of topics.")
@click.option(
    "--inside-share",
    type=float,
    default=0.8,
    show_default=True,
    help="Share of the draws with a paper of the own topic; others are of any.",
)
@click.option(
    "--popularity-skew",
    type=float,
    default=0.5,
    show_default=True,
    help="0: all papers alike; 2: a few have nearly all citations.",
)
@writes_to("citing, cited and date")
@click.option(
    "--features", type=int, metavar="N", help="Also write a node table with N features per paper."
)
@click.option(
    "--feature-noise",
    type=float,
    default=1.0,
    show_default=True,
    help="Noise added to the signal of the topic, which has size 1.",
)
@path_option("--nodes-out", "paper, x (features), topic and date")
@rows_option(
    "--candidates",
    "Also write this many different random pairs of a paper and an older one to score.",
)
@path_option("--candidates-out", "citing and cited")
def citations(
    papers: int,
    edges: int,
    topics: int,
    inside_share: float,
    popularity_skew: float,
    target: Target,
    features: int | None,
    feature_noise: float,
    nodes_out: Path | None,
    candidates: int | None,
    candidates_out: Path | None,
) -> None:
    """Papers of ten years, 2010 to 2019: each cites older ones.

    Papers of its topic, and popular ones, are cited more. None cites a paper of the same day,
    and none cites a paper twice. The date of a link is that of the citing paper.

    \b
    With features that hint at the topic and pairs to score:
      peg generate citations --papers 2_000 --edges 16_000 --out data/citations.parquet \\
          --features 16 --nodes-out data/papers.parquet \\
          --candidates 5_000 --candidates-out data/candidates.parquet
    """
    graph = CitationGraph(papers, edges, topics, inside_share, popularity_skew)
    graph.check()
    seed = target.seed
    check_seed(seed)
    files = [GeneratedFile(target.out, edges, "edges", citation_batches(graph, seed=seed))]
    wanted = both_given("--features", features, "--nodes-out", nodes_out)
    if wanted:
        dimensions, path = wanted
        check_features(dimensions=dimensions, noise=feature_noise)
        batches = paper_batches(graph, seed=seed, features=dimensions, noise=feature_noise)
        files.append(GeneratedFile(path, papers, "papers", batches))
    wanted = both_given("--candidates", candidates, "--candidates-out", candidates_out)
    if wanted:
        rows, path = wanted
        graph.check_candidates(rows)
        batches = citation_candidate_batches(graph, rows=rows, seed=seed)
        files.append(GeneratedFile(path, rows, "candidates", batches))
    write_and_tell(files, overwrite=target.overwrite)
