"""What a run computed, to be compared byte for byte, and what it left behind in its store."""

from __future__ import annotations

import json
from pathlib import Path

MANIFEST = "manifest.json"
# Timings and memory differ from run to run; the report shows them.
NOT_COMPARED = {MANIFEST, "report.html", "progress.json", "attempt.json"}
NOT_STAGES = {"current", "history", "lease", "logs"}


def read_results(store: Path) -> dict[str, bytes]:
    """Every file of every current artifact: scores, metrics, weights and the rest."""
    found = {}
    for stage, folder in current_artifacts(store).items():
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name not in NOT_COMPARED and path.suffix != ".tmp":
                found[f"{stage}/{path.relative_to(folder)}"] = _content(path)
    return found


def _content(path: Path) -> bytes:
    """The bytes; of the mark of a shard without memory and checksums."""
    data = path.read_bytes()
    if path.parent.name != "done":
        return data
    marker = json.loads(data)
    left_out = ("peak_memory_bytes", "files")
    kept = {key: value for key, value in marker.items() if key not in left_out}
    return json.dumps(kept).encode()


def current_artifacts(store: Path) -> dict[str, Path]:
    """The folder of each stage's artifact, by links or, in an object store, by a list."""
    listed = store / "current.json"
    if listed.exists():
        return {
            stage: store / stage / name for stage, name in json.loads(listed.read_text()).items()
        }
    links = sorted((store / "current").glob("[!.]*"))
    return {link.name: link.resolve() for link in links}


def differences(expected: dict[str, bytes], found: dict[str, bytes]) -> list[str]:
    """Names of the files that are missing, additional or not the same."""
    names = expected.keys() | found.keys()
    return sorted(name for name in names if expected.get(name) != found.get(name))


def _is_given_back(path: Path) -> bool:
    """In an object store a lease is not removed, but marked as free."""
    return path.parent.name == "lease" and not json.loads(path.read_text()).get("held", True)


def store_leftovers(store: Path) -> list[str]:
    """What must not be in a store after a run that succeeded."""
    leases = [*store.glob("lease.json"), *store.glob("lease/*")]
    found = [f"lease {path.name}" for path in leases if not _is_given_back(path)]
    for path in store.rglob(".*"):
        found.append(f"temporary file {path.relative_to(store)}")
    for folder in store.glob("*/*/"):
        if folder.parent.name not in NOT_STAGES and not (folder / MANIFEST).exists():
            found.append(f"unfinished artifact {folder.relative_to(store)}")
    for stage, folder in current_artifacts(store).items():
        if not (folder / MANIFEST).exists():
            found.append(f"current {stage} leads to no artifact")
    return sorted(found)
