"""One object of a store, written only if nobody else has written it since it was read.

pyarrow.fs has no such write, obstore has: ``If-None-Match`` and ``If-Match`` in S3, generations in
Google Cloud Storage.
"""

from __future__ import annotations

import configparser
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, GenericError, PreconditionError
from obstore.store import GCSStore, S3Store

from peg_core.object_url import ObjectUrl, StorageError

if TYPE_CHECKING:
    from obstore.store import S3Credential

ATTEMPTS = 3
PAUSE_SECONDS = 0.3
# All attempts together must be over before a lease of a minute is.
CLIENT = {
    "connect_timeout": "5s",
    "timeout": "10s",
    # a connection that idled for a while may be cut by whatever is between
    "pool_max_idle_per_host": "0",
}
# How long keys from the file of profiles are used before it is read again.
KEYS_FOR = timedelta(minutes=5)
REFUSED = (AlreadyExistsError, PreconditionError)
Version = dict[str, str]  # etag or generation, whatever the store goes by
Result = TypeVar("Result")


@dataclass(frozen=True)
class Stored:
    """What was read.

    Args:
        version: To be handed to :meth:`ConditionalObject.write`.
        modified: By the clock of the store; S3 gives whole seconds.
    """

    data: bytes
    version: Version
    modified: datetime


class ConditionalObject:
    """An object that several processes write without overwriting each other.

    Every write needs contents of its own: that is how a write whose answer was lost is found.

    Args:
        guarded: Without it the store is not asked for the condition, which then is checked here
            before each write; of two writes at the same time both may count.
    """

    def __init__(self, url: ObjectUrl, *, guarded: bool = True) -> None:
        self.url = url
        self._guarded = guarded
        self._key = url.path.partition("/")[2]

    def read(self) -> Stored | None:
        """What is there now, or None."""

        def get(_: int) -> Stored | None:
            try:
                found = obstore.get(_store_of(self.url), self._key)
            except FileNotFoundError as error:
                if "NoSuchBucket" in str(error):
                    raise
                return None
            data, meta = found.bytes().to_bytes(), found.meta
            return Stored(data, _version(meta["e_tag"], meta["version"]), meta["last_modified"])

        return self._attempt("read", get)

    def write(self, data: bytes, *, over: Version | None) -> Version | None:
        """Replace the version ``over``, or create the object where ``over`` is None.

        Returns:
            The new version; None where there is another one than ``over``, and now and then in a
            store that had to decide between two writes and took neither.
        """

        def put(attempt: int) -> Version | None:
            try:
                return self._put(data, over)
            except REFUSED:
                # A first answer says what it says. A later one may be about our own write, of
                # which only the answer was lost.
                found = self.read() if attempt else None
                return found.version if found is not None and found.data == data else None

        return self._attempt("write", put)

    def delete(self) -> None:
        """Remove it, whoever wrote it."""
        self._attempt("delete", lambda _: obstore.delete(_store_of(self.url), self._key))

    def _put(self, data: bytes, over: Version | None) -> Version:
        mode: Any = "create" if over is None else over
        if not self._guarded:
            found = self.read()
            if (None if found is None else found.version) != over:
                raise PreconditionError
            mode = "overwrite"
        result = obstore.put(_store_of(self.url), self._key, data, mode=mode)
        return _version(result["e_tag"], result["version"])

    def _attempt(self, what: str, act: Callable[[int], Result]) -> Result:
        """Try again where no answer came, or none that says anything."""
        attempt = 0
        while True:
            try:
                return act(attempt)
            except GenericError as error:
                if attempt + 1 == ATTEMPTS:
                    raise self._told(what, error) from error
            except (BaseError, FileNotFoundError, ValueError) as error:
                raise self._told(what, error) from error
            time.sleep(PAUSE_SECONDS * 2**attempt)
            attempt += 1

    def _told(self, what: str, error: Exception) -> StorageError:
        reason = str(error).partition("\n\nDebug source")[0]
        if "InvalidCertificate" in str(error):
            reason += ", its certificate is not trusted; SSL_CERT_FILE may name others"
        if "error sending request" in reason:
            reason = f"no connection: {reason}"
        return StorageError.of(what, self.url, OSError(reason))


def _version(e_tag: str | None, version: str | None) -> Version:
    """Only what is there: obstore takes no None."""
    found = {"e_tag": e_tag, "version": version}
    return {name: value for name, value in found.items() if value is not None}


def _store_of(url: ObjectUrl) -> S3Store | GCSStore:
    try:
        return _store(url.scheme, url.bucket, url.query)
    except (BaseError, ValueError) as error:
        raise StorageError.of("reach", url, error) from error


@lru_cache(maxsize=32)
def _store(scheme: str, bucket: str, query: str) -> S3Store | GCSStore:
    """The client, with the options of the URL as pyarrow.fs understands them."""
    options = dict(parse_qsl(query))
    endpoint = options.get("endpoint_override", "")
    if endpoint and "://" not in endpoint:
        endpoint = f"{options.get('scheme', 'https')}://{endpoint}"
    config: Any = {"skip_signature": options.get("anonymous") == "true"}
    more: Any = {"retry_config": {"max_retries": 0}}  # see _attempt
    if scheme == "gs":
        if endpoint:
            config["base_url"] = endpoint
        if config["skip_signature"]:  # which obstore forgets when it writes
            more["credential_provider"] = lambda: {"token": "", "expires_at": None}
        more["client_options"] = {**CLIENT, "allow_http": endpoint.startswith("http:")}
        return GCSStore(bucket, config=config, **more)
    region = ObjectUrl(scheme, bucket, query).filesystem.region
    endpoint = endpoint or _usual_endpoint(region)
    config |= {"region": region, "aws_endpoint_url_s3": endpoint, "conditional_put": "etag"}
    config["disable_bulk_delete"] = True  # not every store has it
    more["client_options"] = {**CLIENT, "allow_http": endpoint.startswith("http:")}
    if not os.environ.get("AWS_ACCESS_KEY_ID") and _profile_keys() is not None:
        more["credential_provider"] = _profile_keys
    return S3Store(bucket, config=config, **more)


def _usual_endpoint(region: str) -> str:
    """Where S3 is when the URL does not say it."""
    named = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return named or f"https://s3.{region}.{domain}"


def _profile_keys() -> S3Credential | None:
    """The keys that the profile in use has in the file of credentials; obstore reads no such file.

    Those in the environment, of containers and of machines obstore finds itself.
    """
    file = os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or Path.home() / ".aws" / "credentials"
    parser = configparser.RawConfigParser()
    try:
        parser.read(file)
        keys = parser[os.environ.get("AWS_PROFILE") or "default"]
        return {
            "access_key_id": keys["aws_access_key_id"],
            "secret_access_key": keys["aws_secret_access_key"],
            "token": keys.get("aws_session_token"),
            "expires_at": datetime.now(UTC) + KEYS_FOR,
        }
    except (KeyError, configparser.Error, OSError):
        return None
