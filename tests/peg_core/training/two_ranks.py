"""One of two processes that train a model together: ``python -m ... SPLIT STORE RANK``.

Writes the weights, metrics and exchanges of every scenario beside the store.
"""

import gc
import json
import sys
from pathlib import Path

import torch
import torch.distributed
from safetensors.torch import save_file
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

from peg_core.kernels.compiled_loops import compiled_loops
from peg_core.splits.split_store import SplitStore
from peg_core.training import validation_share
from peg_core.training.checkpoint import TrainingState
from peg_core.training.course import Course, follow
from peg_core.training.link_schedule import Share
from peg_core.training.settings import Optimisation
from tests.peg_core.training.small_training import build_trainer

# Few enough pairs for both ranks to have some of them.
CHUNK = 4
SAMPLED = {"fan_outs": (5, 5), "batch_size": 60}
BUDGET = {"links": 500, "validate_links": 100, "patience": 50, "average": 0.9}
SCENARIOS = {
    "full": {},
    "accumulate": {**SAMPLED, "accumulate": 3},  # the epoch ends with steps that are not three
    "sampled validation": {**SAMPLED, "most_embedded": 0, "average": 0.9},
}


def train(split, share, options):
    """One epoch; returns the trainer, what was found, and how often gradients were exchanged."""
    exchanges = []

    def counted(group, bucket):
        exchanges.append(bucket.index())
        return allreduce_hook(group, bucket)

    def wrap(network):
        distributed = DistributedDataParallel(network)
        distributed.register_comm_hook(None, counted)
        return distributed

    trainer = build_trainer(split, 4, share=share, wrap=wrap, **options)
    return trainer, {"loss": trainer.run_epoch(0), **trainer.validate()}, len(exchanges)


def by_links(split, share):
    """A training by a budget of links; returns what each validation found, and the steps taken."""
    wanted = Optimisation(**BUDGET)
    trainer = build_trainer(
        split, 4, share=share, wrap=DistributedDataParallel, **SAMPLED, **BUDGET
    )
    state = TrainingState()
    steps = [
        moved.step for moved in follow(Course(trainer.source.schedule, wanted), trainer, state)
    ]
    return {"history": state.history, "steps": steps}


def main(folder, store, rank):
    torch.set_num_threads(1)
    validation_share.CHUNK = CHUNK
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{store}/meeting", rank=rank, world_size=2
    )
    for loops in ("compiled", "generic"):
        for name, options in SCENARIOS.items():
            with compiled_loops(allowed=loops == "compiled"):
                trainer, found, exchanges = train(SplitStore(folder), Share(rank, 2), options)
            stem = f"{name}-{loops}-{rank}"
            save_file(trainer.average.weights(), store / f"{stem}.safetensors")
            facts = {"found": found, "exchanges": exchanges}
            (store / f"{stem}.json").write_text(json.dumps(facts))
    facts = by_links(SplitStore(folder), Share(rank, 2))
    (store / f"by-links-{rank}.json").write_text(json.dumps(facts))
    # torch may wait for itself when a distributed module outlives its group
    del trainer
    gc.collect()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
