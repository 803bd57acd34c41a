"""The system calls that Python does not offer, as plain functions that raise ``OSError`` as those of ``os`` do.

Files and folders are named by str; flags are the kernel's own, under the kernel's own names.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal

# Kinds of namespaces
CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

# Mounts
MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_NOATIME = 0x400
MS_BIND = 0x1000
MS_MOVE = 0x2000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MS_SLAVE = 0x80000
MS_RELATIME = 0x200000
MNT_DETACH = 0x2
UMOUNT_NOFOLLOW = 0x8
MOUNT_ATTR_RDONLY = 0x1
MOUNT_ATTR_NOSUID = 0x2
MOUNT_ATTR_NODEV = 0x4
MOUNT_ATTR_NOEXEC = 0x8
AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
AT_RECURSIVE = 0x8000
OPEN_TREE_CLONE = 0x1
OPEN_TREE_CLOEXEC = os.O_CLOEXEC
MOVE_MOUNT_F_EMPTY_PATH = 0x4
RESOLVE_NO_MAGICLINKS = 0x2
RESOLVE_NO_SYMLINKS = 0x4

# prctl
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_KEEPCAPS = 8
PR_SET_NAME = 15
PR_CAPBSET_READ = 23
PR_CAPBSET_DROP = 24
PR_SET_SECUREBITS = 28
PR_SET_SECCOMP = 22
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
PR_CAP_AMBIENT_CLEAR_ALL = 4

# The same number on every architecture that has these calls.
_OPEN_TREE = 428
_MOVE_MOUNT = 429
_FSOPEN = 430
_FSCONFIG = 431
_FSMOUNT = 432
_OPENAT2 = 437
_MOUNT_SETATTR = 442
# A call that is older than that, by the kernel's own names of architectures.
_KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "loongarch64": 219, "ppc64le": 271, "s390x": 280}
_JOIN_SESSION_KEYRING = 1
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]
_libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
_libc.syscall.restype = ctypes.c_long


class _MountAttributes(ctypes.Structure):
    _fields_ = [
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("user_namespace", ctypes.c_uint64),
    ]


class _HowToOpen(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]


class _FilterProgram(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


class _CapabilityHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _CapabilityWord(ctypes.Structure):
    _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]


def unshare(flags: int) -> None:
    """Gives this process namespaces of its own."""
    _checked(_libc.unshare(ctypes.c_int(flags)))


def setns(descriptor: int, flags: int = 0) -> None:
    """Enters a namespace by its file, or by a pidfd those of a process that ``flags`` name."""
    _checked(_libc.setns(ctypes.c_int(descriptor), ctypes.c_int(flags)))


def mount(source: str, target: str, filesystem: str = "", flags: int = 0, options: str = "") -> None:
    """Mounts; empty strings are the call's null pointers."""
    _checked(
        _libc.mount(
            os.fsencode(source) or None,
            os.fsencode(target),
            filesystem.encode() or None,
            flags,
            os.fsencode(options) or None,
        ),
        target,
    )


def unmount(target: str, flags: int = 0) -> None:
    """Takes a mount away."""
    _checked(_libc.umount2(os.fsencode(target), ctypes.c_int(flags)), target)


def set_mount_attributes(target: str, *, added: int = 0, cleared: int = 0, is_recursive: bool = False) -> None:
    """Changes the MOUNT_ATTR flags of a mount, with ``is_recursive`` of those below it too (kernel 5.12)."""
    wanted = _MountAttributes(added, cleared, 0, 0)
    flags = AT_RECURSIVE if is_recursive else 0
    _checked(
        _libc.syscall(
            ctypes.c_long(_MOUNT_SETATTR),
            ctypes.c_int(AT_FDCWD),
            os.fsencode(target),
            ctypes.c_uint(flags),
            ctypes.byref(wanted),
            ctypes.c_size_t(ctypes.sizeof(wanted)),
        ),
        target,
    )


def open_tree(source: str | int, flags: int = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC) -> int:
    """A descriptor of a mount that is nowhere yet: a copy of the one at a path (AT_RECURSIVE: and those below).

    In place of a path it takes a descriptor.
    """
    call = ctypes.c_long(_OPEN_TREE)
    if isinstance(source, int):
        flags |= AT_EMPTY_PATH
        return _checked(_libc.syscall(call, ctypes.c_int(source), b"", ctypes.c_uint(flags)))
    return _checked(
        _libc.syscall(call, ctypes.c_int(AT_FDCWD), os.fsencode(source), ctypes.c_uint(flags)),
        source,
    )


def open_without_links(path: str) -> int:
    """Takes hold of what is at a path, without being able to read it; ELOOP where there is a link on the way."""
    return open_resolved(path, os.O_PATH | os.O_CLOEXEC, RESOLVE_NO_SYMLINKS)


def open_resolved(path: str, flags: int, resolve: int) -> int:
    """Opens a file on whose way only some things are allowed (kernel 5.6); ELOOP where there is another."""
    how = _HowToOpen(flags, 0o600 if flags & os.O_CREAT else 0, resolve)
    call = ctypes.c_long(_OPENAT2)
    size = ctypes.c_size_t(ctypes.sizeof(how))
    return _checked(
        _libc.syscall(call, ctypes.c_int(AT_FDCWD), os.fsencode(path), ctypes.byref(how), size),
        path,
    )


def move_mount(tree: int, target: str) -> None:
    """Puts a mount from ``open_tree`` at a path."""
    _checked(
        _libc.syscall(
            ctypes.c_long(_MOVE_MOUNT),
            ctypes.c_int(tree),
            b"",
            ctypes.c_int(AT_FDCWD),
            os.fsencode(target),
            ctypes.c_uint(MOVE_MOUNT_F_EMPTY_PATH),
        ),
        target,
    )


def make_mount(filesystem: str, attributes: int = 0) -> int:
    """A descriptor of a new mount that is nowhere yet, with MOUNT_ATTR flags (kernel 5.2)."""
    cloexec, create = ctypes.c_uint(1), ctypes.c_uint(6)  # FSOPEN_CLOEXEC and FSMOUNT_CLOEXEC, FSCONFIG_CMD_CREATE
    context = _checked(_libc.syscall(ctypes.c_long(_FSOPEN), filesystem.encode(), cloexec), filesystem)
    try:
        at = ctypes.c_int(context)
        _checked(_libc.syscall(ctypes.c_long(_FSCONFIG), at, create, None, None, ctypes.c_int(0)), filesystem)
        call = ctypes.c_long(_FSMOUNT)
        return _checked(_libc.syscall(call, at, cloexec, ctypes.c_uint(attributes)), filesystem)
    finally:
        os.close(context)


def pivot_root(new: str, old: str) -> None:
    """Makes a mount the root, and puts the root there was at ``old``."""
    _checked(_libc.pivot_root(os.fsencode(new), os.fsencode(old)), new)


def prctl(option: int, first: int = 0, second: int = 0, third: int = 0, fourth: int = 0) -> int:
    """Changes how this process is treated."""
    return _checked(_libc.prctl(option, first, second, third, fourth))


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """Asks for a signal when the parent ends; one that has ended already must be looked for afterwards."""
    prctl(PR_SET_PDEATHSIG, number)


def leave_keyring() -> None:
    """Gives this process an empty keyring, in place of the one that it has from whoever started it."""
    call = _KEYCTL.get(os.uname().machine)
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    _checked(_libc.syscall(ctypes.c_long(call), ctypes.c_int(_JOIN_SESSION_KEYRING), None))


def set_hostname(name: str) -> None:
    """Names the machine, as this UTS namespace sees it."""
    name_bytes = name.encode()
    _checked(_libc.sethostname(name_bytes, ctypes.c_size_t(len(name_bytes))))


def set_capabilities(*, effective: int, permitted: int, inheritable: int) -> None:
    """Sets this process' capabilities, each set as a bit mask."""
    header = _CapabilityHeader(_CAPABILITY_VERSION_3, 0)
    words = (_CapabilityWord * 2)(
        *(
            _CapabilityWord(*((one >> shift) & 0xFFFFFFFF for one in (effective, permitted, inheritable)))
            for shift in (0, 32)
        )
    )
    _checked(_libc.capset(ctypes.byref(header), words))


def install_filter(instructions: ctypes.Array[ctypes.c_char], length: int) -> None:
    """Binds this process, and those that it starts, to a seccomp filter of so many instructions."""
    mode_filter = 2
    program = _FilterProgram(length, ctypes.addressof(instructions))
    prctl(PR_SET_SECCOMP, mode_filter, ctypes.addressof(program))


def _checked(result: int, path: str | None = None) -> int:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return int(result)
