"""The documents of the repository: links that lead somewhere, decisions numbered in order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DECISIONS = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def links_of(document: Path) -> list[str]:
    """Targets of the document's links to places in the repository, code blocks left out."""
    targets = LINK.findall(CODE_BLOCK.sub("", document.read_text()))
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def anchors_of(document: Path) -> set[str]:
    """What a link may name after ``#``: the headings, as GitHub spells them."""
    headings = re.findall(r"^#+ (.+)$", CODE_BLOCK.sub("", document.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


def name_in_repository(document: Path) -> str:
    return str(document.relative_to(ROOT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_in_repository)
def test_every_link_leads_to_a_file_and_a_heading(document):
    broken = []
    for target in links_of(document):
        path, _, anchor = target.partition("#")
        file = document.parent / path if path else document
        if not file.exists() or (anchor and anchor not in anchors_of(file)):
            broken.append(target)
    assert not broken


def test_decisions_are_numbered_without_holes():
    numbers = [path.name[:4] for path in DECISIONS]
    assert numbers == [f"{number:04}" for number in range(1, len(DECISIONS) + 1)]


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_is_headed_by_its_number(decision):
    assert decision.read_text().startswith(f"# {decision.name[:4]}: ")


def test_the_index_lists_every_decision_in_order():
    index = links_of(ROOT / "docs/decisions/README.md")
    assert [link for link in index if link[0].isdigit()] == [path.name for path in DECISIONS]


@pytest.mark.parametrize("package", ["peg_core", "pipeline", "workers"])
def test_decisions_named_in_sources_exist(package):
    named = {
        name
        for path in (ROOT / package).rglob("*.py")
        for name in re.findall(r"docs/decisions/[\w-]+\.md", path.read_text())
    }
    assert {name for name in named if not (ROOT / name).exists()} == set()
