"""Who a program runs as, and what it may do.

A program has a user namespace of its own below the node's. Where root started the runtime all ids mean the same in
both, and the program takes the ids that were asked for. Where somebody else did, the one id that this person has is
called inside what was asked for.
"""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterable
from pathlib import Path

from shoal.cluster.node.process.runtime.protocol import Ids
from shoal.cluster.node.process.runtime.syscalls import (
    PR_CAP_AMBIENT,
    PR_CAP_AMBIENT_CLEAR_ALL,
    PR_CAPBSET_DROP,
    PR_SET_NO_NEW_PRIVS,
    prctl,
    set_capabilities,
)

CAPABILITIES = (
    *("CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP"),
    *("LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER"),
    *("SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE"),
    *("SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP"),
    *("MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF"),
    "CHECKPOINT_RESTORE",
)
"""In the order of the kernel's numbers, from 0."""
MOST_FILES = 1024 * 1024


def id_maps(ids: Ids, *, has_all_ids: bool, known: str = "0 0 4294967295") -> tuple[str, str]:
    """How users and groups of a program's namespace are called in the node's, given the map of that one's."""
    if has_all_ids:
        extents = [line.split() for line in known.splitlines()]
        same = "".join(f"{first} {first} {count}\n" for first, _, count in extents)
        return same, same
    return f"{ids.user} 0 1\n", f"{ids.group} 0 1\n"


def write_id_maps(pid: int, ids: Ids, *, has_all_ids: bool) -> None:
    """Gives a process in a new user namespace its ids; for one who has all rights in the namespace above."""
    known = Path("/proc/self/uid_map").read_text()
    for name, entry in zip(("uid_map", "gid_map"), id_maps(ids, has_all_ids=has_all_ids, known=known), strict=True):
        descriptor = os.open(f"/proc/{pid}/{name}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, entry.encode())
        finally:
            os.close(descriptor)


def bits(capabilities: Iterable[str]) -> int:
    """The mask of some capabilities; those that no kernel knows are none."""
    numbers = {name: number for number, name in enumerate(CAPABILITIES)}
    return sum({1 << numbers[name] for name in capabilities if name in numbers})


def take_ids(ids: Ids) -> None:
    """Becomes another user, for good."""
    os.setgroups(ids.groups)
    os.setresgid(ids.group, ids.group, ids.group)
    os.setresuid(ids.user, ids.user, ids.user)


def hear_signals_of(ids: Ids) -> None:
    """Lets a user send signals to this process, as to one of his own; what it may do stays as it is."""
    os.setresuid(ids.user, -1, -1)


def bound_capabilities(capabilities: Iterable[str]) -> None:
    """Sees to it that neither this process nor a program that it executes has others, whoever it becomes."""
    kept = bits(capabilities)
    for number in range(64):
        if kept >> number & 1:
            continue
        try:
            prctl(PR_CAPBSET_DROP, number)
        except OSError as error:
            if error.errno == errno.EINVAL:  # more than this kernel has
                break
            raise
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)


def keep_capabilities(capabilities: Iterable[str]) -> None:
    """Lets go of all others; a user that is not root loses these too when it executes a program."""
    kept = bits(capabilities) if os.geteuid() == 0 else 0
    set_capabilities(effective=kept, permitted=kept, inheritable=0)


def forbid_new_privileges() -> None:
    """Lets programs that this process executes give it nothing more, such as those that run as their owner."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def limit_processes(most: int | None) -> None:
    """Bounds the processes of this user namespace that are this user's; it binds everybody but the machine's root.

    It would not do to say so before the namespace is made: that one would then bear a bound on all processes of whoever
    made it, and so on those of its neighbours.
    """
    if most is None:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    if hard != resource.RLIM_INFINITY:
        most = min(most, max(hard // 2, 1))  # the other half is for all others that this user runs
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def set_limits() -> None:
    """What programs in containers find: no core dumps, and as many open files as may be."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
