"""Machines that are taken away after a notice, such as spot machines: nobody's fault."""

from __future__ import annotations

import re
import time

from ray.exceptions import RayError

from workers.ray_nodes.known_nodes import known_nodes

# ray.rpc.NodeDeathInfo: ended politely, drained because of preemption, drained because idle
TAKEN_AWAY = frozenset({1, 3, 4})
# Ray finds a machine dead after several missed looks at its health.
DEATH_SECONDS = 60.0
POLL_SECONDS = 0.5
NODE_ID = re.compile(r"node ID: ([0-9a-f]{56})")


def was_taken_away(error: RayError) -> bool:
    """Whether the machine that a task was lost with had been drained or ended politely.

    The error comes as soon as the connection breaks, the reason when Ray has found it dead.
    """
    named = NODE_ID.search(str(error))
    deadline = time.monotonic() + DEATH_SECONDS
    while named is not None and time.monotonic() < deadline:
        for node in known_nodes():
            if node["NodeID"] == named[1] and not node["Alive"]:
                return node["DeathReason"] in TAKEN_AWAY
        time.sleep(POLL_SECONDS)
    return False
