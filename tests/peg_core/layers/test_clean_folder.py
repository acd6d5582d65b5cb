import os
import subprocess
import sys

LAYERS = """
import os, pickle
from peg_core.layers import EGNNConv, PEGConv, PESAGEConv

from peg_core.layers.pyg_layers import GATLayer, GCNLayer, SAGELayer, TransformerLayer

for kind in (EGNNConv, PEGConv, PESAGEConv, GCNLayer, SAGELayer):
    pickle.loads(pickle.dumps(kind(4, 4)))
for kind in (GATLayer, TransformerLayer):
    pickle.loads(pickle.dumps(kind(4, 4, heads=2)))
assert "TORCHINDUCTOR_CACHE_DIR" not in os.environ  # else processes that are started make it
"""


def test_layers_leave_nothing_in_the_temporary_folder(tmp_path):
    kept = {k: v for k, v in os.environ.items() if k != "TORCHINDUCTOR_CACHE_DIR"}
    environment = {**kept, "TMPDIR": str(tmp_path), "PYTHONPATH": os.getcwd()}
    subprocess.run([sys.executable, "-c", LAYERS], env=environment, check=True)
    assert list(tmp_path.iterdir()) == []
