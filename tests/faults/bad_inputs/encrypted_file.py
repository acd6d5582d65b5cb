"""Parquet files that nobody can read without a key."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pyarrow.parquet.encryption as encryption


class KeysInTheOpen(encryption.KmsClient):
    """Keeps the key beside the data; enough to write a file that needs one."""

    def __init__(self, configuration: Any) -> None:  # noqa: ARG002
        super().__init__()

    def wrap_key(self, key_bytes: bytes, _identifier: str) -> bytes:
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key: bytes, _identifier: str) -> bytes:
        return base64.b64decode(wrapped_key)


def write_encrypted(file: Path, *, plain_footer: bool) -> None:
    """Write a Parquet file again, encrypted."""
    table = pq.read_table(file)
    factory = encryption.CryptoFactory(KeysInTheOpen)
    wanted = encryption.EncryptionConfiguration(
        footer_key="footer", column_keys={"columns": ["src", "dst"]}, plaintext_footer=plain_footer
    )
    properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), wanted)
    with pq.ParquetWriter(file, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
