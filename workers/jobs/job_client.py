"""Jobs on a Ray cluster: submit, look, follow, stop; nothing else talks to the job server."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any, Self, cast
from urllib.parse import urlsplit

import aiohttp
import requests
from ray.exceptions import AuthenticationError
from ray.job_submission import JobSubmissionClient

from peg_core.errors import ConfigError, PegError
from workers.jobs.job import JobRequest, JobState
from workers.jobs.ray_token import TOKEN, TOKEN_PATH, read_token

CONNECT_SECONDS = 10.0
POLL_SECONDS = 0.5
RECONNECTS = 30
RECONNECT_SECONDS = 2.0
# Ray lets these overrule an address that is given, and a job would go to another cluster.
ADDRESS_VARIABLES = ("RAY_API_SERVER_ADDRESS", "RAY_ADDRESS")
# They report every upload and every closed connection; the commands say what matters. Two of
# Ray's loggers have a level of their own.
CHATTY = ("ray", "ray.dashboard.modules.job.sdk", "ray.dashboard.modules.dashboard_sdk")


class JobServerUnreachable(PegError):
    """No job server answers."""

    @classmethod
    def at(cls, address: str, reason: object) -> Self:
        return cls(
            f"no Ray job server answers at {address} ({reason}); check --address, that the head "
            "node runs with its dashboard, and the firewall or port forwarding on the way"
        )


class JobAccessDenied(PegError):
    """The cluster asks for a token that was not given, or for another one."""

    @classmethod
    def at(cls, address: str, *, has_token: bool) -> Self:
        found = "refused the token" if has_token else "asks for a token, but none was found"
        return cls(
            f"{address} {found}; put the cluster's token into {TOKEN}, or into a file of mode 0600 "
            f"that {TOKEN_PATH} names"
        )


class JobExists(PegError):
    """The submission id was used before."""

    @classmethod
    def of(cls, job: JobState) -> Self:
        return cls(
            f"the job {job.submission_id} already exists and is {job.status}; follow it with `peg "
            f"jobs logs {job.submission_id} --follow`, or run the same configuration again under "
            "another id with --id: finished stages are reused"
        )


class NoSuchJob(PegError):
    """The cluster does not know the job."""

    @classmethod
    def at(cls, address: str, submission_id: str) -> Self:
        return cls(f"{address} has no job {submission_id}; `peg jobs list` shows the ones it has")


class JobClient:
    """The job server of one cluster.

    The token is sent only to a server that asks for one, and kept nowhere.

    Attributes:
        is_open: The server takes jobs from anybody who reaches it.
    """

    def __init__(self, address: str) -> None:
        self.address = check_address(address)
        _require_listener(self.address)
        self.is_open = answers_without_token(self.address)
        token = None if self.is_open else read_token()
        if not self.is_open and token is None:
            raise JobAccessDenied.at(self.address, has_token=False)
        # always a header, empty where no token is wanted: Ray's client would add its own
        headers = {"Authorization": f"Bearer {token}" if token else ""}
        with _ray_variables_aside(), self._told():
            self._client = JobSubmissionClient(self.address, headers=headers)
        for name in CHATTY:
            logging.getLogger(name).setLevel(logging.WARNING)

    @property
    def ray_version(self) -> str:
        """Of the cluster; what the client calls its version is that of the interface."""
        return str(self._client._server_ray_version)

    def submit(self, request: JobRequest) -> None:
        """Hand the job over.

        Raises:
            JobExists: The submission id was used before.
        """
        existing = self.find(request.submission_id)
        if existing is not None:
            raise JobExists.of(existing)
        try:
            with self._told():
                self._client.submit_job(
                    submission_id=request.submission_id,
                    entrypoint=request.entrypoint,
                    runtime_env=request.runtime_environment(),
                    metadata=dict(request.metadata),
                    entrypoint_num_cpus=request.driver_cpus,
                    entrypoint_memory=request.driver_memory_bytes,
                )
        except PegError:
            # another submitter may have been between the look and the submission
            existing = self.find(request.submission_id)
            if existing is not None:
                raise JobExists.of(existing) from None
            raise

    def find(self, submission_id: str) -> JobState | None:
        """The job, or None where the cluster does not know it."""
        with self._told():
            try:
                return _state(self._client.get_job_info(submission_id))
            except RuntimeError as error:
                if "status code 404" in str(error):
                    return None
                raise

    def state(self, submission_id: str) -> JobState:
        """The job; NoSuchJob where there is none."""
        found = self.find(submission_id)
        if found is None:
            raise NoSuchJob.at(self.address, submission_id)
        return found

    def jobs(self) -> list[JobState]:
        """All submitted jobs that the cluster remembers, the newest first."""
        with self._told():
            found = [_state(job) for job in self._client.list_jobs() if job.submission_id]
        return sorted(found, key=lambda job: job.started or 0, reverse=True)

    def stop(self, submission_id: str) -> JobState:
        """Ask the job to end, and wait until it has."""
        self.request_stop(submission_id)
        return self.wait(submission_id)

    def request_stop(self, submission_id: str) -> None:
        """Ask the job to end; it gets a few seconds to do so."""
        self.state(submission_id)
        with self._told():
            self._client.stop_job(submission_id)

    def wait(self, submission_id: str) -> JobState:
        """The job when it has ended."""
        while not (job := self.state(submission_id)).is_finished:
            time.sleep(POLL_SECONDS)
        return job

    def logs(self, submission_id: str) -> str:
        """What the job has written so far."""
        self.state(submission_id)
        with self._told():
            return str(self._client.get_job_logs(submission_id))

    def follow(self, submission_id: str) -> Iterator[str]:
        """What the job writes, as it comes, until it ends; survives lost connections."""
        seen = 0
        for _ in range(RECONNECTS):
            skip = seen
            try:
                for chunk in self._tail(submission_id):
                    new = chunk[skip:]
                    skip = max(0, skip - len(chunk))
                    seen += len(new)
                    if new:
                        yield new
                if self.state(submission_id).is_finished:
                    return
            except (RuntimeError, OSError, aiohttp.ClientError, JobServerUnreachable):
                time.sleep(RECONNECT_SECONDS)
        raise JobServerUnreachable.at(
            self.address,
            f"connection lost {RECONNECTS} times; the job {submission_id} may still be running",
        )

    def _tail(self, submission_id: str) -> Iterator[str]:
        loop = asyncio.new_event_loop()
        stream = cast("AsyncGenerator[str, None]", self._client.tail_job_logs(submission_id))
        try:
            while True:
                try:
                    yield loop.run_until_complete(anext(stream))
                except StopAsyncIteration:
                    return
        finally:
            loop.run_until_complete(stream.aclose())
            loop.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of the client in the user's words."""
        try:
            yield
        except AuthenticationError as error:
            raise JobAccessDenied.at(self.address, has_token=not self.is_open) from error
        except (ConnectionError, requests.RequestException) as error:
            raise JobServerUnreachable.at(self.address, error) from error
        except (RuntimeError, ValueError) as error:
            raise PegError(
                f"{self.address} refused the request: {error}; `peg doctor --address "
                f"{self.address}` checks the cluster"
            ) from error


def check_address(address: str) -> str:
    """The address without a trailing slash; ConfigError when it is not that of a job server."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"{address!r} is not the address of a job server; give http://HOST:8265, the "
            "address of the cluster's dashboard"
        )
    if parts.username or parts.password or parts.query:
        raise ConfigError(
            "the address holds a user name, a password or a query, and addresses are shown and "
            f"stored; leave them out, and give the token in {TOKEN_PATH}"
        )
    return address.rstrip("/")


def answers_without_token(address: str) -> bool:
    """Whether the job server serves a client that shows no token."""
    try:
        urllib.request.urlopen(f"{address}/api/jobs/none", timeout=CONNECT_SECONDS).close()
    except urllib.error.HTTPError as error:
        return error.code not in (401, 403)
    except OSError as error:
        raise JobServerUnreachable.at(address, error) from error
    return True


def _require_listener(address: str) -> None:
    """Ask the port first: Ray's client waits long where nobody answers."""
    parts = urlsplit(address)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname or "", port), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        raise JobServerUnreachable.at(address, error) from error


@contextmanager
def _ray_variables_aside() -> Iterator[None]:
    aside = {name: os.environ.pop(name) for name in ADDRESS_VARIABLES if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(aside)


def _state(job: Any) -> JobState:
    return JobState(
        submission_id=job.submission_id,
        status=str(getattr(job.status, "value", job.status)),
        message=job.message or "",
        entrypoint=job.entrypoint,
        started=job.start_time / 1000 if job.start_time else None,
        finished=job.end_time / 1000 if job.end_time else None,
        driver_exit_code=job.driver_exit_code,
        metadata=dict(job.metadata or {}),
    )
