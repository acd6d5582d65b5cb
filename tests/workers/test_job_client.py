import http.server
import threading

import pytest

from peg_core.errors import ConfigError
from workers.job_client import JobClient, JobServerUnreachable, answers_without_token, check_address


@pytest.fixture
def open_server():
    """A server that, like a cluster without authentication, looks the job up for anybody."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(404)

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


@pytest.mark.parametrize("address", ["head:8265", "ray://head:10001", "http://", "auto"])
def test_only_addresses_of_job_servers_are_taken(address):
    with pytest.raises(ConfigError, match="not the address of a job server"):
        check_address(address)


@pytest.mark.parametrize("address", ["http://me:hidden@head:8265", "http://head:8265?token=hidden"])
def test_an_address_with_a_secret_is_refused_without_showing_it(address):
    with pytest.raises(ConfigError, match="leave them out") as caught:
        check_address(address)
    assert "hidden" not in str(caught.value)
