import gzip
import zipfile

import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.orc as orc
import pytest

from peg_core.errors import InputError
from peg_core.graph.edge_table import open_parquet

TABLE = pl.DataFrame({"src": [1, 2], "dst": [3, 4]})


def write_csv(path):
    TABLE.write_csv(path)


def write_tabs(path):
    TABLE.write_csv(path, separator="\t")


def write_json(path):
    TABLE.write_ndjson(path)


def write_arrow(path):
    TABLE.write_ipc(path)


def write_stream(path):
    TABLE.write_ipc_stream(path)


def write_feather(path):
    feather.write_feather(TABLE.to_arrow(), str(path))


def write_orc(path):
    orc.write_table(pa.table({"src": [1, 2], "dst": [3, 4]}), str(path))


def write_gzip(path):
    path.write_bytes(gzip.compress(b"src,dst\n1,3\n2,4\n"))


def write_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("edges.csv", "src,dst\n1,3\n2,4\n")


@pytest.mark.parametrize(
    ("write", "found"),
    [
        (write_csv, "a text file, perhaps CSV;"),
        (write_tabs, "a text file, perhaps CSV with tabs;"),
        (write_json, "a text file, perhaps JSON;"),
        (write_arrow, "an Arrow IPC file;"),
        (write_stream, "an Arrow IPC stream;"),
        (write_feather, "an Arrow IPC file;"),
        (write_orc, "an ORC file;"),
        (write_gzip, "a file packed with gzip, perhaps CSV;"),
        (write_zip, "a zip archive, perhaps of CSV;"),
    ],
)
@pytest.mark.parametrize("name", ["edges.csv", "edges.parquet"])
def test_another_format_is_told_with_a_line_that_converts_it(
    tmp_path, monkeypatch, write, found, name
):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / name)
    with pytest.raises(InputError) as caught:
        open_parquet(name)
    message = str(caught.value)
    assert message.startswith(f"{name} is not a readable Parquet file, but {found}")
    exec(message.partition("convert it: ")[2])
    made = "edges.parquet" if name == "edges.csv" else "table.parquet"
    assert pl.read_parquet(made).equals(TABLE)


def test_what_cannot_be_told_is_a_damaged_file(tmp_path):
    (tmp_path / "e.parquet").write_bytes(b"PAR1" + bytes(range(256)))
    with pytest.raises(InputError, match="it may be truncated or still being written"):
        open_parquet(tmp_path / "e.parquet")


def test_an_empty_file_is_called_one(tmp_path):
    (tmp_path / "e.parquet").touch()
    with pytest.raises(InputError, match=r"but an empty file; write the table as Parquet"):
        open_parquet(tmp_path / "e.parquet")
