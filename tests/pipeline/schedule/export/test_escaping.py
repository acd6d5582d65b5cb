"""Any text comes back from the files as it was given; the parsers follow the manuals."""

import ast
import json
import re
import shlex
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from peg_core.errors import ConfigError
from pipeline.config.loading import load_config
from pipeline.schedule.export import kubernetes_manifests
from pipeline.schedule.export.exports import KINDS, export_schedule
from pipeline.schedule.schedule import Schedule, command_words

NASTY = (
    '"""', "'''", "'", '"', "\\", "\\\\", "\\%", "%", "%%", "%n", "$", "$$", "$HOME", "${HOME}",
    "$(id)", "`id`", "#", ";", " ; ", "&&", "{", "}", "{0}", "{{ ds }}", " ", "  ", ": ", "- ",
    "---", "*", "~", "!x", "@", "é", "\N{NO-BREAK SPACE}", "\\n", "\\x41",
    "NAME-OF-THE-RUN", '"name": "NAME-OF-THE-RUN"',
)  # fmt: skip
LINE = st.lists(
    st.sampled_from(NASTY)
    | st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=5),
    max_size=8,
).map("".join)
PATH = LINE.map(lambda text: f"/{text}")
NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True).filter(
    lambda name: name != "lease"
)
SERVICE = {
    "Unit": {"Description"},
    "Service": {"Type", "WorkingDirectory", "EnvironmentFile", "ExecStart"},
}
TIMER = {
    "Unit": {"Description"},
    "Timer": {"OnCalendar", "Persistent"},
    "Install": {"WantedBy"},
}
schedules = st.builds(
    Schedule,
    name=NAMES,
    config=PATH,
    folder=PATH,
    overrides=st.lists(LINE, max_size=3).map(tuple),
    cron=st.just("30 2 * * 1-5"),
    timezone=st.sampled_from(["UTC", "Europe/Berlin", "Etc/GMT+3"]),
    mode=st.sampled_from(["run", "refresh"]),
    address=st.none() | LINE.map(lambda text: f"http://{text}"),
    working_dir=st.none() | PATH,
    environment=st.dictionaries(st.sampled_from(["A", "B"]), LINE),
    pip=st.lists(LINE, max_size=2).map(tuple),
    created=st.just(datetime(2026, 1, 1, tzinfo=UTC)),
)


def export(schedule, kind, *, image="peg:1", namespace="graphs"):
    with tempfile.TemporaryDirectory() as folder:
        files = export_schedule(schedule, kind, Path(folder), image=image, namespace=namespace)
        return [file.read_bytes().decode() for file in files]


def argv_of(schedule):
    """What the shell must see; the time, which it finds out itself, is left out."""
    return command_words(schedule), "--id $(date -u +%Y%m%dT%H%M%SZ)" if schedule.address else ""


def check_shell(command, before, schedule):
    words, end = argv_of(schedule)
    assert command.endswith(end)
    assert shlex.split(command.removesuffix(end)) == [*before, *words]


def cron_input(line, *, collapses):
    """The command that cron hands to the shell; some crons take a backslash before another one."""
    kept, escaped = "", False
    for character in line:
        if escaped:
            escaped = False
            if character == "%" or (collapses and character == "\\"):
                kept = kept[:-1]
        elif character == "%":
            raise AssertionError("the command ends here, the rest would be its input")
        elif character == "\\":
            escaped = True
        kept += character
    return kept


@given(schedules)
def test_a_crontab_has_one_job_that_runs_the_command(schedule):
    [text] = export(schedule, "cron")
    lines = [line for line in text.split("\n") if line and not line.startswith("#")]
    assert lines[0] == f"CRON_TZ={schedule.timezone}"
    [job] = lines[1:]
    fields, command = job.split(" ", 5)[:5], job.split(" ", 5)[5]
    assert fields == ["30", "2", "*", "*", "1-5"]
    for collapses in (False, True):
        ran = cron_input(command, collapses=collapses)
        check_shell(ran, ["cd", schedule.folder, "&&"], schedule)


def units(text):
    """Sections to settings: systemd.syntax, with its comments and continued lines."""
    found, section, pending = {}, None, ""
    for line in text.split("\n"):
        if not pending and (not line.strip() or line.lstrip()[0] in "#;"):
            continue
        pending += line
        if pending.endswith("\\"):
            pending = pending[:-1] + " "
            continue
        if pending.startswith("["):
            section = found.setdefault(pending.strip()[1:-1], {})
        else:
            key, _, value = pending.partition("=")
            assert key not in section
            section[key] = value.strip()
        pending = ""
    assert not pending
    return found


def systemd_words(value):
    """Words of a command line: quotes, backslashes, then %% and $$ (systemd.service)."""
    words, word, quote, rest = [], None, "", iter(value)
    for character in rest:
        if character == "\\":
            following = next(rest)
            assert following in "\\\"'", "an escape with another meaning"
            word = (word or "") + following
        elif character == quote:
            quote = ""
        elif not quote and character in "'\"":
            quote, word = character, word or ""
        elif not quote and character in " \t":
            words, word = [*words, *([word] if word is not None else [])], None
        else:
            word = (word or "") + character
    assert not quote
    return [single(single(item, "%"), "$") for item in [*words, *([word] if word else [])]]


def single(text, mark):
    assert mark not in text.replace(mark * 2, ""), f"a {mark} with a meaning"
    return text.replace(mark * 2, mark)


@given(schedules)
def test_units_of_systemd_have_the_same_settings_and_run_the_command(schedule):
    folder = schedule.folder
    if folder != folder.strip() or folder.endswith("\\"):
        with pytest.raises(ConfigError, match="ends with a space or a backslash"):
            export(schedule, "systemd")
        return
    service, timer = (units(text) for text in export(schedule, "systemd"))
    assert {section: set(keys) for section, keys in service.items()} == SERVICE
    assert {section: set(keys) for section, keys in timer.items()} == TIMER
    assert single(service["Service"]["WorkingDirectory"], "%") == folder
    shell, option, command = systemd_words(service["Service"]["ExecStart"])
    assert (shell, option) == ("/bin/sh", "-c")
    check_shell(command, [], schedule)


@given(schedules)
def test_a_dag_holds_the_values_as_literals_and_nothing_else(schedule):
    [text] = export(schedule, "airflow")
    tree = ast.parse(text)
    assert [type(node) for node in tree.body] == [
        ast.Expr, ast.ImportFrom, ast.Import, ast.ImportFrom, ast.Assign, ast.Assign, ast.Assign,
        ast.With,
    ]  # fmt: skip
    assert ast.get_docstring(tree, clean=False) == f"{schedule.when}: {schedule.config}"
    values = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
    }
    assert values == {
        "COMMAND": command_words(schedule),
        "SUBMITS": schedule.address is not None,
        "FOLDER": schedule.folder,
    }
    dag = tree.body[-1].items[0].context_expr
    named = {item.arg: item.value for item in dag.keywords}
    assert ast.literal_eval(named["dag_id"]) == f"peg-{schedule.name}"
    assert [type(node) for node in tree.body[-1].body] == [ast.FunctionDef, ast.Expr]


@given(schedules, st.text(), LINE, LINE)
@pytest.mark.parametrize("kind", ["kubernetes", "kuberay"])
def test_manifests_hold_the_values_and_nothing_else(kind, schedule, content, image, namespace):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        config = Path(folder) / "tiny.yaml"
        config.write_text("name: a\nstore: /data/a\ngraph: {edges: /data/edges.parquet}\n")
        loaded = load_config(config)
        patch.setattr(kubernetes_manifests, "load_config", lambda *_, **__: loaded)
        config.write_text(content, encoding="utf-8", errors="replace")
        schedule = schedule.model_copy(update={"config": str(config), "timezone": "UTC"})
        [text] = export(schedule, kind, image=image, namespace=namespace)
        expected = config.read_text(encoding="utf-8")
    found = {item["kind"]: item for item in yaml.safe_load_all(text)}
    assert set(found) == (
        {"ConfigMap", "ServiceAccount", "Role", "RoleBinding", "CronJob"}
        if kind == "kubernetes"
        else {"ConfigMap", "RayCronJob"}
    )
    assert {item["metadata"]["namespace"] for item in found.values()} == {namespace}
    assert found["ConfigMap"]["data"]["pipeline.yaml"] == expected
    if kind == "kubernetes":
        spec = json.loads(found["ConfigMap"]["data"]["rayjob.json"])["spec"]
    else:
        spec = found["RayCronJob"]["spec"]["jobTemplate"]
    words = shlex.split(spec["entrypoint"])
    overrides = [word for before, word in pairwise(words) if before == "--set"]
    assert overrides[-1] == "cluster.address=auto"
    assert [part for item in schedule.overrides for part in ("--set", item)] == words[
        words.index("/etc/peg/pipeline.yaml") + 1 + (schedule.mode == "refresh") : -2
    ]
    head = spec["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    assert head["containers"][0]["image"] == image


def test_the_name_of_a_run_is_put_in_its_place_only(tmp_path):
    """An override may hold the mark too."""
    [line] = [line for line in kubernetes_manifests.APPLY.splitlines() if line.startswith("sed")]
    mark = kubernetes_manifests.NAME_MARK
    job = {
        "metadata": {"name": mark, "namespace": "x"},
        "spec": {"entrypoint": f'"name": "{mark}"'},
    }
    (tmp_path / "rayjob.json").write_text(json.dumps(job, indent=2))
    command = line.partition("|")[0].replace(kubernetes_manifests.CONFIG_FOLDER, str(tmp_path))
    done = subprocess.run(
        ["/bin/sh", "-c", f"name=peg-1; {command}"], capture_output=True, check=True
    )
    job["metadata"]["name"] = "peg-1"
    assert json.loads(done.stdout) == job


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "change",
    [{"folder": "/a\nb"}, {"config": '/a\n"""'}, {"overrides": ("a=1\n* * * * * id",)},
     {"folder": "/a\x00b"}, {"folder": "/a\udcff"}],
)  # fmt: skip
def test_what_no_file_can_hold_is_refused(tmp_path, kind, change):
    """Such a schedule cannot be made; should one come about all the same, nothing is written."""
    facts = {"name": "a", "config": "/c", "folder": "/", "cron": "30 2 * * *"}
    schedule = Schedule(**facts, created=datetime(2026, 1, 1, tzinfo=UTC))
    with pytest.raises(ConfigError, match="control characters"):
        export_schedule(
            schedule.model_copy(update=change), kind, tmp_path / "out", image="i", namespace="n"
        )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["cron", "systemd"])
def test_the_shell_itself_runs_the_command_with_these_words(tmp_path, monkeypatch, kind):
    folder = tmp_path / "a 'b' \"c\" %d $HOME `e` \\\\f\\%g"
    folder.mkdir()
    program = folder / "program"
    program.write_text(
        f"#!{sys.executable}\nimport json, os, sys\nprint(json.dumps([os.getcwd(), sys.argv]))\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    schedule = Schedule(
        name="a", config=f"{folder}/c.yaml", folder=str(folder), cron="30 2 * * *",
        overrides=tuple(f"a={text}" for text in NASTY), created=datetime(2026, 1, 1, tzinfo=UTC),
    )  # fmt: skip
    text = export(schedule, kind)[0]
    if kind == "cron":
        command = cron_input(text.splitlines()[-1].split(" ", 5)[5], collapses=False)
    else:
        command = systemd_words(re.search("^ExecStart=(.*)$", text, re.MULTILINE)[1])[-1]
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=True, cwd=folder)
    assert json.loads(done.stdout) == [str(folder), command_words(schedule)]
