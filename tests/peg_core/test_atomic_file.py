import json

import numpy as np
import pytest

from peg_core.atomic_file import atomic_path, remove_leftovers, write_array, write_json


def test_a_block_that_fails_leaves_neither_the_file_nor_its_draft(tmp_path):
    def fail() -> None:
        with atomic_path(tmp_path / "out.txt") as temporary:
            temporary.write_text("half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_failed_rewrite_keeps_the_old_content(tmp_path):
    write_json(tmp_path / "a.json", {"x": 1})
    with pytest.raises(TypeError):
        write_json(tmp_path / "a.json", {"x": object()})
    assert json.loads((tmp_path / "a.json").read_text()) == {"x": 1}


def test_arrays_come_back_as_they_were(tmp_path):
    write_array(tmp_path / "deep" / "a.npy", np.arange(5, dtype=np.int32))
    np.testing.assert_array_equal(np.load(tmp_path / "deep" / "a.npy"), np.arange(5))


def test_what_a_killed_writer_left_is_removed_and_nothing_else(tmp_path):
    kept = [tmp_path / "a.json", tmp_path / "deep" / ".hidden", tmp_path / "deep" / "b.tmp"]
    left = [tmp_path / ".a.json.1.tmp", tmp_path / "deep" / ".b.npy.22.tmp"]
    (tmp_path / "deep").mkdir()
    for file in kept + left:
        file.write_text("x")
    remove_leftovers(tmp_path)
    assert all(file.exists() for file in kept)
    assert not any(file.exists() for file in left)
