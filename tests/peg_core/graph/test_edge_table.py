import os
import socket

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from peg_core.errors import ConfigError, InputError
from peg_core.graph.edge_table import (
    RowGroup,
    column_chunks,
    find_id_type,
    find_parquet_files,
    list_row_groups,
    open_parquet,
    read_row_group,
    require_no_nulls,
)
from peg_core.object_url import ObjectUrl
from tests.faults.bad_inputs.encrypted_file import write_encrypted


def write(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(columns).write_parquet(path)
    return path


def test_a_file_a_folder_and_a_glob_are_found_in_order(tmp_path):
    second = write(tmp_path / "b" / "2.parquet", src=[1])
    first = write(tmp_path / "a.parquet", src=[1])
    write(tmp_path / ".hidden.parquet", src=[1])
    assert find_parquet_files(str(first)) == [str(first)]
    assert find_parquet_files(str(tmp_path)) == [str(first), str(second)]
    glob = str(tmp_path / "**" / "[a2]*.parquet")
    assert find_parquet_files(glob) == [str(first), str(second)]


def test_nothing_found_names_the_path(tmp_path):
    with pytest.raises(InputError, match=r"no Parquet file at .*/none"):
        find_parquet_files(str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("", "found an empty location, needed a path or a URL"),
        ("  ", "found an empty location"),
        ("a\0b", r"found the character U\+0000 in 'a\\x00b'"),
        ("a\nb", r"found the character U\+000A"),
        ("a\u2028b", r"found the character U\+2028"),
        ("x" * 5000, "found a location of 5,000 characters, at most 4,096"),
        ("hdfs://name/x", r"begins with 'hdfs://', known are paths and URLs with s3://, gs://"),
        ("ftp://me:secret@host/x", "copy the files there, or write ./ftp:/ for a folder"),
        ("file:///data/e.parquet", "write the path alone"),
        ("S3://bucket/x", "write s3://"),
        ("s3:/bucket/x", "write s3://"),
        ("s3://", "names no bucket"),
        ("~/edges.parquet", r"`~` is not replaced; write \$\{HOME\} instead"),
    ],
)
def test_what_cannot_be_a_location_is_refused(location, message):
    with pytest.raises(ConfigError, match=message) as caught:
        find_parquet_files(location)
    assert "secret" not in str(caught.value)


def test_a_folder_of_another_format_is_told(tmp_path):
    (tmp_path / "a.csv").write_text("src,dst\n1,2\n")
    (tmp_path / "b.CSV").write_text("src,dst\n1,2\n")
    with pytest.raises(InputError, match=r"it holds 'a\.csv' and 1 more: only \*\.parquet is read"):
        find_parquet_files(str(tmp_path))


def test_a_folder_may_end_in_parquet(tmp_path):
    part = write(tmp_path / "edges.parquet" / "part-0.parquet", src=[1])
    for place in (tmp_path, tmp_path / "edges.parquet", tmp_path / "*.parquet", tmp_path / "**"):
        assert find_parquet_files(str(place)) == [str(part)]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("pattern", ["pipe.parquet", "*.parquet", ""])
def test_a_pipe_is_refused_without_waiting(tmp_path, pattern):
    os.mkfifo(tmp_path / "pipe.parquet")
    with pytest.raises(InputError, match=r"pipe\.parquet is a named pipe, needed is a Parquet f"):
        find_parquet_files(str(tmp_path / pattern))
    with pytest.raises(InputError, match="is a named pipe"):
        open_parquet(tmp_path / "pipe.parquet")


def test_sockets_devices_and_dead_links_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s.parquet")
        with pytest.raises(InputError, match=r"s\.parquet is a socket"):
            find_parquet_files("s.parquet")
    with pytest.raises(InputError, match=r"/dev/zero is a device"):
        find_parquet_files("/dev/zero")
    os.symlink("nowhere", "dead.parquet")
    with pytest.raises(InputError, match=r"no Parquet file at dead\.parquet"):
        find_parquet_files("d*.parquet")


def test_columns_of_one_name_are_refused(tmp_path):
    ids = pa.array([1, 2])
    table = pa.Table.from_arrays([ids, ids, ids], names=["src", "dst", "src"])
    pq.write_table(table, tmp_path / "e.parquet")
    with pytest.raises(InputError, match=r"e\.parquet has 2 columns named 'src', one is needed"):
        list_row_groups([tmp_path / "e.parquet"], ["src", "dst"])


def test_a_missing_column_names_file_column_and_nearest(tmp_path):
    file = write(tmp_path / "e.parquet", source=[1], target=[2])
    with pytest.raises(InputError, match=r"e.parquet has no column 'sourc'.*mean 'source'\?"):
        list_row_groups([file], ["sourc"])


def test_a_truncated_file_is_named(tmp_path):
    file = write(tmp_path / "e.parquet", src=list(range(1000)))
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"e.parquet is not a readable Parquet file"):
        list_row_groups([file], ["src"])


def test_a_file_damaged_in_the_middle_is_named_when_read(tmp_path):
    file = tmp_path / "e.parquet"
    pq.write_table(pa.table({"src": list(range(50_000))}), file, compression="zstd")
    data = bytearray(file.read_bytes())
    data[4:4000] = b"\xff" * 3996
    file.write_bytes(data)
    (group,) = list_row_groups([file], ["src"])
    with pytest.raises(InputError, match=r"e.parquet is not a readable Parquet file"):
        read_row_group(group)


def test_empty_row_groups_are_left_out(tmp_path):
    file = write(tmp_path / "e.parquet", src=pl.Series([], dtype=pl.Int64))
    assert list_row_groups([file], ["src"]) == []


def test_row_groups_are_listed_with_their_rows(tmp_path):
    file = tmp_path / "e.parquet"
    pl.DataFrame({"src": range(250)}).write_parquet(file, row_group_size=100)
    assert [(g.index, g.rows) for g in list_row_groups([file], ["src"])] == [
        (0, 100),
        (1, 100),
        (2, 50),
    ]


@pytest.mark.parametrize("values", [[1.5, 2.5], [True, False]])
def test_ids_that_are_neither_integers_nor_strings_are_refused(tmp_path, values):
    file = write(tmp_path / "e.parquet", src=values)
    with pytest.raises(InputError, match=r"column 'src' of .* needed is an integer or string id"):
        find_id_type([(file, ["src"])])


def test_integers_in_one_file_and_strings_in_another_are_refused(tmp_path):
    files = [write(tmp_path / "a.parquet", src=[1]), write(tmp_path / "b.parquet", src=["x"])]
    with pytest.raises(InputError, match="one kind of id everywhere"):
        find_id_type([(file, ["src"]) for file in files])


def test_the_first_null_is_named_with_its_row(tmp_path):
    file = write(tmp_path / "e.parquet", src=[1, 2, None, None], dst=[1, 2, 3, 4])
    group = RowGroup(str(file), 0, 4)
    with pytest.raises(InputError, match=r"'src' of .* holds 2 null.*row 2 of row group 0"):
        require_no_nulls(read_row_group(group), group, ["dst", "src"])


def test_objects_are_found_by_name_folder_and_glob_and_read_by_row_group(object_store):
    bucket, options = object_store.new_bucket(), object_store.options()
    url = ObjectUrl.parse(f"s3://{bucket}/e{options}")
    for name in ("day=1/a.parquet", "day=2/b.parquet", "day=2/_skipped.parquet", "note.txt"):
        with url.filesystem.open_output_stream(f"{bucket}/e/{name}") as sink:
            pq.write_table(pa.table({"src": [1, 2, 3]}), sink, row_group_size=2)
    first, second = (
        f"s3://{bucket}/e/{name}{options}" for name in ("day=1/a.parquet", "day=2/b.parquet")
    )
    assert find_parquet_files(f"s3://{bucket}/e/{options}") == [first, second]
    assert find_parquet_files(f"s3://{bucket}/e/*/[ab].parquet{options}") == [first, second]
    assert find_parquet_files(f"s3://{bucket}/**/b.parquet{options}") == [second]
    groups = list_row_groups(find_parquet_files(first), ["src"])
    assert groups == [RowGroup(first, 0, 2), RowGroup(first, 1, 1)]
    assert read_row_group(groups[1])["src"].to_pylist() == [3]
    with pytest.raises(InputError, match=rf"no Parquet file at s3://{bucket}/none"):
        find_parquet_files(f"s3://{bucket}/none{options}")


def test_an_object_that_is_no_parquet_file_and_one_that_is_gone_are_named(object_store):
    bucket, options = object_store.new_bucket(), object_store.options()
    url = ObjectUrl.parse(f"s3://{bucket}/x.parquet{options}")
    with url.filesystem.open_output_stream(url.path) as sink:
        sink.write(b"not parquet at all")
    with pytest.raises(InputError, match=r"x.parquet.* is not a readable Parquet file"):
        list_row_groups([str(url)], ["src"])
    with pytest.raises(InputError, match=r"no Parquet file at .*gone.parquet"):
        read_row_group(RowGroup(f"s3://{bucket}/gone.parquet{options}", 0, 1))


def test_what_the_footer_says_of_each_column(tmp_path):
    file = write(tmp_path / "a.parquet", src=[1, 7, 3], dst=["a", "b", "c"])
    chunks = list(column_chunks(file, open_parquet(file).metadata))
    assert [chunk.path_in_schema for chunk in chunks] == ["src", "dst"]
    assert (chunks[0].statistics.min, chunks[0].statistics.max) == (1, 7)


def test_encrypted_columns_are_refused_and_do_not_end_the_process(tmp_path):
    file = write(tmp_path / "a.parquet", src=[1], dst=[2])
    write_encrypted(file, plain_footer=True)
    with pytest.raises(InputError, match="encrypted columns; write it again without encryption"):
        list(column_chunks(file, open_parquet(file).metadata))


def test_a_damaged_page_is_left_to_whoever_reads_it(tmp_path):
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"src": [1, 2]}), file, write_page_checksum=True, use_dictionary=False)
    data = bytearray(file.read_bytes())
    data[pq.read_metadata(file).row_group(0).column(0).data_page_offset + 20] ^= 1
    file.write_bytes(data)
    assert [chunk.num_values for chunk in column_chunks(file, open_parquet(file).metadata)] == [2]
