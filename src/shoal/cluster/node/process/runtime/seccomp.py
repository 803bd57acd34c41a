"""The seccomp filter of containers with the profile ``RuntimeDefault``: system calls that programs do not need.

The filter refuses what the default profiles of container runtimes refuse: mounting, new namespaces (nested user
namespaces are where most kernel exploits start), keys, modules, the clock, BPF, io_uring, and AF_VSOCK, which leads to
the host of a virtual machine. Some are allowed with a capability, as there. Calls that are newer than this list do not
exist for the program (ENOSYS), which then does without them.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Collection

from shoal.cluster.node.process.runtime.syscalls import install_filter

_GENERIC = {
    **{"acct": 89, "add_key": 217, "bpf": 280, "clock_adjtime": 266, "clock_settime": 112, "clone": 220},
    **{"delete_module": 106, "fanotify_init": 262, "finit_module": 273, "init_module": 105, "kcmp": 272},
    **{"kexec_file_load": 294, "kexec_load": 104, "keyctl": 219, "lookup_dcookie": 18, "mount": 40, "nfsservctl": 42},
    **{"open_by_handle_at": 265, "perf_event_open": 241, "personality": 92, "pivot_root": 41, "quotactl": 60},
    **{"reboot": 142, "request_key": 218, "setdomainname": 162, "sethostname": 161, "setns": 268, "settimeofday": 170},
    **{"socket": 198, "swapoff": 225, "swapon": 224, "syslog": 116, "umount2": 39, "unshare": 97, "userfaultfd": 282},
    "vhangup": 58,
}
_X86_64 = {
    **{"acct": 163, "add_key": 248, "bpf": 321, "clock_adjtime": 305, "clock_settime": 227, "clone": 56},
    **{"create_module": 174, "delete_module": 176, "fanotify_init": 300, "finit_module": 313, "get_kernel_syms": 177},
    **{"init_module": 175, "ioperm": 173, "iopl": 172, "kcmp": 312, "kexec_file_load": 320, "kexec_load": 246},
    **{"keyctl": 250, "lookup_dcookie": 212, "mount": 165, "nfsservctl": 180, "open_by_handle_at": 304},
    **{"perf_event_open": 298, "personality": 135, "pivot_root": 155, "query_module": 178, "quotactl": 179},
    **{"reboot": 169, "request_key": 249, "setdomainname": 171, "sethostname": 170, "setns": 308},
    **{"settimeofday": 164, "socket": 41, "swapoff": 168, "swapon": 167, "sysfs": 139, "syslog": 103, "umount2": 166},
    **{"unshare": 272, "uselib": 134, "userfaultfd": 323, "ustat": 136, "vhangup": 153, "_sysctl": 156},
}
_SAME_EVERYWHERE = {
    **{"clone3": 435, "fsconfig": 431, "fsmount": 432, "fsopen": 430, "fspick": 433, "io_uring_enter": 426},
    **{"io_uring_register": 427, "io_uring_setup": 425, "mount_setattr": 442, "move_mount": 429, "open_tree": 428},
    **{"open_tree_attr": 467, "quotactl_fd": 443},
}
_NEWEST = 470
_MACHINES = {
    "x86_64": (0xC000003E, _X86_64),
    "aarch64": (0xC00000B7, _GENERIC),
    "riscv64": (0xC00000F3, _GENERIC),
    "loongarch64": (0xC0000102, _GENERIC),
}
"""By the kernel's names: how a filter is told the architecture, and the numbers of its calls."""
_ALLOWED_WITH = {
    "SYS_ADMIN": (
        *("bpf", "clone", "clone3", "fanotify_init", "fsconfig", "fsmount", "fsopen", "fspick", "lookup_dcookie"),
        *("mount", "mount_setattr", "move_mount", "open_tree", "open_tree_attr", "perf_event_open", "pivot_root"),
        *("quotactl", "quotactl_fd", "setdomainname", "sethostname", "setns", "syslog", "umount2", "unshare"),
    ),
    "BPF": ("bpf",),
    "DAC_READ_SEARCH": ("open_by_handle_at",),
    "PERFMON": ("perf_event_open",),
    "SYS_BOOT": ("reboot",),
    "SYS_MODULE": ("delete_module", "finit_module", "init_module"),
    "SYS_PACCT": ("acct",),
    "SYS_PTRACE": ("kcmp",),
    "SYS_RAWIO": ("ioperm", "iopl"),
    "SYS_TIME": ("clock_adjtime", "clock_settime", "settimeofday"),
    "SYS_TTY_CONFIG": ("vhangup",),
    "SYSLOG": ("syslog",),
}
_NEW_NAMESPACES = 0x7E020000
_AF_VSOCK = 40
_PERSONALITIES = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)
_OTHER_ABI = 0x40000000
"""The bit of x86's calls with short pointers."""

# Instructions of a filter, and where it finds what it looks at.
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000

Instruction = tuple[int, int, int, int]
"""Its code, how many to skip if it holds and if it does not, and its operand."""


def has_filter(machine: str = "") -> bool:
    """Whether there is a filter for this machine's architecture."""
    return (machine or os.uname().machine) in _MACHINES


def default_filter(capabilities: Collection[str], machine: str) -> list[Instruction]:
    """The filter for a program with these capabilities."""
    architecture, numbers = _MACHINES[machine]
    numbers = {**numbers, **_SAME_EVERYWHERE}
    allowed = {name for one in capabilities for name in _ALLOWED_WITH.get(one, ())}
    refuse, missing = (_RETURN, 0, 0, _REFUSE | errno.EPERM), (_RETURN, 0, 0, _REFUSE | errno.ENOSYS)
    allow: Instruction = (_RETURN, 0, 0, _ALLOW)
    made: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        missing,
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _OTHER_ABI),
        missing,
        (_AT_LEAST, 0, 1, _NEWEST + 1),
        missing,
    ]
    checks = {
        "clone": [(_LOAD, 0, 0, _FIRST_ARGUMENT), (_ANY_BIT, 0, 1, _NEW_NAMESPACES), refuse, allow],
        "clone3": [missing],  # what it makes cannot be looked at; programs go back to clone
        "socket": [(_LOAD, 0, 0, _FIRST_ARGUMENT), (_EQUAL, 0, 1, _AF_VSOCK), refuse, allow],
        "personality": [
            (_LOAD, 0, 0, _FIRST_ARGUMENT),
            *(step for value in _PERSONALITIES for step in ((_EQUAL, 0, 1, value), allow)),
            refuse,
        ],
    }
    for name, number in sorted(numbers.items()):
        if name not in allowed:
            steps = checks.get(name, [refuse])
            made += [(_EQUAL, 0, len(steps), number), *steps]
    return [*made, allow]


def refuse_calls(capabilities: Collection[str]) -> None:
    """Binds this process and all that it starts to the filter; for one that may administer its user namespace."""
    steps = default_filter(capabilities, os.uname().machine)
    install_filter(ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps)), len(steps))
