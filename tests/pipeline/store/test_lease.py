import json
import os
import subprocess
import sys
import time

import psutil
import pytest

from pipeline.store import lease as lease_module
from pipeline.store.lease import Lease, StoreBusy, is_alive, read_holder

HOLD = """
import sys, time
from pathlib import Path
from pipeline.store.lease import Lease
with Lease(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def hold_elsewhere(folder):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_run_is_told_who_holds_the_store(tmp_path):
    process = hold_elsewhere(tmp_path)
    try:
        message = rf"in use by process {process.pid} on "
        with pytest.raises(StoreBusy, match=message), Lease(tmp_path):
            pass
        assert read_holder(tmp_path / "lease.json")["pid"] == process.pid
    finally:
        process.kill()
        process.wait()


def test_the_lease_of_a_killed_process_is_taken_over_at_once(tmp_path):
    process = hold_elsewhere(tmp_path)
    process.kill()
    process.wait()
    with Lease(tmp_path):
        assert read_holder(tmp_path / "lease.json")["pid"] == os.getpid()


def test_the_lease_is_given_back(tmp_path):
    for _ in range(2):
        with Lease(tmp_path):
            pass
    assert list(tmp_path.iterdir()) == []


def test_elsewhere_the_expiry_decides(tmp_path):
    holder = {"host": "another", "pid": 1, "process_started": 0, "started": 0}
    assert is_alive({**holder, "expires": time.time() + 30})
    assert not is_alive({**holder, "expires": time.time() - 1})
    (tmp_path / "lease.json").write_text(json.dumps({**holder, "expires": time.time() - 1}))
    with Lease(tmp_path):
        pass


def test_a_process_number_that_was_given_to_another_process_does_not_count(tmp_path):
    mine = psutil.Process()
    holder = {"host": os.uname().nodename, "pid": os.getpid(), "expires": time.time() + 30}
    assert is_alive({**holder, "process_started": mine.create_time()})
    assert not is_alive({**holder, "process_started": mine.create_time() - 1000})


def test_the_lease_is_renewed_while_it_is_held(tmp_path, monkeypatch):
    monkeypatch.setattr(lease_module, "RENEW_SECONDS", 0.05)
    with Lease(tmp_path):
        first = read_holder(tmp_path / "lease.json")["expires"]
        for _ in range(100):
            time.sleep(0.05)
            if read_holder(tmp_path / "lease.json")["expires"] > first:
                return
    raise AssertionError("the lease was not renewed")


# All begin a round together, however busy the machine is: one of them at least must get the lease.
CONTEND = """
import multiprocessing, os, sys
from pathlib import Path
from pipeline.store.lease import Lease, StoreBusy
root, processes, rounds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])

def contend(begin):
    held = busy = double = 0
    for number in range(rounds):
        begin.wait(60)
        try:
            lease = Lease(root)
            with lease:
                mark = root / "holder"
                try:
                    os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    double += 1
                held += 1
                mark.unlink(missing_ok=True)
                if number % 3 == 0:  # as a killed process leaves it
                    os.close(lease._file)
                    lease._file = os.open(os.devnull, os.O_RDONLY)
                    lease._holder["token"] = "gone"
        except StoreBusy:
            busy += 1
    os.write(1, f"{held} {busy} {double}\\n".encode())  # one line, one write

context = multiprocessing.get_context("fork")
begin = context.Barrier(processes)
family = [context.Process(target=contend, args=(begin,)) for _ in range(processes)]
for member in family:
    member.start()
for member in family:
    member.join()
sys.exit(max(abs(member.exitcode) for member in family))
"""


# The long form: PEG_LEASE_ROUNDS=10000
ROUNDS = int(os.environ.get("PEG_LEASE_ROUNDS", "300"))


def test_of_many_processes_one_has_the_lease(tmp_path):
    arguments = [sys.executable, "-c", CONTEND, str(tmp_path), "6", str(ROUNDS)]
    done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0
    counts = [[int(number) for number in line.split()] for line in done.stdout.splitlines()]
    assert len(counts) == 6
    held, busy, double = (sum(column) for column in zip(*counts, strict=True))
    assert double == 0
    assert held >= ROUNDS
    assert held + busy == 6 * ROUNDS
    assert busy > 0, "the processes never met"


def test_a_holder_that_ended_and_was_not_waited_for_is_dead(tmp_path):
    process = hold_elsewhere(tmp_path)
    process.kill()
    while psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    assert not is_alive(read_holder(tmp_path / "lease.json"))
    with Lease(tmp_path):
        pass
    process.wait()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"host": 3}', "\0" * 50, '{"pid": true}'])
def test_a_lease_that_says_nothing_does_not_block(tmp_path, text):
    (tmp_path / "lease.json").write_text(text)
    assert read_holder(tmp_path / "lease.json") is None
    with Lease(tmp_path):
        assert read_holder(tmp_path / "lease.json")["pid"] == os.getpid()


def test_the_lease_of_a_machine_that_took_over_is_left_alone(tmp_path):
    with Lease(tmp_path):
        other = {"host": "another", "pid": 1, "process_started": 0, "started": 0,
                 "expires": time.time() + 30, "token": "theirs"}  # fmt: skip
        (tmp_path / "lease.json").write_text(json.dumps(other))
    assert read_holder(tmp_path / "lease.json")["token"] == "theirs"
