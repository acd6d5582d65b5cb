"""What a task reads of another machine: from the object store, or through Ray's own.

    python benchmarks/exchange.py                   # needs root, Linux, iproute2
    python benchmarks/exchange.py --blocks 64 --megabytes 16

One machine makes blocks, another one needs them. Once they are uploaded and read by byte range, as
tasks of this project do, once they are results of Ray tasks. The machines are namespaces of this
one. The S3 server is moto, a program in Python: real servers are faster, real networks slower. The
last line is the rate of the object store over that of Ray.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.cluster.object_machine import ObjectMachine
from tests.cluster.ray_machines import RayMachines
from tests.fixtures.machines import Network, why_not_isolated

EXCHANGE = """
import sys, time
import numpy as np, pyarrow.fs as pafs, ray
url, blocks, size, maker, reader = sys.argv[1], *map(int, sys.argv[2:4]), *sys.argv[4:6]
ray.init("auto", log_to_driver=False, logging_level="ERROR")

@ray.remote
def make(number):
    return np.random.default_rng(number).integers(0, 255, size, dtype=np.uint8)

@ray.remote
def upload(number):
    files, path = pafs.FileSystem.from_uri(url)
    with files.open_output_stream(f"{path}/{number}") as sink:
        sink.write(np.random.default_rng(number).integers(0, 255, size, dtype=np.uint8))

@ray.remote
def read_stored():
    files, path = pafs.FileSystem.from_uri(url)
    begun = time.perf_counter()
    total = sum(len(files.open_input_file(f"{path}/{n}").read_at(size, 0)) for n in range(blocks))
    return total, time.perf_counter() - begun

@ray.remote
def read_results(refs):
    begun = time.perf_counter()
    total = sum(len(ray.get(ref)) for ref in refs)
    return total, time.perf_counter() - begun

def on(task, address):
    return task.options(resources={f"node:{address}": 0.001})

ray.get([on(upload, maker).remote(number) for number in range(blocks)])
for _ in range(3):
    refs = [on(make, maker).remote(number) for number in range(blocks)]
    ray.wait(refs, num_returns=blocks, fetch_local=False)
    for name, found in (("object store", on(read_stored, reader).remote()),
                        ("Ray", on(read_results, reader).remote(refs))):
        total, seconds = ray.get(found)
        assert total == blocks * size
        print(f"{name}\\t{total / seconds / 1e6}", flush=True)
    del refs
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=32)
    parser.add_argument("--megabytes", type=int, default=2)
    options = parser.parse_args()
    reason = why_not_isolated()
    if reason is not None:
        raise SystemExit(f"no machines to measure: {reason}")
    with Network(isolated=True) as network:
        objects, cluster = ObjectMachine(network.add()), RayMachines(network, workers=2)
        maker, reader = (machine.address for machine in cluster.workers)
        printed = cluster.head.python(
            EXCHANGE, objects.url(f"{objects.new_bucket()}/blocks"), options.blocks,
            options.megabytes * 10**6, maker, reader, env=cluster.environment,
        )  # fmt: skip
        cluster.close()
    rates: dict[str, list[float]] = {}
    for line in printed.splitlines():
        name, rate = line.split("\t")
        rates.setdefault(name, []).append(float(rate))
    print(f"{options.blocks} blocks of {options.megabytes} MB, MB/s, three times")
    for name, found in rates.items():
        print(f"{name:<14}" + "".join(f"{rate:>10.0f}" for rate in found))
    print(f"ratio: {median(rates['object store']) / median(rates['Ray']):.2f}")


if __name__ == "__main__":
    main()
