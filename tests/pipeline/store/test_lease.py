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
