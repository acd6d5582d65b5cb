"""The command `peg`."""

from __future__ import annotations

import errno
import signal
import sys
from types import FrameType

import click
from rich.console import Console

from peg_core.errors import PegError
from pipeline.cli.lazy_group import LazyGroup

INTERRUPTED = 130
# The module of each command, and the first line of its help.
COMMANDS = {
    "completion": (
        "pipeline.cli.terminal.completion_command:completion",
        "Print what completes commands and options in SHELL.",
    ),
    "config": (
        "pipeline.cli.config_command:config",
        "Check a pipeline file, or describe the format to an editor.",
    ),
    "doctor": (
        "pipeline.cli.doctor_command:doctor",
        "Check Python, packages, Ray, token, disk, memory and limits, and say what to do.",
    ),
    "explain": (
        "pipeline.cli.results.explain_command:explain",
        "Show why a pair has its score, by the finished run of CONFIG.",
    ),
    "export": (
        "pipeline.cli.results.export_command:export",
        "Write embeddings or positions with your own ids as Parquet.",
    ),
    "gc": (
        "pipeline.cli.gc_command:gc",
        "Remove artifacts that no CONFIG and no schedule of the store reaches.",
    ),
    "generate": (
        "pipeline.cli.generate_command:generate",
        "Write a random graph as Parquet files.",
    ),
    "history": (
        "pipeline.cli.history_command:history",
        "Show the runs of STORE: a folder, a URL, or the pipeline file that names it.",
    ),
    "init": (
        "pipeline.cli.init.init_command:init",
        "Look at Parquet files and write a pipeline file for them.",
    ),
    "inspect": (
        "pipeline.cli.inspect_command:inspect",
        "Look into a graph, or compare two encodings; nothing is started or changed.",
    ),
    "jobs": (
        "pipeline.cli.jobs_command:jobs",
        "Look at, follow and stop the jobs of a Ray cluster.",
    ),
    "plan": (
        "pipeline.cli.plan_command:plan",
        "Show what `peg run` would do, why, and about what it would take; nothing is started.",
    ),
    "recommend": (
        "pipeline.cli.recommend_command:recommend",
        "Recommend new links, with the pipeline of the file CONFIG.",
    ),
    "reproduce": (
        "pipeline.cli.reproduce.reproduce_command:reproduce",
        "Run the experiment NAME, or all of them.",
    ),
    "run": ("pipeline.cli.run_command:run", "Run the pipeline of the file CONFIG."),
    "schedule": ("pipeline.cli.schedule_command:schedule", "Run pipelines at set times."),
    "score": ("pipeline.cli.score_command:score", "Score candidate pairs with a trained model."),
    "status": (
        "pipeline.cli.plan_command:status",
        "Show what exists of the pipeline of CONFIG, and who is working on it.",
    ),
    "submit": (
        "pipeline.cli.submit_command:submit",
        "Run the pipeline of the file CONFIG as a job on a Ray cluster.",
    ),
    "top": (
        "pipeline.cli.links.top_command:top",
        "Show the best scored candidates of the last run of CONFIG that are no links yet.",
    ),
    "verify": (
        "pipeline.cli.verify_command:verify",
        "Compare every artifact of STORE with what was written.",
    ),
}


@click.group(
    cls=LazyGroup,
    entries=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="peg-pipeline", prog_name="peg")
def cli() -> None:
    """Link prediction on graphs too large for a notebook.

    Parquet edge lists in, Parquet scores out; every stage can be interrupted and resumes
    where it stopped.

    \b
    peg init edges.parquet                  a pipeline file for tables of your own
    peg run configs/quickstart.yaml         from edges to scores and a report
    peg plan configs/quickstart.yaml        what would run, what is reused, and why
    peg top configs/quickstart.yaml         the best new links among the scored candidates
    peg recommend configs/quickstart.yaml   the best new links of every node
    peg explain CONFIG SRC DST              why a pair has its score
    peg score --help                        score more candidates, or another graph
    peg submit configs/quickstart.yaml ...  the same on a Ray cluster
    peg generate sbm --help                 make a graph to try things on
    """


def main() -> None:
    """Run the command; errors a user can act on are shown without a traceback."""
    _end_politely()
    errors = Console(stderr=True, highlight=False)
    try:
        cli.main(standalone_mode=False)
    except PegError as error:
        errors.print(f"[red]error:[/red] {_escape(error)}", soft_wrap=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        errors.print("stopped; finished work is kept: run the same command to go on")
        sys.exit(INTERRUPTED)
    except OSError as error:
        errors.print(f"[red]error:[/red] {_escape(_told(error))}", soft_wrap=True)
        sys.exit(1)


def _escape(error: object) -> str:
    return str(error).replace("[", "\\[")


def _told(error: OSError) -> str:
    """An error of the file system in words: the place, what is wrong, what to do."""
    place = error.filename2 or error.filename
    found = f"cannot use {place} ({error.strerror})" if place is not None else str(error)
    return f"{found}; {_advice(error)}"


def _advice(error: OSError) -> str:
    """What to do about an error of the file system."""
    if isinstance(error, NotADirectoryError | FileExistsError):
        return "a file stands where a folder is needed: move it away, or name another place"
    if isinstance(error, IsADirectoryError) or error.errno == errno.ENOTEMPTY:
        return "a folder stands where a file is needed: move it away, or name another place"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "make room there, and run again: finished work is kept"
    return "check space and permissions"


def _end_politely() -> None:
    """A kill, or a terminal that is closed, ends a run as Ctrl-C does; `nohup` stays as it is."""
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _terminate)


def _terminate(_number: int, _frame: FrameType | None) -> None:
    """A polite kill ends like Ctrl-C: tasks cancelled, lease given back."""
    raise KeyboardInterrupt
