from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.cluster.kubernetes.processes import LARGEST_OLD_LOG, Child, Spawner, end_all
from tests.support.waiting import is_alive, wait_until

SLEEP = ["/bin/sleep", "300"]
STUBBORN = ["/bin/sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 0.05; done"]


@pytest.fixture
def spawner() -> Iterator[Spawner]:
    spawner = Spawner()
    yield spawner
    spawner.close()


def start(spawner: Spawner, command: list[str], folder: Path) -> Child:
    return spawner.spawn("part", command, folder=folder, log=folder / "part.log", environment=os.environ)


def command_of(child: Child) -> str:
    return Path(f"/proc/{child.pid}/comm").read_text().strip()


def test_a_child_outlives_the_thread_that_asked_for_it(spawner: Spawner, tmp_path: Path) -> None:
    started: list[Child] = []
    thread = threading.Thread(target=lambda: started.append(start(spawner, SLEEP, tmp_path)))
    thread.start()
    thread.join()
    wait_until(lambda: command_of(started[0]) == "sleep", "the child to become sleep")
    assert started[0].is_running
    started[0].kill()


def test_closing_the_spawner_ends_what_is_left(spawner: Spawner, tmp_path: Path) -> None:
    child = start(spawner, SLEEP, tmp_path)
    spawner.close()
    assert child.ending() == "was ended by SIGKILL"


def test_children_end_when_the_parent_is_killed(tmp_path: Path) -> None:
    program = f"""
import os, time
from pathlib import Path
from shoal.cluster.kubernetes.processes import Spawner
spawner = Spawner()
child = spawner.spawn("part", {SLEEP!r}, folder=Path({str(tmp_path)!r}), log=Path({str(tmp_path / "log")!r}),
                      environment=os.environ)
print(child.pid, flush=True)
time.sleep(300)
"""
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        child = int(parent.stdout.readline())
    assert is_alive(child)
    parent.kill()
    parent.wait()
    wait_until(lambda: not is_alive(child), "the child to end")


def test_a_child_that_does_not_listen_is_killed_when_its_grace_is_over(spawner: Spawner, tmp_path: Path) -> None:
    child = start(spawner, STUBBORN, tmp_path)
    wait_until(lambda: "deaf" in child.log_tail(), "the trap to be set")
    started = time.monotonic()
    end_all([child], grace=0.2)
    assert time.monotonic() - started >= 0.2
    assert child.ending() == "was ended by SIGKILL"


def test_a_child_that_listens_ends_by_itself_even_while_paused(spawner: Spawner, tmp_path: Path) -> None:
    child = start(spawner, SLEEP, tmp_path)
    wait_until(lambda: command_of(child) == "sleep", "the child to become sleep")
    child.pause()
    end_all([child], grace=30)
    assert child.ending() == "was ended by SIGTERM"


def test_the_log_tail_is_that_of_the_last_run(spawner: Spawner, tmp_path: Path) -> None:
    for word in ("first", "second"):
        child = start(spawner, ["/bin/sh", "-c", f"echo {word}; echo {word} >&2; exit 3"], tmp_path)
        assert child.has_ended_by(time.monotonic() + 30)
        assert child.log_tail() == f"{word}\n{word}"
        assert child.ending() == "exited with status 3"
    assert (tmp_path / "part.log").read_text().split() == ["first", "first", "second", "second"]


def test_a_log_that_has_grown_too_big_begins_anew(spawner: Spawner, tmp_path: Path) -> None:
    with (tmp_path / "part.log").open("wb") as log:
        log.truncate(LARGEST_OLD_LOG + 1)
    child = start(spawner, ["/bin/echo", "fresh"], tmp_path)
    assert child.has_ended_by(time.monotonic() + 30)
    assert (tmp_path / "part.log").read_text() == "fresh\n"


def test_a_program_that_does_not_exist_says_so_in_its_log(spawner: Spawner, tmp_path: Path) -> None:
    child = start(spawner, ["/no/such/program"], tmp_path)
    assert child.has_ended_by(time.monotonic() + 30)
    assert "No such file or directory" in child.log_tail()
