"""A child's attempt at the namespaces of a node, and at what containers will do in them."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from shoal.cluster.node.process.runtime.networks import Addresses, build, prepare_translation
from shoal.cluster.node.process.runtime.shortfalls import Fault, Findings
from shoal.cluster.node.process.runtime.syscalls import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    MNT_DETACH,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_REC,
    MS_SLAVE,
    end_with_parent,
    mount,
    unmount,
    unshare,
)

_LOWER = "/usr"
_NOBODY = 65534


def live(parent: socket.socket, root: Path, addresses: Addresses | None) -> None:
    """The whole life of the child: it tells what it found, twice, and stays until the parent has joined it."""
    try:
        end_with_parent()
        id_fault = _attempt("ids", lambda: _in_child(_be_somebody_else)) if os.geteuid() == 0 else None
        fault = _attempt("user", lambda: unshare(CLONE_NEWUSER))
        _tell(parent, Findings(fault=fault, id_fault=id_fault))
        if fault is None and parent.recv(16):
            _tell(parent, _found(root, addresses))
            parent.recv(16)
    except BaseException:  # the parent takes our silence for an answer
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(0)


def _be_somebody_else() -> None:
    os.setgroups([])
    os.setresgid(_NOBODY, _NOBODY, _NOBODY)
    os.setresuid(_NOBODY, _NOBODY, _NOBODY)


def _tell(parent: socket.socket, findings: Findings) -> None:
    parent.send(msgspec.json.encode(findings))


def _found(root: Path, addresses: Addresses | None) -> Findings:
    fault = (
        _attempt("namespaces", lambda: unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC))
        or _attempt("mounts", lambda: _mount_something(root))
        or _attempt("processes", lambda: _have_own_processes(root))
    )
    if fault is not None:
        return Findings(fault=fault)
    overlay_fault = _attempt("overlay", lambda: _overlay(root))
    if addresses is None:
        return Findings(overlay_fault=overlay_fault)
    network_fault = _attempt("network", lambda: _have_own_network(addresses))
    has_network = network_fault is None
    return Findings(
        overlay_fault=overlay_fault,
        network_fault=network_fault,
        has_network=has_network,
        translation_fault=_attempt("translation", prepare_translation) if has_network else None,
    )


def _attempt(step: str, action: Callable[[], None]) -> Fault | None:
    try:
        action()
    except OSError as error:
        return Fault.of(step, error)
    return None


def _mount_something(root: Path) -> None:
    """What is mounted on the machine later is seen here too, and nothing that is mounted here there."""
    mount("", "/", flags=MS_REC | MS_SLAVE)
    mount("tmpfs", str(root), "tmpfs", MS_NODEV | MS_NOSUID, "mode=0755")
    unmount(str(root), MNT_DETACH)


def _have_own_processes(root: Path) -> None:
    """A namespace of processes is of use only with a /proc that shows it."""

    def show() -> None:
        mount("proc", str(root), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
        unmount(str(root), MNT_DETACH)

    def begin() -> None:
        unshare(CLONE_NEWPID)  # for its children, not for itself
        _in_child(show)

    _in_child(begin)


def _in_child(action: Callable[[], None]) -> None:
    """Lets a child act, and raises what it met."""
    child = os.fork()
    if child == 0:
        number = errno.ECHILD
        try:
            action()
            number = 0
        except OSError as error:
            number = error.errno or number
        finally:
            os._exit(number)
    number = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if number:
        raise OSError(number, os.strerror(number))


def _overlay(root: Path) -> None:
    folder = root / "trial"
    upper, work, merged = folder / "upper", folder / "work", folder / "merged"
    try:
        for one in (upper, work, merged):
            one.mkdir(parents=True, exist_ok=True)
        options = f"lowerdir={_LOWER},upperdir={upper},workdir={work},userxattr"
        mount("overlay", str(merged), "overlay", MS_NODEV | MS_NOSUID, options)
        try:
            (merged / "trial").touch()
        finally:
            unmount(str(merged), MNT_DETACH)
    finally:
        with suppress(OSError):
            (work / "work").rmdir()  # one that nobody may look into, so it is not to be walked through
        shutil.rmtree(folder, ignore_errors=True)


def _have_own_network(addresses: Addresses) -> None:
    unshare(CLONE_NEWNET)
    build(addresses)
