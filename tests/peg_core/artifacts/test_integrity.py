import json

import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from peg_core.artifacts.integrity import DamagedArtifact, FileRecord, record_files
from peg_core.artifacts.manifest import (
    Identity,
    Manifest,
    artifact_damage,
    require_whole,
)

MANIFEST = Manifest(
    identity=Identity("embed", 1, {}, {}, {}), fingerprint="f", started="", finished="",
    seconds=0.0, peak_memory_bytes=0,
)  # fmt: skip


@pytest.fixture
def artifact(tmp_path):
    folder = tmp_path / "embed" / "f"
    (folder / "seed-0").mkdir(parents=True)
    (folder / "seed-0" / "layer-1.npy").write_bytes(bytes(range(256)) * 40)
    (folder / "model.json").write_text("{}")
    (folder / ".hidden").write_text("not part of it")
    MANIFEST.sealed(folder).write(folder)
    return folder


def test_every_file_is_recorded_with_its_size_and_checksum(artifact):
    data = bytes(range(256)) * 40
    found = Manifest.require(artifact).files
    assert set(found) == {"seed-0/layer-1.npy", "model.json"}
    assert found["seed-0/layer-1.npy"] == FileRecord(len(data), xxhash.xxh3_128_hexdigest(data))
    assert artifact_damage(artifact, contents=True) is None


@settings(max_examples=50, deadline=None)
@given(position=st.integers(0, 10_239), bit=st.integers(0, 7))
def test_one_flipped_bit_is_noticed(tmp_path_factory, position, bit):
    folder = tmp_path_factory.mktemp("artifact")
    data = bytearray(bytes(range(256)) * 40)
    (folder / "layer-1.npy").write_bytes(data)
    MANIFEST.sealed(folder).write(folder)
    data[position] ^= 1 << bit
    (folder / "layer-1.npy").write_bytes(data)
    assert artifact_damage(folder, contents=False) is None
    damage = artifact_damage(folder, contents=True)
    assert damage == "layer-1.npy does not have the contents that were written"


def test_missing_and_truncated_files_are_named_by_their_sizes(artifact):
    (artifact / "model.json").unlink()
    (artifact / "seed-0" / "layer-1.npy").write_bytes(b"short")
    damage = artifact_damage(artifact, contents=False)
    assert "model.json is missing" in damage
    assert "seed-0/layer-1.npy has 5 bytes, 10,240 were written" in damage


@pytest.mark.parametrize("part", ["", "seed-0"])
def test_a_part_is_refused_with_its_artifact(artifact, part):
    require_whole(artifact / part, contents=True)
    (artifact / "model.json").unlink()
    with pytest.raises(DamagedArtifact, match=r"model\.json is missing; make it again"):
        require_whole(artifact / part, contents=False)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"identity": 3}', "\xff\xfe"])
def test_a_manifest_that_cannot_be_read_is_damage(artifact, text):
    (artifact / "manifest.json").write_text(text, encoding="latin-1")
    assert Manifest.read(artifact) is None
    assert artifact_damage(artifact, contents=False) == "manifest.json is not what was written"


def test_a_changed_number_in_a_manifest_is_noticed(artifact):
    file = artifact / "manifest.json"
    file.write_text(file.read_text().replace('"seconds": 0.0', '"seconds": 1.0'))
    assert artifact_damage(artifact, contents=False) == "manifest.json is not what was written"


def test_keys_of_a_newer_version_are_left_out(artifact):
    file = artifact / "manifest.json"
    values = json.loads(file.read_text())
    del values["checksum"]
    values["identity"]["colour"] = "blue"
    values["files"]["model.json"]["signature"] = "x"
    file.write_text(json.dumps({**values, "added_later": 1}))
    assert Manifest.require(artifact).identity == MANIFEST.identity


def test_manifests_of_older_versions_have_sizes_or_nothing(artifact):
    values = json.loads((artifact / "manifest.json").read_text())
    del values["checksum"]
    (artifact / "manifest.json").write_text(json.dumps({**values, "files": {"model.json": 2}}))
    assert Manifest.require(artifact).files == {"model.json": FileRecord(2)}
    assert artifact_damage(artifact, contents=True) is None
    del values["files"]
    (artifact / "manifest.json").write_text(json.dumps(values))
    assert Manifest.require(artifact).files == {}


def test_named_files_are_left_out(tmp_path):
    (tmp_path / "request.json").write_text("{}")
    assert record_files(tmp_path, without={"request.json"}) == {}
