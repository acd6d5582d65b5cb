"""The daemons of several stores in the foreground, and their health on loopback."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from peg_core.errors import PegError
from peg_core.object_url import is_url
from pipeline.schedule.daemon import ScheduleDaemon
from pipeline.schedule.schedule_store import ScheduleStore

STEP_SECONDS = 0.5
# Every look at an object store is a few requests.
REMOTE_STEP_SECONDS = 10.0
# A daemon without a step for this long hangs.
STALE_SECONDS = 60.0
LOOPBACK = "127.0.0.1"
logger = logging.getLogger(__name__)


class ScheduleService:
    """Serves the schedules of several stores until it is interrupted."""

    def __init__(self, stores: Sequence[str]) -> None:
        self._stores = [ScheduleStore(store) for store in stores]
        self._pause = REMOTE_STEP_SECONDS if any(map(is_url, stores)) else STEP_SECONDS
        self._reports: list[dict[str, Any]] = []
        self._last_step = time.monotonic()
        self._error: str | None = None

    def serve(self, health_port: int | None, on_ready: Callable[[int | None], None]) -> None:
        """Serve until interrupted; runs under way continue, and the next daemon finds them."""
        with ExitStack() as stack:
            for store in self._stores:
                stack.enter_context(store.lease())
            daemons = [ScheduleDaemon(store) for store in self._stores]
            port = None
            if health_port is not None:
                server = start_health_server(health_port, self.health)
                stack.callback(server.shutdown)
                port = server.server_port
            on_ready(port)
            try:
                while True:
                    self._step(daemons)
                    time.sleep(self._pause)
            except KeyboardInterrupt:
                logger.info("stopped; runs under way continue")

    def health(self) -> tuple[bool, dict[str, Any]]:
        """Whether the loop is alive, and what it sees."""
        age = time.monotonic() - self._last_step
        alive = age < STALE_SECONDS
        return alive, {
            "alive": alive,
            "seconds_since_last_step": round(age, 3),
            "last_error": self._error,
            "stores": self._reports,
        }

    def _step(self, daemons: list[ScheduleDaemon]) -> None:
        now = datetime.now(UTC)
        error: str | None = None
        for daemon in daemons:
            try:
                daemon.step(now)
            except (PegError, OSError) as problem:  # a store that is away must not end the service
                error = str(problem)
                logger.warning("%s", problem)
        self._reports = [daemon.report(now) for daemon in daemons]
        self._error, self._last_step = error, time.monotonic()


def start_health_server(
    port: int, health: Callable[[], tuple[bool, dict[str, Any]]]
) -> ThreadingHTTPServer:
    """``GET /health`` on loopback: 200 while alive, else 503, with JSON."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path not in ("/", "/health"):
                self.send_error(404)
                return
            alive, facts = health()
            body = json.dumps(facts, indent=2).encode()
            self.send_response(200 if alive else 503)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Requests are not logged."""

    try:
        server = ThreadingHTTPServer((LOOPBACK, port), Handler)
    except OSError as error:
        raise PegError(
            f"the health port {port} on {LOOPBACK} is not free ({error.strerror}); choose another "
            "--health-port, or 0 for any"
        ) from error
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
