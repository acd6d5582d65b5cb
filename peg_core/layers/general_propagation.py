"""PyG's message passing without files of its own in the temporary folder."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from torch._inductor.runtime.cache_dir_utils import default_cache_dir
from torch_geometric.nn import MessagePassing

__all__ = ["GeneralPropagation", "MessagePassing"]

# PyG's import makes torch's folder for compiled code in the temporary folder, although nothing is
# compiled here, and tells all processes that are started from here to do the same. Torch makes it
# again where it needs it; a folder in use is not empty and stays.
if os.environ.get("TORCHINDUCTOR_CACHE_DIR") == default_cache_dir():
    del os.environ["TORCHINDUCTOR_CACHE_DIR"]
    with suppress(OSError):
        Path(default_cache_dir()).rmdir()


class GeneralPropagation:
    """Keeps PyG's general ``propagate`` and ``edge_updater``; stands before the layer it is for.

    PyG would write special ones for every class to files in the temporary folder, in every
    process, and leave them there.
    """

    def _set_jittable_templates(self, raise_on_error: bool = False) -> None:
        del raise_on_error
        kind: Any = type(self)
        kind._orig_propagate = kind._jinja_propagate = kind.propagate
        kind._orig_edge_updater = kind._jinja_edge_updater = kind.edge_updater
