import errno
import pickle

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from peg_core.errors import (
    GraphTooSmall,
    InputError,
    LeakFound,
    PegError,
    is_disk_full,
    nearest_hint,
)

EXAMPLES = [
    InputError.missing_column("edges.parquet", "srx", ["src", "dst"]),
    InputError.null_value("edges.parquet", "src", row_group=1, row=7, count=3),
    GraphTooSmall.for_encoding(needed=10, found=3),
    LeakFound.of(part="test", found_in="the training graph", count=2),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_errors_survive_pickling_with_their_message(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert isinstance(again, PegError)


def test_a_missing_column_names_the_file_the_columns_and_the_nearest():
    assert str(EXAMPLES[0]) == (
        "edges.parquet has no column 'srx'; it has 'src', 'dst'; did you mean 'src'?"
    )


def test_nothing_near_gives_no_hint():
    assert nearest_hint("zebra", ["src", "dst"]) == ""


FULL = np.zeros(1 << 14)
WRITERS = {
    "python": lambda file: file.write_bytes(bytes(FULL)),
    "numpy": FULL.tofile,
    "polars": pl.DataFrame({"x": FULL}).write_parquet,
    "arrow": lambda file: pq.write_table(pa.table({"x": FULL}), file),
}


@pytest.mark.parametrize("library", WRITERS)
def test_a_full_disk_is_known_by_what_each_library_says_of_it(library, tmp_path):
    # through a link: some libraries remove what they could not write
    file = tmp_path / "file"
    file.symlink_to("/dev/full")
    with pytest.raises(Exception) as caught:  # noqa: PT011  each raises another one
        WRITERS[library](file)
    assert is_disk_full(caught.value), caught.value


def test_other_errors_are_no_full_disk():
    assert not is_disk_full(OSError(errno.EACCES, "Permission denied"))
    assert not is_disk_full(ValueError("3 requested"))
    # of safetensors, which replaces the file and so cannot be given a device
    told = "Error while serializing: I/O error: No space left on device (os error 28)"
    assert is_disk_full(RuntimeError(told))
