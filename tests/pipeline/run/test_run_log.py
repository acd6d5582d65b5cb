import io
import json

from rich.console import Console

from pipeline.cli.display.run_replay import RunReplay
from pipeline.config.redaction import redact
from pipeline.run.progress import RunDisplay
from pipeline.run.run_log import RunLog, open_run_log, read_run_log


def test_events_are_json_lines_in_the_store_and_wherever_else(tmp_path, monkeypatch):
    monkeypatch.setenv("PEG_RUN_ID", "nightly")
    elsewhere = io.StringIO()
    with open_run_log(str(tmp_path), elsewhere) as log:
        log.write("warning", text="look out")
    lines = (tmp_path / "logs" / "nightly.jsonl").read_text().splitlines()
    assert lines == elsewhere.getvalue().splitlines()
    [event] = read_run_log(str(tmp_path), "nightly")
    assert (event["run"], event["event"], event["text"]) == ("nightly", "warning", "look out")


def test_a_line_cut_by_a_kill_is_left_out(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.jsonl").write_text('{"event": "run_started"}\n{"event": "pro')
    assert [event["event"] for event in read_run_log(str(tmp_path), "a")] == ["run_started"]
    assert read_run_log(str(tmp_path), "none") == []


def test_secrets_do_not_reach_the_log(monkeypatch):
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0123456789abcdef")
    sink = io.StringIO()
    RunLog("a", [sink]).write(
        "run_failed", message="token 0123456789abcdef", detail={"url": ["s3://key:word@bucket/x"]}
    )
    assert "0123456789abcdef" not in sink.getvalue()
    assert "key:word" not in sink.getvalue()
    assert redact("s3://b/x?secret_key=abc&region=eu") == "s3://b/x?secret_key=***&region=eu"
    assert redact("s3://bucket/x?region=eu") == "s3://bucket/x?region=eu"


def test_a_replayed_log_looks_like_the_run_itself():
    events = io.StringIO()
    log = RunLog("a", [events])
    log.write("stage_reused", stage="ingest", reason="done on Monday")
    log.write("stage_started", stage="score", reason="not done yet")
    log.write("stage_finished", stage="score", seconds=1.5, counts={"pairs": 1200})
    log.write("warning", stage="score", text="one is null")
    text = "starting [up]\n" + events.getvalue() + '{"json": "of somebody else"}\nlast'

    direct, replayed = io.StringIO(), io.StringIO()
    display = RunDisplay(Console(file=direct, width=100))
    display.console.print("starting [up]", markup=False)
    display.reused("ingest", "done on Monday")
    line = display.start("score", "not done yet")
    display.finish("score", line, 1.5, {"pairs": 1200})
    display.warn("one is null")
    display.console.print('{"json": "of somebody else"}\nlast', highlight=False)
    replay = RunReplay(RunDisplay(Console(file=replayed, width=100)))
    for start in range(0, len(text), 7):  # output arrives in pieces cut anywhere
        replay.feed(text[start : start + 7])
    replay.close()
    assert replayed.getvalue() == direct.getvalue()
    assert json.loads(events.getvalue().splitlines()[0])["run"] == "a"
