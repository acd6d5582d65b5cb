import http.server
import json
import os
import subprocess
import sys
import threading

import pytest

from peg_core.errors import ConfigError
from workers.jobs.job_client import (
    JobClient,
    JobServerUnreachable,
    answers_without_token,
    check_address,
)


@pytest.fixture
def received():
    """The headers of all requests to the open server."""
    return []


@pytest.fixture
def open_server(received):
    """A server that, like a cluster without authentication, looks the job up for anybody."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            received.append(str(self.headers))
            if self.path != "/api/version":
                self.send_error(404)
                return
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"ray_version": "2.60.0", "version": "4"}).encode())

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_an_address_that_nobody_answers_is_named_at_once():
    with pytest.raises(JobServerUnreachable, match=r"http://127.0.0.1:1 \(.*firewall"):
        JobClient("http://127.0.0.1:1")


def test_a_server_that_asks_for_no_token_is_seen_as_open(open_server):
    assert answers_without_token(open_server)


def test_a_server_that_asks_for_no_token_gets_none(open_server, received):
    """In a process of its own: Ray reads its mode of authentication once."""
    code = (
        "import sys; from workers.jobs.job_client import JobClient;"
        "client = JobClient(sys.argv[1]);"
        "print(client.is_open, client.find('none'), client.ray_version)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, open_server],
        env={**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "a-token-that-is-secret"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["True", "None", "2.60.0"], done.stderr
    assert len(received) >= 3
    assert not [headers for headers in received if "a-token-that-is-secret" in headers]


@pytest.mark.parametrize("address", ["head:8265", "ray://head:10001", "http://", "auto"])
def test_only_addresses_of_job_servers_are_taken(address):
    with pytest.raises(ConfigError, match="not the address of a job server"):
        check_address(address)


@pytest.mark.parametrize("address", ["http://me:hidden@head:8265", "http://head:8265?token=hidden"])
def test_an_address_with_a_secret_is_refused_without_showing_it(address):
    with pytest.raises(ConfigError, match="leave them out") as caught:
        check_address(address)
    assert "hidden" not in str(caught.value)
