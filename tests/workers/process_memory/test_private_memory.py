import mmap
import time

import numpy as np

from workers.process_memory.private_memory import SAMPLE_SECONDS, private_bytes, watched_memory

SIZE = 64 * 2**20


def test_a_peak_that_is_gone_again_was_seen():
    before = private_bytes()
    with watched_memory() as memory:
        held = np.ones(SIZE, dtype=np.uint8)
        time.sleep(4 * SAMPLE_SECONDS)
        del held
    assert memory.peak_bytes - before > 0.9 * SIZE


def test_pages_of_a_mapped_file_do_not_count(tmp_path):
    file = tmp_path / "data"
    file.write_bytes(b"x" * SIZE)
    with file.open("rb") as opened, watched_memory() as memory:
        before = memory.peak_bytes
        mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        assert np.frombuffer(mapped, dtype=np.uint8).sum() == SIZE * ord("x")
        time.sleep(4 * SAMPLE_SECONDS)
        assert memory.peak_bytes - before < 0.5 * SIZE
