"""What a machine does not allow, in sentences: what is missing, why, and what to do about it."""

from __future__ import annotations

import errno
from pathlib import Path

import msgspec

_PLAIN = "Containers are plain processes that see the whole machine and its network"
_SETTINGS = Path("/proc/sys")


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A step that the machine refused."""

    step: str
    number: int
    words: str

    @classmethod
    def of(cls, step: str, error: OSError) -> Fault:
        """A fault from what the system said."""
        return cls(step=step, number=error.errno or 0, words=error.strerror or str(error))


class Findings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was found out about the machine."""

    fault: Fault | None = None
    """Why there are no namespaces at all."""
    id_fault: Fault | None = None
    overlay_fault: Fault | None = None
    network_fault: Fault | None = None
    has_network: bool = False
    translation_fault: Fault | None = None
    """Why the kernel does not translate the addresses of Services."""


def shortfalls(findings: Findings, *, wants_network: bool, settings: Path = _SETTINGS) -> list[str]:
    """A sentence for each thing that is missing."""
    told: list[str] = []
    if findings.fault is not None:
        told.append(f"{_PLAIN}: {_why_no_namespaces(findings.fault, settings)}")
    if findings.id_fault is not None:
        told.append(
            f"All users in containers are the one who started this: root may not become somebody else here "
            f"({findings.id_fault.words}); give this process CAP_SETUID and CAP_SETGID, and more than one id."
        )
    if findings.overlay_fault is not None:
        told.append(
            f"The machine's files are read-only in containers: an overlay of them was refused "
            f"({findings.overlay_fault.words}); it takes Linux 5.11 and a data dir on a filesystem such as ext4 or xfs."
        )
    if wants_network and findings.network_fault is not None:
        told.append(f"Pods use the machine's own network: {_why_no_network(findings.network_fault)}")
    if findings.has_network and findings.translation_fault is not None:
        why = _why_no_translation(findings.translation_fault)
        told.append(f"Servers see the node's address in the place of a client that came through a Service: {why}")
    return told


def _why_no_namespaces(fault: Fault, settings: Path) -> str:
    if fault.step == "user":
        return _why_no_user_namespace(fault, settings)
    if (
        fault.number in (errno.EPERM, errno.EACCES)
        and _setting(settings, "kernel/apparmor_restrict_unprivileged_userns") == "1"
    ):
        return (
            "AppArmor gives user namespaces no power here; allow it with "
            "`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, or start this as root."
        )
    if fault.step == "processes":
        return (
            f"a /proc of their own was refused ({fault.words}), as inside of another container whose /proc is covered "
            "in parts; give that one an uncovered /proc (`--security-opt systempaths=unconfined`)."
        )
    return (
        f"the system refused {fault.step} in a user namespace ({fault.words}); allow it in the security module or "
        "seccomp profile that this runs under."
    )


def _why_no_user_namespace(fault: Fault, settings: Path) -> str:
    if fault.number in (errno.ENOSPC, errno.EUSERS):
        most = _setting(settings, "user/max_user_namespaces")
        why = "user.max_user_namespaces is 0" if most == "0" else "the limit on them is reached, here or around this"
        return f"no user namespace may be made ({why}); raise it with `sysctl -w user.max_user_namespaces=10000`."
    if fault.number in (errno.EINVAL, errno.ENOSYS):
        return "this kernel has no user namespaces; use one built with CONFIG_USER_NS."
    if _setting(settings, "kernel/unprivileged_userns_clone") == "0":
        return (
            "user namespaces are kept for root (kernel.unprivileged_userns_clone is 0); allow them with "
            "`sysctl -w kernel.unprivileged_userns_clone=1`, or start this as root."
        )
    return (
        f"a user namespace was refused ({fault.words}); inside of another container allow `unshare` in its seccomp "
        "profile, and do not start this in a chroot."
    )


def _why_no_network(fault: Fault) -> str:
    if fault.number in (errno.EOPNOTSUPP, errno.ENODEV):
        return f"this kernel made no bridge ({fault.words}); load the modules `bridge` and `veth`."
    if fault.number == errno.ENOSPC:
        return "no further network namespace may be made; raise user.max_net_namespaces."
    return f"a network namespace with a bridge was refused ({fault.words}); allow it in the security module."


def _why_no_translation(fault: Fault) -> str:
    if fault.number in (errno.EROFS, errno.EACCES):
        return f"the settings of their network cannot be changed ({fault.words}); mount /proc/sys writable."
    return (
        f"the kernel refused to translate addresses ({fault.words}), so that a process relays them; load the modules "
        "`nf_tables`, `nft_chain_nat`, `nft_numgen`, `nft_masq` and `nf_conntrack_netlink`."
    )


def _setting(settings: Path, name: str) -> str:
    try:
        return (settings / name).read_text().strip()
    except OSError:
        return ""
