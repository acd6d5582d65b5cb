import io

from rich.console import Console

from pipeline.run import progress
from pipeline.run.progress import RunDisplay, show


def run_a_stage(console):
    with RunDisplay(console) as display:
        display.reused("ingest", "done on Monday")
        line = display.start("train", "not done yet")
        line.update(1, 4, "epoch 1")
        display.finish("train", line, 1.25, {"valid_auc": 0.91234, "links": 12345})
        display.warn("look here")


def test_plain_lines_where_there_is_no_terminal(monkeypatch):
    monkeypatch.setattr(progress, "PLAIN_SECONDS", 0)
    out = io.StringIO()
    run_a_stage(Console(file=out, width=200))
    assert out.getvalue().splitlines() == [
        "  ingest     reused  done on Monday",
        "  train      started  not done yet",
        "  train       25 %    epoch 1",
        "  train      done    1.2 s  valid auc 0.9123, links 12,345",
        "  warning: look here",
    ]


def test_a_log_does_not_say_twice_what_has_not_changed(monkeypatch):
    monkeypatch.setattr(progress, "PLAIN_SECONDS", 0)
    out = io.StringIO()
    with RunDisplay(Console(file=out, width=200)) as display:
        line = display.start("train", "not done yet")
        for done, note in ((0, "starting"), (0, "starting"), (1, "starting"), (1, "epoch 1")):
            line.update(done, 4, note)
    assert [text.split()[-1] for text in out.getvalue().splitlines()[1:]] == ["starting"] * 2 + [
        "1"
    ]


def test_a_live_display_on_a_terminal():
    out = io.StringIO()
    run_a_stage(Console(file=out, width=200, force_terminal=True))
    assert "not done yet" in out.getvalue()
    assert "links 12,345" in out.getvalue()


def test_numbers_are_shown_as_people_write_them():
    assert [show(v) for v in (1234567, 0.123456, "x", True)] == ["1,234,567", "0.1235", "x", "True"]
