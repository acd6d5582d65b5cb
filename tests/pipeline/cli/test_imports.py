import subprocess
import sys

import pytest

LOADED = """
import sys
import {module}
print(*sorted({{"torch", "torch_geometric", "matplotlib"}} & sys.modules.keys()))
"""


@pytest.mark.parametrize(
    "module", ["pipeline.run.runner", "pipeline.cli.run_command", "workers.tasks.train"]
)
def test_a_driver_waits_for_none_of_what_tasks_need(module):
    code = LOADED.format(module=module)
    found = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    assert found.split() == []
