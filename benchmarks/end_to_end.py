"""A minimal configuration from edges to scores: seconds, memory, disk, and quality by size.

    python benchmarks/end_to_end.py --edges 100000,1000000
    python benchmarks/end_to_end.py --edges 1000000,10000000 --figure docs/end_to_end.svg
    python benchmarks/end_to_end.py --edges 100000000 --plan       # the estimate alone

Degree-corrected block models, ten edges drawn per node, a block per thousand nodes, and as many
random candidates as edges. The pipeline file names the edges and the candidates, nothing else. A
run is a process of its own; what it took is read from its manifests, what was expected from
`peg plan --json` just before, in a store without a history. ``--folder`` keeps what was found:
sizes that stand there are not run again, and the tables and the figure show all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from matplotlib.figure import Figure

from peg_core.artifacts.manifest import Manifest

EDGES_PER_NODE = 10
NODES_PER_BLOCK = 1_000
# A stage that was over sooner took the time of its start, whatever the size.
LEAST_SECONDS = 5.0
PEG = [sys.executable, "-m", "pipeline"]
Found = dict[str, Any]


def generate(folder: Path, edges: int) -> Path:
    """Edges, candidates and the pipeline file."""
    folder.mkdir(parents=True, exist_ok=True)
    nodes = edges // EDGES_PER_NODE
    files = {name: folder / f"{name}.parquet" for name in ("edges", "candidates")}
    if not files["candidates"].exists():
        subprocess.run(
            [*PEG, "generate", "dcsbm", "--nodes", str(nodes), "--edges", str(edges),
             "--blocks", str(max(10, nodes // NODES_PER_BLOCK)), "--out", str(files["edges"]),
             "--candidates", str(edges), "--candidates-out", str(files["candidates"]),
             "--overwrite"],
            check=True,
        )  # fmt: skip
    config = {
        "name": f"end-to-end-{edges}",
        "store": str(folder / "store"),
        "graph": {"edges": str(files["edges"])},
        "score": {"candidates": str(files["candidates"])},
    }
    file = folder / "pipeline.yaml"
    file.write_text(yaml.safe_dump(config, sort_keys=False))
    return file


def plan(config: Path) -> Found:
    """What ``peg plan`` expects, by stage."""
    printed = subprocess.run(
        [*PEG, "plan", str(config), "--json"], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    found: Found = json.loads(printed)
    return found


def run(folder: Path, edges: int) -> Found:
    """One run of a size; the store is removed, its numbers stay."""
    config = generate(folder, edges)
    shutil.rmtree(folder / "store", ignore_errors=True)
    expected = plan(config)
    load, start = os.getloadavg()[0], time.monotonic()
    with (folder / "events.jsonl").open("w") as log:
        subprocess.run([*PEG, "run", str(config), "--events"], check=True, stdout=log, stderr=log)
    seconds = time.monotonic() - start
    found = {
        "edges": edges,
        "seconds": seconds,
        "load": [load, os.getloadavg()[0]],
        "stages": {},
        "expected": {item["stage"]: item["estimate"] for item in expected["stages"]},
        "expected_total": expected["total"],
        "automatic": expected["automatic"],
    }
    for file in sorted((folder / "store").glob("*/*/manifest.json")):
        manifest = Manifest.require(file.parent)
        stage = manifest.identity.stage
        found["stages"][stage] = {
            "seconds": manifest.seconds,
            "task_memory_bytes": manifest.peak_memory_bytes,
            "disk_bytes": sum(manifest.sizes.values()),
            "finished": manifest.finished,
        }
        if stage == "evaluate":
            found["quality"] = manifest.counts
    shutil.rmtree(folder / "store")
    return found


def exponent(edges: Sequence[float], seconds: Sequence[float]) -> float | None:
    """The slope of seconds over edges on logarithmic axes; None below two long enough times."""
    points = [(e, s) for e, s in zip(edges, seconds, strict=True) if s >= LEAST_SECONDS]
    if len(points) < 2:
        return None
    return float(np.polyfit(*np.log(np.array(points)).T, 1)[0])


def stage_names(results: Sequence[Found]) -> list[str]:
    """In the order in which they ended."""
    last = results[-1]["stages"]
    return sorted(last, key=lambda name: last[name]["finished"])


def print_tables(results: Sequence[Found]) -> None:
    """As they stand in docs/performance.md."""
    for found in results:
        load = " to ".join(f"{value:.1f}" for value in found["load"])
        print(f"\n{found['edges']:,} edges, load {load}\n")
        print("| stage | seconds | expected | largest task, MB | expected | disk, MB | expected |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        rows = {name: found["stages"][name] for name in stage_names([found])}
        for name, took in rows.items():
            _print_row(name, took, found["expected"][name])
        whole = {
            "seconds": found["seconds"],
            "task_memory_bytes": max(took["task_memory_bytes"] for took in rows.values()),
            "disk_bytes": sum(took["disk_bytes"] for took in rows.values()),
        }
        _print_row("all", whole, found["expected_total"])
        print(f"\n{found['quality']}")
    sizes = [found["edges"] for found in results]
    print("\nexponents:", {
        name: value and round(value, 2)
        for name in stage_names(results)
        for value in [exponent(sizes, [r["stages"].get(name, {"seconds": 0})["seconds"]
                                       for r in results])]
    })  # fmt: skip


def _print_row(name: str, took: Found, expected: Found) -> None:
    cells = [f"{took['seconds']:.1f}", f"{expected['seconds']:.1f}"]
    for key in ("task_memory_bytes", "disk_bytes"):
        cells += [f"{took[key] / 1e6:,.0f}", f"{expected[key] / 1e6:,.0f}"]
    print(f"| {name} | {' | '.join(cells)} |")


def draw(results: Sequence[Found], file: Path) -> None:
    """Seconds over edges, a line per stage, with the exponent of each."""
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    sizes = [found["edges"] for found in results]
    names = stage_names(results)
    lines = {name: [r["stages"][name]["seconds"] for r in results] for name in names}
    lines = {"all": [found["seconds"] for found in results], **lines}
    for number, (name, seconds) in enumerate(lines.items()):
        slope = exponent(sizes, seconds)
        if max(seconds) < LEAST_SECONDS:
            continue
        label = name if slope is None else f"{name} ({slope:.2f})"
        style = "-" if number < 10 else "--"
        axes.plot(sizes, seconds, style, marker="o", markersize=4, label=label)
    axes.set(xscale="log", yscale="log", xlabel="edges", ylabel="seconds (exponent)")
    axes.grid(visible=True, which="major", alpha=0.3)
    figure.legend(loc="outside right upper", frameon=False, fontsize=9)
    figure.savefig(file, format="svg", metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edges", default="100000,1000000", help="sizes, separated by commas")
    parser.add_argument("--folder", type=Path, default=Path("data/end_to_end"))
    parser.add_argument("--figure", type=Path, help="SVG file to write")
    parser.add_argument("--plan", action="store_true", help="the estimates, nothing is run")
    options = parser.parse_args()
    for edges in map(int, options.edges.split(",")):
        folder = options.folder / str(edges)
        if options.plan:
            print(json.dumps(plan(generate(folder, edges)), indent=2))
        elif not (folder / "found.json").exists():
            found = run(folder, edges)
            (folder / "found.json").write_text(json.dumps(found, indent=2))
    if options.plan:
        return
    files = options.folder.glob("*/found.json")
    results = sorted((json.loads(file.read_text()) for file in files), key=lambda r: r["edges"])
    print_tables(results)
    if options.figure:
        draw(results, options.figure)


if __name__ == "__main__":
    main()
