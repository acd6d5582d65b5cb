"""The wheel: built without a network, with all that the program needs, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PACKAGES = ("peg_core", "pipeline", "workers")
NEEDED = ("pyproject.toml", "README.md", "LICENSE")
# What `python -m build --no-isolation` asks of the backend, where that program is missing.
BUILD = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
SHOW = """
import pipeline.cli.app
from importlib import resources
from pathlib import Path
assert resources.files("pipeline.report").joinpath("template.html").is_file()
print(Path(pipeline.__file__).parents[1])
pipeline.cli.app.cli(["--help"])
"""


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy, so that nothing is left in the sources."""
    try:
        backend = int(version("setuptools").partition(".")[0])
    except PackageNotFoundError:
        backend = 0
    if backend < 80:
        pytest.skip("the build backend, setuptools 80 or newer, is not installed here")
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in NEEDED:
        shutil.copy(ROOT / name, source / name)
    for name in (*PACKAGES, "tests", "benchmarks"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    command = [sys.executable, "-c", BUILD, str(out)]
    if find_spec("build") is not None:
        options = ["--wheel", "--no-isolation", "--outdir", str(out)]
        command = [sys.executable, "-m", "build", *options]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = out.glob("*.whl")
    return file


@pytest.mark.slow
def test_it_holds_the_packages_whole_and_nothing_else(wheel):
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    expected = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and path.suffix not in (".pyc", ".nbi", ".nbc")
    }
    assert held == expected
    others = {name for name in held if not name.endswith(".py")}
    assert {"pipeline/report/template.html"} <= others
    assert {f"{package}/py.typed" for package in PACKAGES} <= others


@pytest.mark.slow
def test_it_says_what_it_is(wheel):
    archive = zipfile.ZipFile(wheel)
    info = next(name for name in archive.namelist() if name.endswith("/METADATA")).rpartition("/")[
        0
    ]
    metadata = Parser().parsestr(archive.read(f"{info}/METADATA").decode())
    assert (metadata["Name"], metadata["Version"]) == ("peg-pipeline", project()["version"])
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert "Typing :: Typed" in metadata.get_all("Classifier")
    required = [each for each in metadata.get_all("Requires-Dist") if "extra ==" not in each]
    assert len(required) == len(project()["dependencies"])
    assert "peg = pipeline.cli.app:main" in archive.read(f"{info}/entry_points.txt").decode()
    assert f"{info}/licenses/LICENSE" in archive.namelist()


@pytest.mark.slow
def test_it_runs_away_from_the_sources(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(
        [sys.executable, "-c", SHOW], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == str(tmp_path / "site")
    assert "peg init" in done.stdout


def test_the_citation_names_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["title"] == project()["name"]
    assert citation["version"] == project()["version"]
    assert citation["license"] == project()["license"]
