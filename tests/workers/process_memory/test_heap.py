import resource
import sys

import numpy as np
import pytest

from workers.process_memory.heap import freed_memory_kept

MEGABYTES_64 = 2**26


def faults_of_writing_again():
    """Page faults while 64 MB are asked for, written and freed, once they were before."""
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        np.empty(MEGABYTES_64, dtype=np.uint8).fill(1)
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    return faults


@pytest.mark.skipif(sys.platform != "linux", reason="mallopt belongs to glibc")
def test_freed_memory_is_used_again_without_faults_and_only_inside():
    outside = faults_of_writing_again()
    with freed_memory_kept():
        inside = faults_of_writing_again()
    after = faults_of_writing_again()
    assert inside < outside / 10
    assert after > 10 * max(inside, 1)
