"""Leases, links, histories, logs and schedules of a finished store, damaged."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

from tests.faults.bad_inputs import damage
from tests.faults.bad_inputs.damage import Damage
from tests.faults.bad_inputs.kind import ACCEPTED, REFUSED, REPAIRED
from tests.faults.bad_inputs.place import Place
from tests.faults.bad_inputs.state import HISTORY, LIST, WORDS, state

BROKEN = (damage.empty, damage.cut, damage.garbage, damage.become_a_list)
SCHEDULE = {
    "name": "nightly",
    "config": "/tiny.yaml",
    "folder": "/",
    "cron": "30 2 * * *",
    "timezone": "UTC",
    "created": "2026-01-01T00:00:00Z",
}


def broken_text(file: Path, how: Damage, text: str) -> None:
    """Write a file, then damage it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    how(file)


def add_lease(how: Damage, command: str) -> None:
    held = json.dumps({"host": "elsewhere", "pid": 1, "started": 0.0, "expires": 0.0})
    state.add(
        f"lease.json {WORDS[how]}, {command}",
        lambda place: broken_text(place.store / "lease.json", how, held),
        ACCEPTED,
        REFUSED,
        command=f"peg {command} CONFIG",
        says=r"lease\.json",
        warns=False,
    )


def add_history(how: Damage) -> None:
    def make(place: Place) -> None:
        how(sorted((place.store / "history").glob("runs-*.parquet"))[0])

    state.add(f"a file of the history {WORDS[how]}", make, ACCEPTED, REFUSED, **HISTORY)


def add_schedule(how: Damage) -> None:
    def make(place: Place) -> None:
        broken_text(place.store / "schedules/nightly.json", how, json.dumps(SCHEDULE))

    state.add(f"a schedule {WORDS[how]}", make, ACCEPTED, REFUSED, **LIST)


def add_tick(how: Damage) -> None:
    def make(place: Place) -> None:
        folder = place.store / "schedules"
        folder.mkdir(exist_ok=True)
        (folder / "nightly.json").write_text(json.dumps(SCHEDULE))
        tick = json.dumps({"schedule": "nightly", "due": "20260101T000000Z"})
        broken_text(folder / "nightly/history/20260101T000000Z.json", how, tick)

    state.add(
        f"a tick of a schedule {WORDS[how]}", make, ACCEPTED, REFUSED,
        command="peg schedule history STORE", says=r"20260101T000000Z\.json",
    )  # fmt: skip


for how in BROKEN:
    add_lease(how, "run")
    add_lease(how, "status")
    add_schedule(how)
    add_tick(how)
for how in (damage.empty, damage.cut, damage.garbage, damage.become_a_folder):
    add_history(how)


@state.kind(REFUSED, says=r"lease\.json|in use")
def a_lease_of_another_machine(place: Place) -> None:
    now = time.time()
    lease = {"host": "elsewhere", "pid": 1, "process_started": now, "started": now}
    (place.store / "lease.json").write_text(json.dumps({**lease, "expires": now + 3600}))


@state.kind(ACCEPTED, REFUSED, says=r"lease\.json")
def a_lease_that_is_a_folder(place: Place) -> None:
    (place.store / "lease.json").mkdir()


@state.kind(REPAIRED, says="")
def a_link_of_current_that_leads_nowhere(place: Place) -> None:
    link = place.store / "current/score"
    link.unlink()
    link.symlink_to("../score/gone")


@state.kind(REPAIRED, REFUSED, says="current")
def a_file_where_a_link_of_current_was(place: Place) -> None:
    link = place.store / "current/score"
    link.unlink()
    link.write_text("not a link")


@state.kind(REPAIRED, REFUSED, says="current")
def a_folder_where_a_link_of_current_was(place: Place) -> None:
    link = place.store / "current/score"
    link.unlink()
    link.mkdir()


@state.kind(REPAIRED, REFUSED, says="current")
def a_file_where_current_was(place: Place) -> None:
    shutil.rmtree(place.store / "current")
    (place.store / "current").write_text("not a folder")


@state.kind(REPAIRED, REFUSED, says="score")
def a_file_where_the_folder_of_a_stage_was(place: Place) -> None:
    shutil.rmtree(place.store / "score")
    (place.store / "score").write_text("not a folder")


@state.kind(REPAIRED, REFUSED, says="score")
def a_file_where_an_artifact_was(place: Place) -> None:
    folder = place.artifact("score")
    shutil.rmtree(folder)
    folder.write_text("not a folder")


@state.kind(REPAIRED, says="not done yet|removed|missing")
def an_artifact_missing(place: Place) -> None:
    shutil.rmtree(place.artifact("score"))


@state.kind(ACCEPTED, REFUSED, says="logs")
def a_file_where_the_folder_of_logs_was(place: Place) -> None:
    shutil.rmtree(place.store / "logs")
    (place.store / "logs").write_text("not a folder")


@state.kind(ACCEPTED, REFUSED, says="history")
def a_file_where_the_folder_of_the_history_was(place: Place) -> None:
    shutil.rmtree(place.store / "history")
    (place.store / "history").write_text("not a folder")


@state.kind(ACCEPTED, says="")
def a_log_overwritten(place: Place) -> None:
    for file in (place.store / "logs").iterdir():
        damage.garbage(file)


@state.kind(ACCEPTED, says="")
def leftovers_of_a_kill(place: Place) -> None:
    (place.artifact("score") / ".part-000001.parquet.123.tmp").write_bytes(b"half")
    (place.store / ".lease.123.456").write_text("{")


@state.kind(REFUSED, says="store", not_as_root=True, command="peg run CONFIG --from score")
def a_store_without_permission_to_write(place: Place) -> None:
    place.store.chmod(0o500)


@state.kind(REFUSED, ACCEPTED, says="logs", not_as_root=True)
def logs_without_permission_to_write(place: Place) -> None:
    (place.store / "logs").chmod(0)


@state.kind(REFUSED, command="peg history STORE", says="not a store")
def a_store_that_is_gone(place: Place) -> None:
    shutil.rmtree(place.store)


@state.kind(REFUSED, command="peg schedule run-now STORE nightly", says="nightly")
def a_schedule_that_is_gone(place: Place) -> None:
    shutil.rmtree(place.store / "schedules", ignore_errors=True)


@state.kind(REFUSED, says="weights|model|recipe",
            command="peg score --model STORE/current/train --graph EDGES --nodes NODES "
            "--candidates CANDIDATES --out OUT")  # fmt: skip
def a_model_cut_off_and_another_graph(place: Place) -> None:
    damage.cut(place.artifact("train") / "seed-0/weights.safetensors")


@state.kind(REFUSED, says="out", command="peg score --run CONFIG --candidates CANDIDATES --out OUT")
def a_folder_for_scores_that_holds_something_else(place: Place) -> None:
    (place.folder / "out").mkdir()
    (place.folder / "out/thesis.txt").write_text("years of work")
