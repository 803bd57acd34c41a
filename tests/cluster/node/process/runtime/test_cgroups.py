"""Control groups: with the real kernel where it lets us make some; files of the other form over a folder."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.cluster.node.process.runtime.cgroup_places import LEAF, Place, candidates, own_places
from shoal.cluster.node.process.runtime.cgroups import Cgroup, Cgroups, Reading, Setting, join, settings, weight
from shoal.cluster.node.process.runtime.protocol import Limits
from tests.support.programs.ordinary_user import USER, as_ordinary_user

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

CONTAINER = "0123456789abcdef" * 4
MIB = 1 << 20


@pytest.fixture
def cgroups() -> Iterator[Cgroups]:
    found = Cgroups.detect()
    if found is None:
        pytest.skip("no control groups can be made here")
    yield found
    found.close()
    assert all(not folder.exists() for folder in found._folders.values())


def run(group: Cgroup, program: str) -> subprocess.CompletedProcess[str]:
    """Runs a program of Python in a group."""
    return subprocess.run(
        [sys.executable, "-c", program],
        preexec_fn=lambda: join(group.folders),
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


def start(group: Cgroup, *command: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, preexec_fn=lambda: join(group.folders), stdin=pipe, stdout=pipe)  # noqa: PLW1509 - no threads


# With the kernel


def test_who_uses_more_memory_than_allowed_is_ended_and_told_from_one_that_was_killed(cgroups: Cgroups) -> None:
    hog, other = cgroups.make(CONTAINER, Limits(memory_bytes=64 * MIB)), cgroups.make("f" * 64, Limits())
    ended = run(hog, f"hold = [b'x' * {MIB} for _ in range(256)]")
    killed = run(other, "import os; os.kill(os.getpid(), 9)")
    assert (ended.returncode, killed.returncode) == (-signal.SIGKILL, -signal.SIGKILL)
    assert (hog.was_out_of_memory(), other.was_out_of_memory()) == (True, False)
    hog.remove()
    other.remove()


def test_a_fork_bomb_ends_at_the_limit_of_processes(cgroups: Cgroups) -> None:
    group = cgroups.make(CONTAINER, Limits(processes=20))
    bomb = """
import os, signal, time
count = 1
try:
    while count < 100:
        if os.fork() == 0:
            os.closerange(0, 3)
            time.sleep(60)
            os._exit(0)
        count += 1
except BlockingIOError:
    print(count)
"""
    assert run(group, bomb).stdout.split() == ["20"]
    assert group.reading().processes == 19
    group.kill()
    group.remove()
    assert not any(folder.exists() for folder in group.folders)


def test_cpu_time_is_limited_and_counted(cgroups: Cgroups) -> None:
    group = cgroups.make(CONTAINER, Limits(cpu_cores=0.2, cpu_shares=512))
    burn = "import time; end = time.monotonic() + 1\nwhile time.monotonic() < end: pass\nprint(time.process_time())"
    used = float(run(group, burn).stdout)
    assert used < 0.5
    counted = group.reading().cpu_seconds
    assert counted is not None
    assert counted == pytest.approx(used, abs=0.15)
    group.remove()


def test_memory_that_is_held_is_counted(cgroups: Cgroups) -> None:
    group = cgroups.make(CONTAINER, Limits())
    program = f"import sys; hold = b'x' * {32 * MIB}; print(flush=True); sys.stdin.read()"
    with start(group, sys.executable, "-c", program) as process:
        assert process.stdout is not None
        process.stdout.readline()
        reading = group.reading()
        process.communicate()
    assert reading.memory_bytes is not None
    assert 32 * MIB <= reading.memory_bytes < 64 * MIB
    assert reading.processes == 1
    group.remove()


def test_a_group_whose_process_is_slow_to_go_is_removed_with_the_next(cgroups: Cgroups) -> None:
    busy, next_one = cgroups.make("a" * 64, Limits()), cgroups.make("b" * 64, Limits())
    with start(busy, "sleep", "60") as process:
        busy.remove()
        assert all(folder.exists() for folder in busy.folders)
        process.kill()
    next_one.remove()
    assert not any(folder.exists() for folder in (*busy.folders, *next_one.folders))


def test_a_limit_that_the_kernel_refuses_is_told_and_leaves_nothing(cgroups: Cgroups) -> None:
    with pytest.raises(OSError, match=r"Invalid argument \(writing -7 to .*pids\.max\)"):
        cgroups.make(CONTAINER, Limits(processes=-7))
    assert not any((folder / CONTAINER[:12]).exists() for folder in cgroups._folders.values())


RUNTIME = """
import subprocess, sys
from shoal.cluster.node.process.runtime.cgroups import Cgroups, join
from shoal.cluster.node.process.runtime.protocol import Limits
found = Cgroups.detect()
group = found.make("c" * 64, Limits())
child = subprocess.Popen(["sleep", "60"], preexec_fn=lambda: join(group.folders))
print(child.pid, *group.folders, flush=True)
sys.stdin.read()
"""


def test_what_a_killed_runtime_left_is_ended_and_that_of_a_living_one_is_not_touched(cgroups: Cgroups) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", RUNTIME], stdin=pipe, stdout=pipe, text=True) as runtime:
        assert runtime.stdout is not None
        pid, *folders = runtime.stdout.readline().split()
        cgroups.remove_stale()
        assert all(Path(folder).exists() for folder in folders)
        os.kill(int(pid), 0)
        runtime.kill()
        runtime.wait()
        assert Path(f"/proc/{pid}").exists()
        cgroups.remove_stale()
    deadline = time.monotonic() + 5
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
        assert time.monotonic() < deadline
    assert not any(Path(folder).parent.exists() for folder in folders)


STARTING = """
import os
from shoal.cluster.node.process.runtime.cgroups import Cgroups, join
for _ in range(100):
    child = os.fork()
    if child == 0:
        found = Cgroups.detect()
        print(*sorted(found.controllers), *sorted(path.exists() for path in found._folders.values()), flush=True)
        found.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


def test_a_runtime_that_starts_keeps_its_groups_though_another_removes_what_is_left(cgroups: Cgroups) -> None:
    with subprocess.Popen([sys.executable, "-c", STARTING], stdout=subprocess.PIPE, text=True) as starting:
        while starting.poll() is None:
            cgroups.remove_stale()
        assert starting.stdout is not None
        told = starting.stdout.read().splitlines()
    every = " ".join([*sorted(cgroups.controllers), *["True"] * len(cgroups._folders)])
    assert (starting.returncode, told) == (0, [every] * 100)


NESTED = """
import ctypes, os
from shoal.cluster.node.process.runtime.cgroups import Cgroups, join
from shoal.cluster.node.process.runtime.protocol import Limits
reader, writer = os.pipe()
helper = os.fork()
if helper == 0:
    os.read(reader, 1)
    for name in ("uid_map", "gid_map"):
        with open(f"/proc/{os.getppid()}/{name}", "w") as file:
            file.write("0 0 4294967295")
    os._exit(0)
assert ctypes.CDLL(None).unshare(0x10000000 | 0x00020000) == 0
os.write(writer, b"x")
assert os.waitpid(helper, 0)[1] == 0
found = Cgroups.detect()
group = found.make("d" * 64, Limits(memory_bytes=1 << 26, cpu_cores=1, processes=9))
child = os.fork()
if child == 0:
    join(group.folders)
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
group.remove()
found.close()
print(found.kind)
"""


def test_groups_can_be_made_in_a_user_namespace_with_the_ids_of_the_machine(cgroups: Cgroups) -> None:
    if os.getuid() != 0:
        pytest.skip("only root maps all ids")
    done = subprocess.run([sys.executable, "-c", NESTED], capture_output=True, text=True, check=True, timeout=20)
    assert done.stdout.split() == [cgroups.kind]


ORDINARY = """
import os
from shoal.cluster.node.process.runtime.cgroups import Cgroups, join
from shoal.cluster.node.process.runtime.protocol import Limits
found = Cgroups.detect()
print(*found.controllers if found else [])
if found:
    group = found.make("e" * 64, Limits(memory_bytes=1 << 26, processes=9))
    child = os.fork()
    if child == 0:
        join(group.folders)
        os._exit(0)
    os.waitpid(child, 0)
    group.remove()
    print(*found.shortfalls(), sep="\\n")
    found.close()
"""


def test_an_ordinary_user_without_a_group_of_its_own_has_none() -> None:
    if os.getuid() != 0:
        pytest.skip("an ordinary user may have been given a group")
    done = subprocess.run(
        as_ordinary_user(sys.executable, "-c", ORDINARY), capture_output=True, text=True, check=True, timeout=20
    )
    assert done.stdout.split() == []


def test_an_ordinary_user_uses_what_was_handed_to_it_and_says_what_was_not() -> None:
    tree = Path("/sys/fs/cgroup/pids")
    if os.getuid() != 0 or not (tree / "cgroup.procs").exists():
        pytest.skip("no tree of v1 that may be written")
    given = Cgroup("v1", {"pids": tree / f"test-{os.getpid()}"}, [])
    (folder,) = given.folders
    folder.mkdir()
    try:
        for path in (folder, folder / "cgroup.procs"):
            os.chown(path, USER, USER)
        done = subprocess.run(
            as_ordinary_user(sys.executable, "-c", ORDINARY),
            preexec_fn=lambda: join(given.folders),
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        )
        assert not [child for child in folder.iterdir() if child.is_dir()]
    finally:
        folder.rmdir()
    controllers, *shortfalls = done.stdout.splitlines()
    assert controllers == "pids"
    assert [sentence.partition(":")[0] for sentence in shortfalls] == [
        "the memory of containers is not limited",
        "the cpu time of containers is not limited",
    ]


MOVED = """
import os, sys
from pathlib import Path
from shoal.cluster.node.process.runtime.cgroup_places import homes
top, own, controller = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
(own / "cgroup.procs").write_text("0")
home, names = next(homes(top, own, [controller]))
print(home == own, names == [controller], Path("/proc/self/cgroup").read_text().rpartition("/")[2].strip())
"""


def test_in_v2_our_processes_move_to_a_leaf_before_controllers_are_handed_on() -> None:
    """The rule is the kernel's for every controller; here it is tried with whichever the unified tree has."""
    text = Path("/proc/self/mountinfo").read_text()
    place = next((one for one in own_places(text, "0::/") if one.kind == "v2"), None)
    if place is None or os.getuid() != 0:
        pytest.skip("no tree of v2 that may be written")
    there = (place.top / "cgroup.subtree_control").read_text().split()
    controllers = (place.top / "cgroup.controllers").read_text().split()
    if not controllers:
        pytest.skip("the tree of v2 has no controllers")
    chosen = (there or controllers)[0]
    if not there:
        (place.top / "cgroup.subtree_control").write_text(f"+{chosen}")
    own = place.top / f"test-{os.getpid()}"
    own.mkdir()
    try:
        arguments = [sys.executable, "-c", MOVED, str(place.top), str(own), chosen]
        done = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=20)
        assert done.stdout.split() == ["True", "True", LEAF]
    finally:
        (own / LEAF).rmdir()
        own.rmdir()
        if not there:
            (place.top / "cgroup.subtree_control").write_text(f"-{chosen}")


# Without it

ALL = Limits(memory_bytes=1 << 20, cpu_cores=1.5, cpu_shares=1024, processes=100)


@pytest.mark.parametrize(
    ("kind", "limits", "expected"),
    [
        ("v2", Limits(), []),
        ("v1", Limits(), []),
        (
            "v2",
            ALL,
            [
                Setting("memory", "memory.oom.group", "1", (errno.ENOENT,)),
                Setting("memory", "memory.swap.max", "0", (errno.ENOENT,)),
                Setting("memory", "memory.max", "1048576"),
                Setting("cpu", "cpu.max", "150000 100000"),
                Setting("cpu", "cpu.weight", "39"),
                Setting("pids", "pids.max", "100"),
            ],
        ),
        (
            "v1",
            ALL,
            [
                Setting("memory", "memory.limit_in_bytes", "1048576"),
                Setting("memory", "memory.memsw.limit_in_bytes", "1048576", (errno.ENOENT,)),
                Setting("cpu", "cpu.cfs_period_us", "100000"),
                Setting("cpu", "cpu.cfs_quota_us", "150000", (errno.EINVAL,)),
                Setting("cpu", "cpu.shares", "1024"),
                Setting("pids", "pids.max", "100"),
            ],
        ),
        ("v2", Limits(cpu_cores=0.001), [Setting("cpu", "cpu.max", "1000 100000")]),
        ("v1", Limits(cpu_shares=0), [Setting("cpu", "cpu.shares", "2")]),
        ("v2", Limits(cpu_shares=1 << 30), [Setting("cpu", "cpu.weight", "10000")]),
    ],
    ids=["nothing-v2", "nothing-v1", "all-v2", "all-v1", "least-quota", "least-shares", "most-shares"],
)
def test_limits_are_written_to_the_files_of_each_form(kind: str, limits: Limits, expected: list[Setting]) -> None:
    assert settings(kind, limits) == expected


@pytest.mark.parametrize(("shares", "expected"), [(2, 1), (102, 4), (1024, 39), (2048, 79), (262144, 10000)])
def test_shares_become_weights_as_kubelets_convert_them(shares: int, expected: int) -> None:
    assert weight(shares) == expected


HYBRID = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:5 - cgroup cgroup rw,cpu,cpuacct
33 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
34 31 0:33 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer
35 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
INSIDE = "40 31 0:40 /docker/abc /sys/fs/cgroup/memory ro,relatime - cgroup cgroup rw,memory\n"
UNIFIED = "30 23 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
CPU, MEMORY = frozenset({"cpu", "cpuacct"}), frozenset({"memory"})
TOP = Path("/sys/fs/cgroup")


@pytest.mark.parametrize(
    ("mountinfo", "membership", "expected"),
    [
        (UNIFIED, "0::/system.slice/a.service\n", [Place("v2", frozenset(), TOP, TOP / "system.slice/a.service")]),
        (UNIFIED, "0::/\n", [Place("v2", frozenset(), TOP, TOP)]),
        (UNIFIED, "0::/../other\n", [Place("v2", frozenset(), TOP, TOP)]),
        (
            HYBRID,
            "5:freezer:/x\n4:memory:/a\n1:cpu,cpuacct:/b/c\n0::/u\n",
            [
                Place("v1", CPU, TOP / "cpu,cpuacct", TOP / "cpu,cpuacct/b/c"),
                Place("v1", MEMORY, TOP / "memory", TOP / "memory/a"),
                Place("v2", frozenset(), TOP / "unified", TOP / "unified/u"),
            ],
        ),
        (INSIDE, "4:memory:/docker/abc\n", [Place("v1", MEMORY, TOP / "memory", TOP / "memory")]),
        (INSIDE, "4:memory:/docker/abc/d\n", [Place("v1", MEMORY, TOP / "memory", TOP / "memory/d")]),
        (INSIDE, "4:memory:/docker/abcd\n", [Place("v1", MEMORY, TOP / "memory", TOP / "memory")]),
        ("", "0::/\n", []),
    ],
    ids=["v2", "v2-root", "v2-outside", "hybrid", "v1-container", "v1-below", "v1-beside", "not-mounted"],
)
def test_our_own_groups_are_found(mountinfo: str, membership: str, expected: list[Place]) -> None:
    assert own_places(mountinfo, membership) == expected


def a_tree(top: Path, **groups: dict[str, str]) -> None:
    """Folders with the files of groups of v2; ``__`` stands for ``/``, and the empty name for the top."""
    for name, files in groups.items():
        folder = top / name.strip("_").replace("__", "/")
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (folder / file.replace("_", ".", 1)).write_text(text)


HANDED = {"cgroup_controllers": "cpu memory pids", "cgroup_subtree_control": "cpu memory pids"}
FOREIGN = {
    "cgroup_controllers": "cpu memory pids",
    "cgroup_subtree_control": "",
    "cgroup_procs": "1\n",
    "cgroup_type": "domain",
}


@pytest.mark.parametrize(
    ("tree", "own", "expected"),
    [
        ({"_": HANDED, "a": HANDED}, "a", ["a", "."]),
        ({"_": HANDED, "a": HANDED, "a__shoal-self": {}}, "a/shoal-self", ["a", "."]),
        ({"_": HANDED, "a": HANDED | {"memory_max": "4096"}}, "a", ["a"]),
        ({"_": HANDED, "a": HANDED | {"cpu_max": "max 100000"}}, "a", ["a", "."]),
        ({"_": HANDED, "a": HANDED | {"cpu_max": "5000 100000"}}, "a", ["a"]),
    ],
    ids=["own", "own-leaf", "never-out-of-a-limit-of-memory", "not-limited", "never-out-of-a-limit-of-cpu"],
)
def test_in_v2_groups_are_made_below_our_own_or_near_it(
    tree: dict[str, dict[str, str]], own: str, expected: list[str], tmp_path: Path
) -> None:
    a_tree(tmp_path, **tree)
    found = [
        (kind, homes)
        for kind, homes in candidates([Place("v2", frozenset(), tmp_path, tmp_path / own)])
        if kind == "v2"
    ]
    assert [set(homes.values()) for _, homes in found] == [{tmp_path / name} for name in expected]
    assert all(homes.keys() == {"memory", "cpu", "pids"} for _, homes in found)


def test_in_v2_a_group_that_others_are_in_too_is_passed_by(tmp_path: Path) -> None:
    """Such as the scope of a terminal, in which the user's shell is."""
    a_tree(tmp_path, _=HANDED, scope=FOREIGN)
    kind, homes = next(candidates([Place("v2", frozenset(), tmp_path, tmp_path / "scope")]))
    assert (kind, homes) == ("v2", dict.fromkeys(("memory", "cpu", "pids"), tmp_path))
    assert not (tmp_path / "scope" / LEAF).exists()
    assert (tmp_path / "scope" / "cgroup.subtree_control").read_text() == ""


def test_in_v2_usage_is_read_from_one_folder(tmp_path: Path) -> None:
    a_tree(
        tmp_path,
        _={
            "cpu_stat": "usage_usec 2500000\nuser_usec 1\n",
            "memory_current": "5000\n",
            "memory_stat": "anon 7\ninactive_file 1000\n",
            "memory_events": "low 0\noom 1\noom_kill 1\n",
            "cgroup_procs": "12\n13\n",
        },
    )
    group = Cgroup("v2", dict.fromkeys(("memory", "cpu"), tmp_path), [])
    assert group.reading() == Reading(cpu_seconds=2.5, memory_bytes=4000, processes=2)
    assert group.was_out_of_memory()
    assert Cgroup("v2", {"pids": tmp_path}, []).reading().memory_bytes is None
