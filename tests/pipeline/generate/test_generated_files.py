"""Files that are written together, or not at all."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pipeline.generate.generated_files
from peg_core.errors import ConfigError, PegError
from pipeline.generate.generated_files import GeneratedFile, write_files


def numbers(path, *, batches=3, rows=10):
    """A file that holds 0, 1, 2, ..."""
    return GeneratedFile(
        path,
        batches * rows,
        "numbers",
        (
            pa.RecordBatch.from_pydict({"n": list(range(index * rows, (index + 1) * rows))})
            for index in range(batches)
        ),
    )


def breaking_off(path):
    def batches():
        yield from numbers(path, batches=1).batches
        raise RuntimeError("out of luck")

    return GeneratedFile(path, 20, "numbers", batches())


def files_under(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("batches", [1, 2, 5])
def test_batches_are_written_in_order_as_row_groups(batches, tmp_path):
    write_files([numbers(tmp_path / "new" / "n", batches=batches)], overwrite=False)
    assert pl.read_parquet(tmp_path / "new" / "n")["n"].to_list() == list(range(10 * batches))
    assert pq.read_metadata(tmp_path / "new" / "n").num_row_groups == batches
    assert files_under(tmp_path) == ["n"]


def test_files_are_compressed_with_zstd(tmp_path):
    write_files([numbers(tmp_path / "n")], overwrite=False)
    assert pq.read_metadata(tmp_path / "n").row_group(0).column(0).compression == "ZSTD"


def test_existing_file_is_refused_and_left_alone(tmp_path):
    (tmp_path / "old").write_text("precious")
    with pytest.raises(ConfigError, match=r"old already exists; .*--overwrite"):
        write_files([numbers(tmp_path / "new"), numbers(tmp_path / "old")], overwrite=False)
    assert (tmp_path / "old").read_text() == "precious"
    assert files_under(tmp_path) == ["old"]


def test_existing_file_is_replaced_when_asked(tmp_path):
    (tmp_path / "n").write_text("old")
    write_files([numbers(tmp_path / "n")], overwrite=True)
    assert len(pl.read_parquet(tmp_path / "n")) == 30
    assert files_under(tmp_path) == ["n"]


def test_one_failing_file_leaves_none_and_keeps_what_was_there(tmp_path):
    (tmp_path / "first").write_text("precious")
    with pytest.raises(RuntimeError, match="out of luck"):
        write_files(
            [numbers(tmp_path / "first"), breaking_off(tmp_path / "second")], overwrite=True
        )
    assert (tmp_path / "first").read_text() == "precious"
    assert files_under(tmp_path) == ["first"]


def test_full_disk_is_explained_and_leaves_no_file(tmp_path, monkeypatch):
    def fail(writer, batch):
        raise OSError("No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_batch", fail)
    with pytest.raises(PegError, match=r"cannot write .*/n: No space .* free some"):
        write_files([numbers(tmp_path / "n")], overwrite=False)
    assert files_under(tmp_path) == []


def test_folder_that_cannot_be_created_is_explained_before_anything_is_written(tmp_path):
    (tmp_path / "data").write_text("a file, not a folder")
    first = numbers(tmp_path / "first")
    with pytest.raises(PegError, match=r"cannot create .*/data: .*; choose another folder"):
        write_files([first, numbers(tmp_path / "data" / "second")], overwrite=False)
    assert next(first.batches)["n"].to_pylist() == list(range(10))
    assert files_under(tmp_path) == ["data"]


def test_one_path_for_two_files_is_refused(tmp_path):
    same = tmp_path / "folder" / ".." / "n"
    with pytest.raises(ConfigError, match="n was given for two outputs; give each its own file"):
        write_files([numbers(tmp_path / "n"), numbers(same)], overwrite=True)


def test_folder_in_place_of_a_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="is a folder; add a file name"):
        write_files([numbers(tmp_path)], overwrite=True)


@pytest.mark.parametrize(("large_rows", "tenths"), [(300, 10), (301, 0)])
def test_progress_of_large_files_goes_to_stderr_in_tenths(
    large_rows, tenths, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(pipeline.generate.generated_files, "LARGE_FILE_ROWS", large_rows)
    write_files([numbers(tmp_path / "n", batches=30)], overwrite=False)
    shown = capsys.readouterr()
    assert shown.err.splitlines() == [
        f"numbers: {30 * tenth} of 300 written" for tenth in range(1, tenths + 1)
    ]
    assert shown.out == ""
