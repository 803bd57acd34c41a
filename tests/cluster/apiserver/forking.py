"""Starts ``shoal apiserver`` again and again from a process that has its modules loaded already.

Three quarters of a start are imports, which no kill can harm. Each server is a process of its own that runs the real
command from there on. Asked by lines on standard input, each a JSON list of arguments; every server's output follows a
line ``began PROCESS`` and is followed by ``ended CODE``.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import NoReturn

LOADED = ("shoal.cli.app", "shoal.cluster.apiserver.server", "typer._adapters", "typer.rich_utils", "uvloop")


def main() -> None:
    """Forks one server after another, until nothing more is asked for."""
    for module in LOADED:
        importlib.import_module(module)
    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            become_server(json.loads(line))
        _, status = os.waitpid(process, 0)
        print("ended", os.waitstatus_to_exitcode(status), flush=True)


def become_server(arguments: list[str]) -> NoReturn:
    """Runs the command to its end."""
    from shoal.cli import main as command  # noqa: PLC0415

    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    print("began", os.getpid(), flush=True)
    sys.argv = ["shoal", "apiserver", *arguments]
    sys.exit(command())


if __name__ == "__main__":
    main()
