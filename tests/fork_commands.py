"""Starts `peg` in processes of their own, forked from one that has imported everything.

Requests and answers are lines of JSON on stdin and stdout: ``{"start": [arguments],
"output": file}`` gives the number of the process, ``{"poll": number}`` its exit code or null.
"""

import json
import os
import runpy
import sys

# what every command imports: the slow part of its start
import pipeline.cli
import pipeline.runner  # noqa: F401


def start(arguments: list[str], output: str) -> int:
    number = os.fork()
    if number:
        return number
    nothing = os.open(os.devnull, os.O_RDONLY)
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for source, target in ((nothing, 0), (file, 1), (file, 2)):
        os.dup2(source, target)
    sys.argv = ["peg", *arguments]
    runpy.run_module("pipeline", run_name="__main__", alter_sys=True)
    sys.exit(0)


def poll(number: int) -> int | None:
    ended, status = os.waitpid(number, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def serve() -> None:
    while line := sys.stdin.readline():
        request = json.loads(line)
        if "start" in request:
            answer = start(request["start"], request["output"])
        else:
            answer = poll(request["poll"])
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
