import os
import subprocess
import sys
import threading
import time

import pytest

from workers.node_cache import NodeCache, cache_folder, cache_limit

FETCH = """
import sys, time
from pathlib import Path
from workers.node_cache import NodeCache
def fill(folder):
    (folder / "half").touch()
    print("filling", flush=True)
    time.sleep(60)
NodeCache(Path(sys.argv[1]), 100).fetch("a/b", fill, is_whole=lambda folder: folder.exists())
"""


def exists(folder):
    return (folder / "data").exists()


def filler(size):
    return lambda folder: (folder / "data").write_bytes(b"x" * size) and None


def test_processes_that_want_the_same_entry_fetch_it_once(tmp_path):
    fills = []

    def fill(folder):
        fills.append(folder)
        time.sleep(0.2)
        (folder / "data").touch()

    def fetch():
        NodeCache(tmp_path, 100).fetch("a/b", fill, is_whole=exists)

    threads = [threading.Thread(target=fetch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fills) == 1
    assert exists(tmp_path / "entries" / "a" / "b")


def test_a_killed_fetch_leaves_neither_a_lock_nor_half_an_entry(tmp_path):
    command = [sys.executable, "-c", FETCH, str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "filling\n"
    process.kill()
    process.wait()
    cache = NodeCache(tmp_path, 100)
    assert not cache.path("a/b").exists()
    folder = cache.fetch("a/b", filler(3), is_whole=exists)
    assert [path.name for path in folder.iterdir()] == ["data"]


def test_a_failing_fetch_leaves_nothing_under_the_name(tmp_path):
    def fill(folder):
        (folder / "data").touch()
        raise OSError("gone")

    cache = NodeCache(tmp_path, 100)
    with pytest.raises(OSError, match="gone"):
        cache.fetch("a", fill, is_whole=exists)
    assert not cache.path("a").exists()


def test_the_entry_used_longest_ago_goes_first_and_used_ones_stay(tmp_path):
    past = NodeCache(tmp_path, 100)
    for age, name in ((30, "s/old"), (20, "s/mid"), (10, "s/new")):
        past.fetch(name, filler(40), is_whole=exists)
        moment = time.time() - age
        os.utime(tmp_path / "locks" / f"{name.replace('/', '%')}.use", (moment, moment))
    assert past.evict() == []  # it uses all of them
    past.close()
    assert NodeCache(tmp_path, 100).evict() == ["s/old"]
    user = NodeCache(tmp_path, 40)
    user.use("s/mid")
    assert NodeCache(tmp_path, 40).evict() == ["s/new"]
    assert exists(user.path("s/mid"))


def test_place_and_limit_come_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("PEG_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PEG_CACHE_BYTES", "7")
    assert (cache_folder(), cache_limit()) == (tmp_path, 7)
    monkeypatch.delenv("PEG_CACHE_BYTES")
    assert cache_limit() == 50 * 10**9
