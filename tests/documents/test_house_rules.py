"""What keeps the rooms small and each thing in one place (docs/architecture.md)."""

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = {
    file.relative_to(ROOT): file.read_text()
    for package in ("peg_core", "pipeline", "workers")
    for file in sorted((ROOT / package).rglob("*.py"))
}


def holding(pattern):
    """The source files in which a pattern is found."""
    return [str(path) for path, text in SOURCES.items() if re.search(pattern, text)]


def test_files_are_short():
    long = {str(path): text.count("\n") for path, text in SOURCES.items()}
    assert {path: lines for path, lines in long.items() if lines > 300} == {}


def test_folders_are_small():
    files = Counter(str(path.parent) for path in SOURCES)
    assert {folder: count for folder, count in files.items() if count > 20} == {}
    assert files["pipeline"] <= 4
    assert files["workers"] <= 8


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        (r'"train_graph"', ["peg_core/splits/split_store.py"]),
        (r"\bManifest\(", ["peg_core/artifacts/manifest.py", "pipeline/run/stage_runner.py"]),
        (r'inputs\["', []),
        (r'"layer-.*\.npy"', ["peg_core/artifacts/embedded_graph.py"]),
    ],
)
def test_a_thing_is_named_in_one_place(pattern, files):
    assert [path for path in holding(pattern) if not path.endswith(tuple(files) or ("\0",))] == []


def test_stages_hand_over_references_not_paths():
    assert [path for path in holding(r"\.absolute\(\)") if path.startswith("pipeline/stages")] == []


def test_memory_is_counted_in_few_places():
    assert len(holding("peak_memory_bytes")) <= 5


def test_decisions_are_numbered_without_holes_and_in_the_index():
    folder = ROOT / "docs/decisions"
    index = (folder / "README.md").read_text()
    names = sorted(path.name for path in folder.glob("0*.md"))
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))
    assert [name for name in names if f"({name})" not in index] == []
