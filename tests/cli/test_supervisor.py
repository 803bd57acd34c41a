"""The supervisor's own loop, in a process of its own, with children that do next to nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from shoal.cli.children import Reporter
from shoal.cli.data_dir import DataDir
from shoal.cli.supervisor import Plan, Process, stopping_on_signals, supervise


def wait(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit("what was waited for did not come")
        time.sleep(0.01)


def idle(reporter: Reporter) -> None:
    reporter.ready()
    signal.pause()


def a_pipe_outlives_its_process(folder: Path) -> None:
    supervisor = os.getpid()
    died, again, closed = (folder / name for name in ("died", "again", "closed"))

    def leaves_a_child(reporter: Reporter) -> None:
        reporter.ready()
        if died.exists():
            again.touch()
            signal.pause()
        if os.fork() == 0:
            wait(again.exists)
            closed.touch()
            os._exit(0)
        died.touch()

    def tells(reporter: Reporter) -> None:
        """Started after the other, so it has inherited what the supervisor reads the other by."""
        reporter.ready()
        while not closed.exists():
            reporter.parts([])
            time.sleep(0.01)
        time.sleep(0.2)
        os.kill(supervisor, signal.SIGTERM)
        signal.pause()

    place = DataDir(folder / "data")
    plan = Plan(
        server=Process(name="server", main=idle),
        clients=lambda: [Process(name="mother", main=leaves_a_child), Process(name="teller", main=tells)],
    )
    with stopping_on_signals() as stop, place.held(supervisor):
        supervise(plan, place, stop=stop, announce=lambda: None)


def test_a_process_whose_pipe_outlives_it_is_started_again_and_the_pipe_is_forgotten(tmp_path: Path) -> None:
    """Its end is noticed because another told something; when its pipe closes at last nobody listens any more."""
    done = subprocess.run(
        [sys.executable, __file__, str(tmp_path)], check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert "mother exited (0): it is started again in 0.5 s" in done.stderr
    assert (tmp_path / "closed").exists()


if __name__ == "__main__":
    a_pipe_outlives_its_process(Path(sys.argv[1]))
