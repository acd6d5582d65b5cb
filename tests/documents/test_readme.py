"""The README: short, and its recorded outputs have the shape that the program has now."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import click
import yaml

from peg_core.heuristics.pair_heuristics import HEURISTICS
from pipeline.cli.app import cli
from pipeline.config.loading import load_config

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def recorder():
    spec = importlib.util.spec_from_file_location("record_readme", ROOT / "docs/record_readme.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RECORDER = recorder()
BLOCKS = RECORDER.BLOCK.findall(README)
OUTPUTS = {RECORDER.commands_of(block)[0]: block.splitlines()[1:] for block in BLOCKS}


def output_of(command):
    [found] = [lines for name, lines in OUTPUTS.items() if name.startswith(command)]
    return found


def test_it_is_short():
    assert len(README.splitlines()) <= 150


def test_every_recorded_command_is_one_with_such_options():
    assert len(OUTPUTS) == len(BLOCKS) >= 2
    for command in OUTPUTS:
        program, name, *rest = shlex.split(command.partition("|")[0])
        assert program == "peg"
        found = cli.get_command(click.Context(cli), name)
        known = {option for each in found.params for option in each.opts}
        assert {word for word in rest if word.startswith("--")} <= known
        assert [word for word in rest if word.endswith(".yaml")] == ["configs/quickstart.yaml"]


def test_the_recorded_metrics_are_those_of_the_quickstart():
    config = load_config(ROOT / "configs/quickstart.yaml")
    hits = [f"hits@{k}" for k in config.evaluate.hits]
    columns = {"random": ["auc", "ap", "mrr", *hits], "heart": ["mrr", *hits]}
    methods = [config.model.kind, *(name.replace("_", " ") for name in HEURISTICS)]
    lines = output_of("peg run")
    for protocol in config.evaluate.protocol:
        [head] = [place for place, line in enumerate(lines) if line.split()[:1] == [protocol]]
        assert lines[head].split()[1:] == columns[protocol]
        rows = lines[head + 1 : head + 1 + len(methods)]
        assert [re.split(r"  +|  *\d", row.strip())[0] for row in rows] == methods
        assert all(len(re.findall(r"\d\.\d{4}", row)) == len(columns[protocol]) for row in rows)


def test_the_best_links_are_told_in_three_lines_each():
    lines = output_of("peg top")
    assert len(lines) == 9
    assert all(re.match(r" +\d+  0\.\d{4}  \w", line) for line in lines[::3])
    assert all("common neighbour" in line for line in lines[2::3])


def test_a_yaml_block_is_a_configuration(tmp_path):
    for number, block in enumerate(re.findall(r"^```yaml\n(.*?)^```$", README, re.M | re.S)):
        file = tmp_path / f"{number}.yaml"
        file.write_text(block)
        assert load_config(file).name == yaml.safe_load(block)["name"]


def test_what_a_log_says_on_the_way_is_left_out():
    log = "  train      started  new/  train       12 %    x//report: here//next:/  peg plan"
    assert RECORDER.shorten(log.split("/")) == ["...", "report: here"]


def test_a_command_is_recorded_with_what_it_prints(tmp_path):
    assert RECORDER.record("echo done", tmp_path) == "$ echo done\ndone\n"
