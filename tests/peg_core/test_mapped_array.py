import subprocess
import sys

import numpy as np
import pytest

from peg_core.mapped_array import new_mapped_array


@pytest.mark.parametrize("shape", [(5, 3), (0,), (7,)])
def test_what_is_written_is_there(tmp_path, shape):
    array = new_mapped_array(tmp_path / "a.npy", shape, np.int32)
    assert not array.any()
    array[:] = 3
    array.flush()
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.full(shape, 3, np.int32))


def test_without_room_there_is_an_error_and_no_file(tmp_path):
    """The limit on the size of a file stands for a full disk; in a process of its own."""
    script = """
import resource, sys
from pathlib import Path
from peg_core.errors import DiskFull
from peg_core.mapped_array import new_mapped_array
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    new_mapped_array(Path(sys.argv[1]), (10_000_000,), "float64")
except DiskFull as error:
    print(error)
"""
    file = tmp_path / "a.npy"
    done = subprocess.run(
        [sys.executable, "-c", script, str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"cannot set aside 80.0 MB for {file}: File too large; free some" in done.stdout
    assert not file.exists()
