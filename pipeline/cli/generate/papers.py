"""``peg generate papers``: a graph whose predictions a person can judge."""

from __future__ import annotations

from pathlib import Path

import click

from peg_core.generators.paper_graph import PaperGraph
from peg_core.generators.synthetic_tables import check_candidates
from pipeline.cli.generate.paired_options import both_given
from pipeline.cli.generate.shared_options import (
    Target,
    path_option,
    rows_option,
    write_and_tell,
    writes_to,
)
from pipeline.generate.generated_files import GeneratedFile
from pipeline.generate.paper_tables import paper_pairs, paper_rows, reference_batches


@click.command()
@click.option("--papers", type=int, required=True, help="Number of papers, at most 5,000.")
@click.option(
    "--references", type=float, default=2.6, show_default=True, help="References of a paper, mean."
)
@writes_to("src and dst, both titles")
@path_option("--nodes-out", "id (title), field, topic, year, words, x (the words as numbers)")
@rows_option("--candidates", "Also write this many different random pairs to score.")
@path_option("--candidates-out", "src and dst")
def papers(
    papers: int,
    references: float,
    target: Target,
    nodes_out: Path | None,
    candidates: int | None,
    candidates_out: Path | None,
) -> None:
    """Papers with titles: a small citation graph to read about.

    Forty topics in ten fields. A paper cites a few older ones, mostly of its topic and with words
    that it uses itself; some papers are popular, and some references are copied from a paper that
    is cited. The words of a paper hint at its topic, and some of them do not.

    \b
    The graph of `make demo`:
      peg generate papers --papers 2_400 --out data/edges.parquet --nodes-out data/nodes.parquet \\
          --candidates 300_000 --candidates-out data/candidates.parquet
    """
    graph, seed = PaperGraph(papers, references), target.seed
    drawn = graph.draw_papers(seed=seed)
    citations = graph.citations(drawn, seed=seed)
    edges = len(citations.source)
    files = [GeneratedFile(target.out, edges, "edges", reference_batches(drawn, citations))]
    if nodes_out is not None:
        files.append(GeneratedFile(nodes_out, papers, "papers", paper_rows(drawn)))
    wanted = both_given("--candidates", candidates, "--candidates-out", candidates_out)
    if wanted:
        rows, path = wanted
        check_candidates(nodes=papers, rows=rows)
        batches = paper_pairs(drawn, rows=rows, seed=seed)
        files.append(GeneratedFile(path, rows, "candidates", batches))
    write_and_tell(files, overwrite=target.overwrite)
