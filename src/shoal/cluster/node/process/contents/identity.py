"""Who a container runs as and what it may do: its security context, its pod's, and its image's user."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.api.core.pod_details import ContainerDetails, PodDetails
from shoal.cluster.node.process.contents.problems import CONFIG_ERROR, CREATE_ERROR, ConfigProblem
from shoal.cluster.node.process.contents.references import all_containers
from shoal.cluster.node.process.runtime.protocol import Ids

ALL_CAPABILITIES = (
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
    "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER",
    "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE",
    "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
    "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF",
    "CHECKPOINT_RESTORE",
)  # fmt: skip
"""In the kernel's order. All of them count in the container's own namespaces alone."""

USUAL_CAPABILITIES = frozenset({
    "CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP",
    "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE",
})  # fmt: skip
"""What container runtimes leave to a container that asks for nothing."""


def ids_of(
    pod: PodDetails,
    container: ContainerDetails,
    *,
    image_user: int | None,
    group_of_user: int | None,
    has_all_ids: bool,
) -> Ids:
    """The user and groups of a container; ConfigProblem where it must not be root and would be.

    ``group_of_user`` is what the root's accounts say. Further groups are there only where all ids are.
    """
    asked = user_asked_for(pod, container)
    user = asked if asked is not None else image_user or 0
    _check_not_root(pod, container, asked, user)
    group = container.security_context.run_as_group
    if group is None:
        group = pod.spec.security_context.run_as_group
    if group is None:
        group = group_of_user or 0
    return Ids(user=user, group=group, groups=_further_groups(pod) if has_all_ids else [])


def user_asked_for(pod: PodDetails, container: ContainerDetails) -> int | None:
    """The user that the specs ask for."""
    own = container.security_context.run_as_user
    return own if own is not None else pod.spec.security_context.run_as_user


def common_user(pod: PodDetails) -> int | None:
    """The user of all containers, where all ask for the same one."""
    users = {user_asked_for(pod, container) for container in all_containers(pod)}
    return users.pop() if len(users) == 1 else None


def capabilities_of(container: ContainerDetails) -> list[str]:
    """The capabilities of a container, in the kernel's order; ConfigProblem where one is not known."""
    context = container.security_context
    if context.privileged:
        return list(ALL_CAPABILITIES)
    added, dropped = _names(context.capabilities.add), _names(context.capabilities.drop)
    unknown = sorted((added | dropped) - {"ALL", *ALL_CAPABILITIES})
    if unknown:
        raise ConfigProblem(CREATE_ERROR, f'unknown capability "CAP_{unknown[0]}" (container: {container.name})')
    kept = set(ALL_CAPABILITIES) if "ALL" in added else set(USUAL_CAPABILITIES)
    if "ALL" in dropped:
        kept = set()
    kept = (kept | added) - dropped
    return [name for name in ALL_CAPABILITIES if name in kept]


def may_gain_privileges(container: ContainerDetails) -> bool:
    """Whether a program that is set to run as another user does."""
    return container.security_context.allow_privilege_escalation is not False


def has_filter(pod: PodDetails, container: ContainerDetails) -> bool:
    """Whether system calls are filtered, which they are by default, as with a kubelet's ``seccompDefault``.

    ConfigProblem where a profile is named that this node does not have.
    """
    if container.security_context.privileged:
        return False
    profile = container.security_context.seccomp_profile or pod.spec.security_context.seccomp_profile
    if profile is None or profile.type == "RuntimeDefault":
        return True
    if profile.type == "Unconfined":
        return False
    raise ConfigProblem(
        CREATE_ERROR,
        f'seccomp profile "{profile.type}" cannot be had on this node: set seccompProfile.type to RuntimeDefault or '
        f"Unconfined (container: {container.name})",
    )


def _check_not_root(pod: PodDetails, container: ContainerDetails, asked: int | None, user: int) -> None:
    must_not = container.security_context.run_as_non_root
    if must_not is None:
        must_not = pod.spec.security_context.run_as_non_root
    if not must_not or user != 0:
        return
    metadata = pod.metadata
    where = f'(pod: "{metadata.name}_{metadata.namespace}({metadata.uid})", container: {container.name})'
    if asked is not None:
        raise ConfigProblem(CONFIG_ERROR, f"container's runAsUser breaks non-root policy {where}")
    raise ConfigProblem(CONFIG_ERROR, f"container has runAsNonRoot and image will run as root {where}")


def _further_groups(pod: PodDetails) -> list[int]:
    context = pod.spec.security_context
    first = [context.fs_group] if context.fs_group is not None else []
    return list(dict.fromkeys([*first, *context.supplemental_groups]))


def _names(capabilities: Iterable[str]) -> set[str]:
    return {name.upper().removeprefix("CAP_") for name in capabilities}
