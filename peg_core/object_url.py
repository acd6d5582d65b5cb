"""Places in object stores: ``s3://bucket/key`` and ``gs://bucket/key``, through pyarrow.fs.

Options stand behind a question mark, for example
``s3://bucket/key?endpoint_override=127.0.0.1:9000&scheme=http``; credentials and
region come from the usual environment variables, files and machine roles.
"""

from __future__ import annotations

import os
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self
from urllib.parse import parse_qsl

import pyarrow as pa
import pyarrow.fs as pafs

from peg_core.errors import ConfigError, PegError, nearest_hint

SCHEMES = ("s3", "gs", "gcs")
OPTIONS = {
    "s3": ("region", "scheme", "endpoint_override", "anonymous"),
    "gs": ("scheme", "endpoint_override", "anonymous"),
}
# A drive has one letter, a scheme has more.
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+")
MAX_LENGTH = 4096
# Control characters, line breaks, and halves of characters.
UNPRINTABLE = ("Cc", "Cs", "Zl", "Zp")
CONNECT_SECONDS = 10.0
ATTEMPTS = 5

# Words of the stores' messages, and what to do about them.
HINTS = (
    (("NO_SUCH_BUCKET", "bucket does not exist"), "create the bucket, or correct its name"),
    (
        ("ACCESS_DENIED", "INVALID_ACCESS_KEY", "SIGNATURE_DOES_NOT_MATCH", "UNRECOGNIZED_CLIENT",
         "credential", "Forbidden", "403"),
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or the credentials of your provider), "
        "and check that they may read and write there",
    ),
    (
        ("NETWORK_CONNECTION", "curlCode", "timeout", "onnection", "error sending request"),
        "check the network and the endpoint, then run again: finished work is kept",
    ),
)  # fmt: skip


class StorageError(PegError):
    """An object store does not do what it was asked."""

    @classmethod
    def of(cls, what: str, location: object, error: BaseException) -> Self:
        reason = " ".join(str(error).split())
        for words, hint in HINTS:
            if any(word in reason for word in words):
                return cls(f"cannot {what} {location} ({reason}); {hint}")
        return cls(f"cannot {what} {location} ({reason}); check the URL and the store, run again")


def is_url(location: object) -> bool:
    """Whether a location is in an object store, not in the file system."""
    return str(location).startswith(tuple(f"{scheme}://" for scheme in SCHEMES))


def require_location(location: str) -> None:
    """Refuse what is neither a path nor a URL of a store that is known.

    Raises:
        ConfigError: Says what is wrong with it.
    """
    if not location.strip():
        raise ConfigError("found an empty location, needed a path or a URL; `.` is this folder")
    if len(location) > MAX_LENGTH:
        raise ConfigError(
            f"found a location of {len(location):,} characters, at most {MAX_LENGTH:,} are "
            "possible; give a shorter path, a folder or a glob"
        )
    for character in location:
        if unicodedata.category(character) in UNPRINTABLE:
            raise ConfigError(
                f"found the character U+{ord(character):04X} in {location!a}, a location must "
                "be one line of printable text; write the path without it"
            )
    if location.startswith("~"):
        raise ConfigError(f"found {location!r}, `~` is not replaced; write ${{HOME}} instead")
    if is_url(location):
        ObjectUrl.parse(location)
        return
    scheme = SCHEME.match(location)
    if scheme:
        # the rest may hold a password
        raise ConfigError(
            f"found a location that begins with {scheme[0]!r}, known are paths and URLs with "
            f"{', '.join(f'{name}://' for name in SCHEMES)}; {_scheme_hint(scheme[1])}"
        )


def _scheme_hint(scheme: str) -> str:
    """What to write instead of a scheme that is not known."""
    if scheme.lower() == "file":
        return "write the path alone"
    if scheme.lower() in SCHEMES:
        return f"write {scheme.lower()}://"
    if scheme.lower() in ("http", "https"):
        return "download the files, and give their path"
    return f"copy the files there, or write ./{scheme}:/ for a folder of that name"


def absolute(location: Path | str) -> str:
    """A name that means the same in every process: an absolute path or the URL."""
    return str(location) if is_url(location) else str(Path(location).absolute())


def within(location: str, name: str) -> str:
    """The location of a file in a folder, or below a URL: its options stay at the end."""
    path, mark, options = location.partition("?") if is_url(location) else (location, "", "")
    return f"{path.rstrip('/')}/{name}{mark}{options}"


@dataclass(frozen=True)
class ObjectUrl:
    """A parsed URL.

    Args:
        scheme: ``s3`` or ``gs``.
        path: ``bucket/key``, as pyarrow.fs wants it.
        query: The options, as they were written.
    """

    scheme: str
    path: str
    query: str = ""

    @classmethod
    def parse(cls, location: str) -> Self:
        scheme, _, rest = location.partition("://")
        path, _, query = rest.partition("?")
        bucket = path.partition("/")[0]
        if "@" in bucket:
            raise ConfigError(
                "a URL with credentials was found; it would be kept in manifests and logs: "
                "take them out and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )
        if not bucket:
            raise ConfigError(f"{location} names no bucket; write {scheme}://bucket/folder")
        parsed = cls("gs" if scheme == "gcs" else scheme, path.rstrip("/"), query)
        parsed.check_options()
        return parsed

    def check_options(self) -> None:
        """Refuse options that nobody would read."""
        known = OPTIONS[self.scheme]
        for name, _ in parse_qsl(self.query, keep_blank_values=True):
            if name not in known:
                raise ConfigError(
                    f"{self} has an option {name!r}; known are {', '.join(known)}"
                    f"{nearest_hint(name, known)}"
                )

    @property
    def bucket(self) -> str:
        return self.path.partition("/")[0]

    def at(self, path: str) -> ObjectUrl:
        """Another ``bucket/key`` of the same store."""
        return ObjectUrl(self.scheme, path, self.query)

    @property
    def filesystem(self) -> pafs.FileSystem:
        try:
            return _filesystem(self.scheme, self.bucket, self.query)
        except (OSError, pa.ArrowException) as error:
            raise StorageError.of("reach", self, error) from error

    def __str__(self) -> str:
        return f"{self.scheme}://{self.path}{'?' if self.query else ''}{self.query}"


@lru_cache(maxsize=32)
def _filesystem(scheme: str, bucket: str, query: str) -> pafs.FileSystem:
    options: dict[str, object] = dict(parse_qsl(query))
    if "anonymous" in options:
        options["anonymous"] = options["anonymous"] == "true"
    if scheme == "gs":
        return pafs.GcsFileSystem(**options)
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if "region" not in options and region:
        options["region"] = region
    has_endpoint = options.get("endpoint_override") or any(
        os.environ.get(name) for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")
    )
    if "region" not in options and not has_endpoint:
        options["region"] = pafs.resolve_s3_region(bucket)
    return pafs.S3FileSystem(
        **options,
        connect_timeout=CONNECT_SECONDS,
        allow_delayed_open=True,  # a small object is one request
        background_writes=False,  # an error belongs to the write that caused it
        retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
    )


def find_objects(location: str, suffix: str) -> list[str]:
    """URLs of the objects behind a URL: one object, a folder's with ``suffix``, or a glob's."""
    url = ObjectUrl.parse(location)
    try:
        paths = _match(url) if re.search(r"[*\[]", url.path) else _inside(url, suffix)
    except (OSError, pa.ArrowException) as error:
        raise StorageError.of("list", url, error) from error
    return [str(url.at(path)) for path in sorted(paths)]


def _inside(url: ObjectUrl, suffix: str) -> list[str]:
    if url.filesystem.get_file_info(url.path).type == pafs.FileType.File:
        return [url.path]
    return [
        info.path
        for info in _files_below(url.filesystem, url.path)
        if info.path.endswith(suffix) and not info.base_name.startswith((".", "_"))
    ]


def _match(url: ObjectUrl) -> list[str]:
    fixed = re.split(r"[*\[]", url.path, maxsplit=1)[0].rpartition("/")[0]
    if not fixed:
        raise ConfigError(f"{url} has a wildcard in its bucket; name the bucket in full")
    pattern = re.compile(_glob_to_regex(url.path))
    found = _files_below(url.filesystem, fixed)
    return [info.path for info in found if pattern.fullmatch(info.path)]


def _files_below(filesystem: pafs.FileSystem, path: str) -> list[pafs.FileInfo]:
    selector = pafs.FileSelector(path, recursive=True, allow_not_found=True)
    return [i for i in filesystem.get_file_info(selector) if i.type == pafs.FileType.File]


def _glob_to_regex(pattern: str) -> str:
    """``**/`` any folders, ``*`` within one name, ``[ab]`` one of these."""
    parts = re.split(r"(\*\*/|\*\*|\*|\[[^\]]+\])", pattern)
    wild = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}
    return "".join(
        wild.get(part) or (part.replace("[!", "[^") if part.startswith("[") else re.escape(part))
        for part in parts
    )
