"""Files that are called Parquet and cannot be read as such."""

from __future__ import annotations

import gzip
import os
import shutil
import socket
import struct
import zipfile

import polars as pl
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq

from tests.faults.bad_inputs import damage
from tests.faults.bad_inputs.encrypted_file import write_encrypted
from tests.faults.bad_inputs.kind import ACCEPTED, REFUSED, Group
from tests.faults.bad_inputs.place import Place

files = Group("Parquet files", command="peg run CONFIG", says=r"edges\.parquet", stage="ingest")
CANDIDATES = {"says": r"candidates\.parquet", "stage": "score"}
NODES = {"says": r"nodes\.parquet", "stage": "ingest"}


def in_a_folder(place: Place) -> None:
    """The edges become two files of a folder."""
    table = pl.read_parquet(place.edges)
    place.edges.unlink()
    place.edges.mkdir()
    table[:150].write_parquet(place.edges / "first.parquet")
    table[150:].write_parquet(place.edges / "second.parquet")


@files.kind(REFUSED)
def cut_in_the_middle(place: Place) -> None:
    damage.cut(place.edges)


@files.kind(REFUSED)
def footer_cut_off(place: Place) -> None:
    place.edges.write_bytes(place.edges.read_bytes()[:-8])


@files.kind(REFUSED)
def last_byte_missing(place: Place) -> None:
    place.edges.write_bytes(place.edges.read_bytes()[:-1])


@files.kind(REFUSED, ACCEPTED, warns=False)
def wrong_magic_at_the_start(place: Place) -> None:
    place.edges.write_bytes(b"XXXX" + place.edges.read_bytes()[4:])


@files.kind(REFUSED)
def wrong_magic_at_the_end(place: Place) -> None:
    place.edges.write_bytes(place.edges.read_bytes()[:-4] + b"XXXX")


@files.kind(REFUSED)
def no_bytes(place: Place) -> None:
    damage.empty(place.edges)


@files.kind(REFUSED)
def nothing_but_magic(place: Place) -> None:
    place.edges.write_bytes(b"PAR1PAR1")


@files.kind(REFUSED)
def footer_longer_than_the_file(place: Place) -> None:
    content = place.edges.read_bytes()
    place.edges.write_bytes(content[:-8] + struct.pack("<I", 2**31) + b"PAR1")


@files.kind(REFUSED)
def bytes_of_the_footer_overwritten(place: Place) -> None:
    content = place.edges.read_bytes()
    (length,) = struct.unpack("<I", content[-8:-4])
    start = len(content) - 8 - length
    place.edges.write_bytes(content[:start] + b"\xff" * 64 + content[start + 64 :])


@files.kind(REFUSED)
def a_csv_file(place: Place) -> None:
    pl.read_parquet(place.edges).write_csv(place.edges)


@files.kind(REFUSED)
def a_zip_archive(place: Place) -> None:
    content = place.edges.read_bytes()
    with zipfile.ZipFile(place.edges, "w") as archive:
        archive.writestr("edges.parquet", content)


@files.kind(REFUSED)
def compressed_with_gzip(place: Place) -> None:
    place.edges.write_bytes(gzip.compress(place.edges.read_bytes(), mtime=0))


@files.kind(REFUSED)
def an_arrow_file(place: Place) -> None:
    pl.read_parquet(place.edges).write_ipc(place.edges)


@files.kind(REFUSED)
def an_orc_file(place: Place) -> None:
    pyarrow.orc.write_table(pq.read_table(place.edges), str(place.edges))


@files.kind(REFUSED)
def json_lines(place: Place) -> None:
    pl.read_parquet(place.edges).write_ndjson(place.edges)


@files.kind(REFUSED)
def a_folder_without_parquet(place: Place) -> None:
    place.edges.unlink()
    place.edges.mkdir()
    (place.edges / "part-0.csv").write_text("src,dst\n1,2\n")


@files.kind(REFUSED)
def an_empty_folder(place: Place) -> None:
    damage.become_a_folder(place.edges)


@files.kind(REFUSED)
def a_folder_with_hidden_files_only(place: Place) -> None:
    in_a_folder(place)
    for file in place.edges.iterdir():
        file.rename(file.with_name(f"_{file.name}"))


@files.kind(ACCEPTED, says="")
def a_folder_as_spark_writes_it(place: Place) -> None:
    in_a_folder(place)
    (place.edges / "_SUCCESS").touch()
    (place.edges / ".first.parquet.crc").write_bytes(b"crc")


@files.kind(REFUSED)
def no_such_file(place: Place) -> None:
    place.edges.unlink()


@files.kind(REFUSED, says=r"\*\.parquet")
def a_glob_without_matches(place: Place) -> None:
    place.settings["graph"]["edges"] = str(place.folder / "none" / "*.parquet")


@files.kind(REFUSED, alone=True, command="peg plan CONFIG")
def a_pipe(place: Place) -> None:
    place.edges.unlink()
    os.mkfifo(place.edges)


@files.kind(REFUSED, alone=True, command="peg plan CONFIG", says=r"first\.parquet")
def a_pipe_in_a_folder(place: Place) -> None:
    in_a_folder(place)
    (place.edges / "first.parquet").unlink()
    os.mkfifo(place.edges / "first.parquet")


@files.kind(REFUSED)
def a_socket(place: Place) -> None:
    place.edges.unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        # the whole path may be too long for a socket's name
        here = os.open(place.folder, os.O_RDONLY)
        listener.bind(f"/proc/self/fd/{here}/{place.edges.name}")
        os.close(here)


@files.kind(REFUSED, says="/dev/null", alone=True, command="peg plan CONFIG")
def a_device(place: Place) -> None:
    place.settings["graph"]["edges"] = os.devnull


@files.kind(REFUSED)
def a_link_that_leads_nowhere(place: Place) -> None:
    place.edges.unlink()
    place.edges.symlink_to("gone.parquet")


@files.kind(REFUSED)
def a_link_to_itself(place: Place) -> None:
    place.edges.unlink()
    place.edges.symlink_to(place.edges.name)


@files.kind(REFUSED, not_as_root=True)
def no_permission_to_read(place: Place) -> None:
    place.edges.chmod(0)


@files.kind(REFUSED)
def a_page_with_a_wrong_checksum(place: Place) -> None:
    table = pq.read_table(place.edges)
    plain = {"compression": "none", "use_dictionary": False}
    pq.write_table(table, place.edges, write_page_checksum=True, **plain)
    damage.flip(place.edges, at=0.1)


@files.kind(REFUSED)
def a_compressed_page_overwritten(place: Place) -> None:
    pq.write_table(pq.read_table(place.edges), place.edges, compression="zstd")
    content = place.edges.read_bytes()
    place.edges.write_bytes(content[:100] + b"\xff" * 100 + content[200:])


@files.kind(REFUSED)
def the_header_of_a_page_overwritten(place: Place) -> None:
    place.edges.write_bytes(b"PAR1" + b"\xff" * 16 + place.edges.read_bytes()[20:])


@files.kind(REFUSED)
def an_encrypted_file(place: Place) -> None:
    write_encrypted(place.edges, plain_footer=False)


@files.kind(REFUSED)
def encrypted_columns_with_a_plain_footer(place: Place) -> None:
    write_encrypted(place.edges, plain_footer=True)


@files.kind(REFUSED)
def a_file_without_rows(place: Place) -> None:
    pl.read_parquet(place.edges).clear().write_parquet(place.edges)


@files.kind(REFUSED)
def a_file_without_columns(place: Place) -> None:
    pq.write_table(pa.table({}), place.edges)


@files.kind(REFUSED, says=r"second\.parquet")
def a_column_missing_in_the_second_file(place: Place) -> None:
    in_a_folder(place)
    second = place.edges / "second.parquet"
    pl.read_parquet(second).rename({"src": "from"}).write_parquet(second)


@files.kind(REFUSED, says=r"(first|second)\.parquet")
def other_types_in_the_second_file(place: Place) -> None:
    in_a_folder(place)
    second = place.edges / "second.parquet"
    text = pl.col("src", "dst").cast(pl.String)
    pl.read_parquet(second).with_columns(text).write_parquet(second)


@files.kind(REFUSED, says=r"second\.parquet")
def the_second_file_cut_off(place: Place) -> None:
    in_a_folder(place)
    damage.cut(place.edges / "second.parquet")


@files.kind(REFUSED, says=r"third\.parquet")
def a_file_of_no_bytes_beside_whole_ones(place: Place) -> None:
    in_a_folder(place)
    damage.empty(place.edges / "second.parquet")
    (place.edges / "second.parquet").rename(place.edges / "third.parquet")


@files.kind(ACCEPTED, says="")
def a_file_without_rows_beside_whole_ones(place: Place) -> None:
    in_a_folder(place)
    first = pl.read_parquet(place.edges / "first.parquet")
    first.clear().write_parquet(place.edges / "third.parquet")


@files.kind(ACCEPTED, says="")
def a_name_with_spaces_and_brackets(place: Place) -> None:
    odd = place.folder / "edges [1] ä #.parquet"
    shutil.move(place.edges, odd)
    place.settings["graph"]["edges"] = str(odd)


@files.kind(REFUSED, says=r"graph\.edges")
def an_address_of_the_web(place: Place) -> None:
    place.settings["graph"]["edges"] = "http://127.0.0.1:9/edges.parquet"


@files.kind(REFUSED, **CANDIDATES)
def candidates_cut_off(place: Place) -> None:
    damage.cut(place.candidates)


@files.kind(REFUSED, **CANDIDATES)
def candidates_as_csv(place: Place) -> None:
    pl.read_parquet(place.candidates).write_csv(place.candidates)


@files.kind(REFUSED, **CANDIDATES)
def candidates_missing(place: Place) -> None:
    place.candidates.unlink()


@files.kind(REFUSED, **CANDIDATES)
def a_page_of_the_candidates_overwritten(place: Place) -> None:
    pq.write_table(pq.read_table(place.candidates), place.candidates)
    place.candidates.write_bytes(b"PAR1" + b"\xff" * 60 + place.candidates.read_bytes()[64:])


@files.kind(REFUSED, **NODES)
def node_table_cut_off(place: Place) -> None:
    damage.cut(place.nodes)


@files.kind(REFUSED, **NODES)
def node_table_missing(place: Place) -> None:
    place.nodes.unlink()


@files.kind(REFUSED, **NODES)
def a_page_of_the_node_table_overwritten(place: Place) -> None:
    content = place.nodes.read_bytes()
    place.nodes.write_bytes(b"PAR1" + b"\xff" * 60 + content[64:])
