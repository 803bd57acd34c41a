"""What can go wrong with ``shoal up`` on a machine: one clear sentence, the right code, nothing left behind."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from shoal.cluster.kubernetes.admin import Refused
from tests.support.clusters.shoal_up import SHOAL, Shoal
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

SEED = 20260802
NOTES = "/api/v1/namespaces/default/configmaps"


def processes(data_dir: Path) -> list[int]:
    """Those that were started for a data dir, as their command lines tell; forked ones have their parent's."""
    found = []
    own = [f"--data-dir={data_dir}\0".encode(), f"={data_dir}/".encode()]
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if any(part in line for part in own):
            found.append(int(path.parent.name))
    return found


@pytest.fixture
def shoal(tmp_path: Path) -> Iterator[Shoal]:
    """As people have it: with this machine as a node."""
    shoal = Shoal(tmp_path / "data", has_local_node=True)
    yield shoal
    shoal("down")
    assert processes(shoal.data_dir) == []


@pytest.fixture(scope="module")
def data_of_a_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a Shoal leaves that ran, and was stopped."""
    shoal = Shoal(tmp_path_factory.mktemp("used") / "data", has_local_node=True)
    assert_works(shoal)
    return shoal.data_dir


@pytest.fixture
def used(shoal: Shoal, data_of_a_run: Path) -> Shoal:
    """A Shoal that ran before, and is stopped."""
    shutil.copytree(data_of_a_run, shoal.data_dir, symlinks=True, ignore=sockets)
    return shoal


def sockets(folder: str, names: list[str]) -> list[str]:
    """The sockets of a folder, which nobody listens on any more and which cannot be copied."""
    return [name for name in names if Path(folder, name).is_socket()]


def as_anyone(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end with no more than a plain user's rights to files: root's are taken from it."""
    if os.geteuid() == 0:
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("root without setpriv may read and write everything")
        rights = "-dac_override,-dac_read_search"
        command = [setpriv, f"--bounding-set={rights}", f"--inh-caps={rights}", *command]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def assert_refused(result: subprocess.CompletedProcess[str], code: int, said: str) -> None:
    assert said in result.stderr
    assert (result.returncode, result.stdout) == (code, ""), result
    assert result.stderr.startswith("shoal: ")
    assert len(result.stderr.splitlines()) == 1, result.stderr


def assert_works(shoal: Shoal) -> None:
    with shoal.foreground() as (process, line):
        assert line.startswith("Shoal is ready")
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0


# Folders


def test_where_nothing_runs_that_is_said_and_nothing_is_made(shoal: Shoal) -> None:
    assert_refused(shoal("demo"), 1, f"not running in {shoal.data_dir}: start it with `shoal up`")
    for command, code in (("status", 1), ("down", 0)):
        said = shoal(command)
        assert (said.returncode, said.stdout) == (code, f"Shoal is not running in {shoal.data_dir}\n")
    assert not shoal.data_dir.exists()


def test_a_folder_that_cannot_be_written_is_named(used: Shoal, tmp_path: Path) -> None:
    used.data_dir.chmod(0o500)
    assert_refused(as_anyone(used.up()), 5, f"The data dir cannot be written: {used.data_dir}")
    used.data_dir.chmod(0o700)
    (tmp_path / "closed").mkdir(mode=0o500)
    inside = Shoal(tmp_path / "closed" / "data", has_local_node=True)
    assert_refused(as_anyone(inside.up()), 5, f"Permission denied: {inside.data_dir}")
    assert_works(used)


def test_a_kubeconfig_that_cannot_be_read_or_written_is_named(shoal: Shoal) -> None:
    with shoal.foreground():
        shoal.kubeconfig.chmod(0)
        demo = as_anyone([SHOAL, "demo", f"--data-dir={shoal.data_dir}"])
        assert_refused(demo, 1, f"{shoal.kubeconfig}: cannot be read: Permission denied")
    shoal("down")
    shoal.kubeconfig.unlink()
    shoal.kubeconfig.mkdir()
    assert_refused(shoal.starting(), 5, f"Is a directory: {shoal.kubeconfig}")
    shoal.kubeconfig.rmdir()
    assert_works(shoal)


def test_a_path_too_long_for_sockets_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    deep = Shoal(tmp_path / ("x" * 100) / "data")
    assert_refused(deep.starting(), 1, "is too long for sockets in it")
    assert not deep.data_dir.parent.exists()


def test_a_mistaken_engine_does_not_stick(shoal: Shoal) -> None:
    failed = shoal.starting("--engine=kube", "--kube-binaries=/proc/self/fd")
    assert_refused(failed, 5, "etcd and kube-apiserver not found")
    assert_works(shoal)


# Data


def of_a_newer_format(store: Path) -> str:
    content = bytearray(store.read_bytes())
    content[60:64] = (99).to_bytes(4, "big")  # SQLite's user_version
    store.write_bytes(content)
    return "it has format 99 and this version of Shoal reads format 1"


def with_damage(store: Path) -> str:
    content = bytearray(store.read_bytes())
    content[8192:32768] = bytes(32768 - 8192)
    store.write_bytes(content)
    return "it is damaged"


def cut_short(store: Path) -> str:
    store.write_bytes(store.read_bytes()[:50])
    return "it is damaged or no store at all"


@pytest.mark.parametrize("harm", [of_a_newer_format, with_damage, cut_short])
@pytest.mark.parametrize("detach", [pytest.param([], id="foreground"), pytest.param(["--detach"], id="detached")])
def test_data_that_cannot_be_read_are_named_and_left_alone(
    used: Shoal, harm: Callable[[Path], str], detach: list[str]
) -> None:
    store = used.data_dir / "store" / "objects.db"
    said = harm(store)
    harmed = store.read_bytes()
    assert_refused(used.starting(*detach), 1, f"{store} cannot be read: {said}")
    assert store.read_bytes() == harmed
    assert used.status()["running"] is False


def test_data_of_an_unknown_engine_are_left_alone(used: Shoal) -> None:
    (used.data_dir / "engine").write_text("tomorrow\n")
    assert_refused(used.starting(), 1, "was made with an engine 'tomorrow' that this version of Shoal does not know")


# A full disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts a file system of a given size."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mounted(size: str) -> Path:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, check=False
        )
        if done.returncode:
            pytest.skip("only root can mount a small disk")
        return folder

    yield mounted
    if folder.is_mount():
        subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("size", ["4k", "16k", "64k", "200k"])
@pytest.mark.parametrize("detach", [pytest.param([], id="foreground"), pytest.param(["--detach"], id="detached")])
def test_a_start_on_a_full_disk_says_so(small_disk: Callable[[str], Path], size: str, detach: list[str]) -> None:
    shoal = Shoal(small_disk(size) / "data", has_local_node=True)
    failed = shoal.starting(*detach)
    assert failed.returncode == 5
    assert "No space left on device: /" in failed.stderr or "disk is full" in failed.stderr
    assert len(failed.stderr.splitlines()) == 1
    assert processes(shoal.data_dir) == []


def put(shoal: Shoal, name: str) -> None:
    shoal.admin.request("POST", NOTES, {"metadata": {"name": name}, "data": {"filler": "x" * 5000}})


def names(shoal: Shoal) -> set[str]:
    return {one["metadata"]["name"] for one in shoal.objects(NOTES)} - {"kube-root-ca.crt"}


def fill(filler: Path) -> None:
    """Writes a file that takes all the room there is."""
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass


def assert_disk_is_full(shoal: Shoal) -> None:
    for _ in range(5):
        with pytest.raises(Refused, match=r"the storage refused the write: .*objects\.db could not be written"):
            put(shoal, "refused")
    assert names(shoal) == {"kept"}
    said = shoal("status")
    assert (said.returncode, "not ready" in said.stdout) == (1, True)


def assert_recovered(shoal: Shoal) -> None:
    wait_until(lambda: shoal("status").returncode == 0, "Shoal to be ready again", within=45)
    put(shoal, "afterwards")
    assert names(shoal) == {"kept", "afterwards"}
    container = {"name": "main", "image": "none", "command": ["true"]}
    pod: dict[str, Any] = {"restartPolicy": "Never", "containers": [container]}
    job: dict[str, Any] = {"metadata": {"name": "one"}, "spec": {"template": {"spec": pod}}}
    shoal.admin.request("POST", "/apis/batch/v1/namespaces/default/jobs", job)
    wait_until(
        lambda: shoal.objects("/apis/batch/v1/namespaces/default/jobs")[0].get("status", {}).get("succeeded"),
        "a job to succeed",
    )


def test_while_the_disk_is_full_writes_are_refused_and_when_there_is_room_all_goes_on(
    small_disk: Callable[[str], Path],
) -> None:
    disk = small_disk("16m")
    shoal = Shoal(disk / "data", has_local_node=True)
    with shoal.foreground("--sim=2x0") as (process, _):
        put(shoal, "kept")
        filler = disk / "filler"
        fill(filler)
        assert_disk_is_full(shoal)
        for part in ("controllers", "portal", "containers", "node", "network"):
            os.kill(shoal.part(part)["pid"], signal.SIGKILL)
        time.sleep(1)  # they are started again, or not, with nowhere to note it
        assert_disk_is_full(shoal)
        os.kill(shoal.part("api")["pid"], signal.SIGKILL)
        time.sleep(1)
        assert process.poll() is None
        filler.unlink()
        assert_recovered(shoal)
        restarts = {part["name"]: part["restarts"] for part in shoal.status()["parts"]}
        assert (restarts["controllers"], restarts["portal"]) == (1, 1)
        process.terminate()
        assert process.wait(10) == 0


def test_a_limit_of_the_system_on_files_is_survived_too(shoal: Shoal) -> None:
    with shoal.foreground("--sim=2x0"):
        put(shoal, "kept")
        api = shoal.part("api")["pid"]
        _, hard = resource.prlimit(api, resource.RLIMIT_FSIZE)
        resource.prlimit(api, resource.RLIMIT_FSIZE, (4096, hard))
        assert_disk_is_full(shoal)
        resource.prlimit(api, resource.RLIMIT_FSIZE, (hard, hard))
        assert_recovered(shoal)
        assert shoal.part("api")["restarts"] == 0


# Signals and terminals


def start_time(shoal: Shoal) -> float:
    """How long a start takes on this machine, now."""
    started = time.monotonic()
    assert_works(shoal)
    return max(1.5, time.monotonic() - started)


def moments(count: int, *, within: float) -> list[float]:
    """Moments of a time, one by chance in each of so many equal parts of it."""
    chance = random.Random(SEED)
    return [within * (part + chance.random()) / count for part in range(count)]


@pytest.mark.timeout(300)
def test_ctrl_c_ends_a_start_at_any_moment(shoal: Shoal) -> None:
    for delay in moments(8, within=start_time(shoal)):
        with subprocess.Popen(shoal.up(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            asked = time.monotonic()
            output, problems = process.communicate(timeout=15)
        case = f"seed {SEED}, after {delay:.2f} s: exit code {process.returncode}\n{output}{problems}"
        assert time.monotonic() - asked < 10, case
        # Before Python has begun to listen, the system ends it.
        assert process.returncode in (0, 3, -signal.SIGINT), case
        assert process.returncode == -signal.SIGINT or "Traceback" not in problems, case
        assert (process.returncode == 0) == ("Shoal is ready" in output), case
        assert process.returncode != 3 or problems.endswith("shoal: cancelled\n") or not problems, case
        assert processes(shoal.data_dir) == [], case
    assert_works(shoal)


@pytest.mark.timeout(300)
def test_ctrl_c_ends_a_detached_start_at_any_moment(shoal: Shoal) -> None:
    for delay in moments(4, within=start_time(shoal)):
        with subprocess.Popen(
            shoal.up("--detach"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            output, problems = process.communicate(timeout=15)
        case = f"seed {SEED}, after {delay:.2f} s: exit code {process.returncode}\n{output}{problems}"
        assert process.returncode in (0, 3, -signal.SIGINT), case
        if process.returncode == 0:
            assert shoal("down").stdout == "Shoal is stopped\n", case
        assert processes(shoal.data_dir) == [], case
    assert_works(shoal)


def test_closing_the_terminal_ends_it(shoal: Shoal) -> None:
    keyboard, screen = os.openpty()
    in_terminal = ["setsid", "--ctty", *shoal.up()]
    with subprocess.Popen(in_terminal, stdin=screen, stdout=screen, stderr=screen) as process:
        os.close(screen)
        shown = b""
        while b"Shoal is ready" not in shown:
            try:
                shown += os.read(keyboard, 1024)
            except OSError:
                pytest.fail(f"it ended before it was ready: {shown.decode()}")
        os.close(keyboard)
        process.wait(30)
    assert processes(shoal.data_dir) == []
    assert shoal.status()["running"] is False


@pytest.mark.parametrize("closed", [">&- 2>&-", "<&-", "| head -n 1"])
def test_it_runs_on_where_nobody_reads_what_it_says(shoal: Shoal, closed: str) -> None:
    command = ["/bin/sh", "-c", f'"$@" {closed}', "sh", *shoal.up()]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        wait_until((shoal.data_dir / "endpoints.json").exists, "Shoal to be ready")
        os.kill(shoal.part("portal")["pid"], signal.SIGKILL)  # of which it would like to tell
        wait_until(lambda: shoal.part("portal")["restarts"] == 1, "the portal to be started again")
        assert shoal("down").stdout == "Shoal is stopped\n"
        assert process.wait(10) == 0
