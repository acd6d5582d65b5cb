"""Whether what listens at an address is a Ray that takes us; asked before Ray is.

Ray itself waits for minutes, or ends the process.
"""

from __future__ import annotations

import os
from pathlib import Path

import grpc  # type: ignore[import-untyped]

from peg_core.errors import ConfigError
from workers.jobs.ray_token import DEFAULT_FILE, MODE, read_token
from workers.local_ray.private_session import mend_token_file

ARE_YOU_RAY = "/ray.rpc.NodeInfoGcsService/CheckAlive"
REFUSED = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
USE_TLS = "RAY_USE_TLS"
CERTIFICATES = ("RAY_TLS_CA_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_SERVER_CERT")


def answer_problem(server: str, *, is_client: bool, timeout_seconds: float) -> str | None:
    """Why the server is not a Ray that can be used, or None.

    Args:
        server: ``HOST:PORT``.
        is_client: The server takes Ray clients: it knows other requests, and refuses this one.
    """
    with _channel(server) as channel:
        try:
            ask = channel.unary_unary(ARE_YOU_RAY)
            ask(b"", timeout=timeout_seconds, metadata=_credentials())
        except grpc.RpcError as error:
            code = error.code()
            if code in REFUSED:
                return f"it refused the token: {error.details()}"
            if not (is_client and code is grpc.StatusCode.UNIMPLEMENTED):
                return f"what listens there is not Ray: {code.name.lower().replace('_', ' ')}"
    return None


def _credentials() -> tuple[tuple[str, str], ...]:
    """The token, as Ray's own processes show it to each other."""
    if os.environ.get(MODE, "").lower() != "token":
        return ()
    mend_token_file(Path.home() / DEFAULT_FILE)
    token = read_token()
    return (("authorization", f"Bearer {token}"),) if token else ()


def _channel(server: str) -> grpc.Channel:
    if os.environ.get(USE_TLS, "0").lower() not in ("1", "true"):
        return grpc.insecure_channel(server)
    try:
        files = [Path(os.environ[name]).read_bytes() for name in CERTIFICATES]
    except (KeyError, OSError) as error:
        raise ConfigError(
            f"{USE_TLS} is set, but a certificate is missing ({error}); set "
            f"{', '.join(CERTIFICATES)} to files that can be read"
        ) from error
    return grpc.secure_channel(server, grpc.ssl_channel_credentials(*files))
