import os
import subprocess
import sys
import threading
import time

from peg_core.storage.node_cache import NodeCache, cache_folder, cache_limit

HOLD = """
import sys, time
from pathlib import Path
from peg_core.storage.node_cache import NodeCache
with NodeCache(Path(sys.argv[1]), 100).filling("a/b", "data"):
    print("filling", flush=True)
    time.sleep(60)
"""


def fill(cache, name, size):
    with cache.filling(name, "data"):
        file = cache.path(name) / "data"
        if not file.exists():
            file.parent.mkdir(parents=True)
            file.write_bytes(b"x" * size)
            return 1
    return 0


def test_processes_that_want_the_same_file_fill_it_once(tmp_path):
    fills = []
    threads = [
        threading.Thread(target=lambda: fills.append(fill(NodeCache(tmp_path, 100), "a/b", 3)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(fills) == [0, 0, 0, 1]


def test_a_killed_process_leaves_no_lock(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "filling\n"
    process.kill()
    process.wait()
    assert fill(NodeCache(tmp_path, 100), "a/b", 3) == 1


def test_the_entry_used_longest_ago_goes_first_and_used_ones_stay(tmp_path):
    past = NodeCache(tmp_path, 100)
    for age, name in ((30, "s/old"), (20, "s/mid"), (10, "s/new")):
        fill(past, name, 40)
        moment = time.time() - age
        os.utime(tmp_path / "locks" / f"{name.replace('/', '%')}.use", (moment, moment))
    assert past.evict() == []  # it uses all of them
    past.close()
    assert NodeCache(tmp_path, 100).evict() == ["s/old"]
    user = NodeCache(tmp_path, 40)
    user.use("s/mid")
    assert NodeCache(tmp_path, 40).evict() == ["s/new"]
    assert (user.path("s/mid") / "data").exists()


def test_place_and_limit_come_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("PEG_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PEG_CACHE_BYTES", "7")
    assert (cache_folder(), cache_limit()) == (tmp_path, 7)
    monkeypatch.delenv("PEG_CACHE_BYTES")
    assert cache_limit() == 50 * 10**9
