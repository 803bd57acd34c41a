"""Each check, on a pod that breaks its rule and one that keeps it, and in the versions between which the rule changed.

The rules are those of the Pod Security Standards in Kubernetes' documentation; the words are a real server's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from shoal.cluster.apiserver.admission.pod_security.checks import CheckedPod
from shoal.cluster.apiserver.admission.pod_security.evaluation import CHECKS, in_detail, rules_of, violations
from shoal.cluster.apiserver.admission.pod_security.policy import Level, LevelVersion, Version

LATEST = None
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"

SAFE = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
SAFE_POD = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def a_pod(*, annotations: Mapping[str, str] | None = None, **spec: Any) -> CheckedPod:
    """A pod that the restricted level allows, with other fields."""
    content = {"containers": [{"name": "c", "securityContext": SAFE}], "securityContext": SAFE_POD, **spec}
    return CheckedPod.of({"metadata": {"annotations": dict(annotations or {})}, "spec": content})


def with_container(annotations: Mapping[str, str] | None = None, **content: Any) -> CheckedPod:
    return a_pod(containers=[{"name": "c", "securityContext": SAFE, **content}], annotations=annotations)


def contained(*contexts: Mapping[str, Any], **security: Any) -> CheckedPod:
    """A pod with these fields in the security context of its container, or with a container for each context."""
    several = zip("abc", contexts, strict=False) if contexts else [("c", security)]
    return a_pod(containers=[{"name": name, "securityContext": {**SAFE, **one}} for name, one in several])


def secured(**security: Any) -> CheckedPod:
    """A pod with these fields in its own security context."""
    return a_pod(securityContext={**SAFE_POD, **security})


def unset(*fields: str) -> CheckedPod:
    return a_pod(securityContext={field: value for field, value in SAFE_POD.items() if field not in fields})


BASELINE, RESTRICTED = Level.BASELINE, Level.RESTRICTED

VIOLATIONS: list[tuple[str, CheckedPod, Level, int | None, str]] = [
    (
        "the namespaces of the host",
        a_pod(hostNetwork=True, hostPID=True, hostIPC=True),
        BASELINE,
        0,
        "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)",
    ),
    (
        "a port of the host",
        with_container(ports=[{"containerPort": 1, "hostPort": 80}]),
        BASELINE,
        0,
        'hostPort (container "c" uses hostPort 80)',
    ),
    (
        "ports of the host, in the order of texts",
        with_container(ports=[{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 80}]),
        BASELINE,
        LATEST,
        'hostPort (container "c" uses hostPorts 80, 9)',
    ),
    (
        "a probe of another host",
        with_container(livenessProbe={"httpGet": {"host": "b.example"}}, startupProbe={"tcpSocket": {"host": "a"}}),
        BASELINE,
        34,
        'probe or lifecycle host (container "c" uses probe or lifecycle hosts "a", "b.example")',
    ),
    (
        "a hook of another host",
        with_container(lifecycle={"postStart": {"httpGet": {"host": "a"}}, "preStop": {"tcpSocket": {"host": "a"}}}),
        RESTRICTED,
        LATEST,
        'probe or lifecycle host (container "c" uses probe or lifecycle host "a")',
    ),
    (
        "a process of a Windows host",
        secured(windowsOptions={"hostProcess": True}),
        BASELINE,
        0,
        "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
    ),
    (
        "containers that are processes of a Windows host",
        contained({"windowsOptions": {"hostProcess": True}}, {"windowsOptions": {"hostProcess": True}}),
        BASELINE,
        0,
        'hostProcess (containers "a", "b" must not set securityContext.windowsOptions.hostProcess=true)',
    ),
    (
        "a folder of the host",
        a_pod(volumes=[{"name": "v", "hostPath": {"path": "/"}}]),
        BASELINE,
        0,
        'hostPath volumes (volume "v")',
    ),
    (
        "a folder of the host where volumes are restricted",
        a_pod(volumes=[{"name": "v", "hostPath": {"path": "/"}}, {"name": "w", "nfs": {}}]),
        RESTRICTED,
        0,
        'restricted volume types (volumes "v", "w" use restricted volume types "hostPath", "nfs")',
    ),
    (
        "a volume of a sort that nobody knows",
        a_pod(volumes=[{"name": "v", "tape": {}}]),
        RESTRICTED,
        LATEST,
        'restricted volume types (volume "v" uses restricted volume type "unknown")',
    ),
    (
        "privileged mode",
        contained(privileged=True),
        BASELINE,
        0,
        'privileged (container "c" must not set securityContext.privileged=true)',
    ),
    (
        "capabilities that no runtime gives by default",
        contained({"capabilities": {"add": ["SYS_TIME", "CHOWN"]}}, {"capabilities": {"add": ["BPF"]}}),
        BASELINE,
        0,
        'non-default capabilities (containers "a", "b" must not include "BPF", "SYS_TIME" in '
        "securityContext.capabilities.add)",
    ),
    (
        "capabilities that are kept and added",
        contained(capabilities={"add": ["CHOWN", "NET_BIND_SERVICE"]}),
        RESTRICTED,
        22,
        'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]; '
        'container "c" must not include "CHOWN" in securityContext.capabilities.add)',
    ),
    (
        "no word on privilege escalation",
        a_pod(initContainers=[{"name": "i", "securityContext": {"capabilities": {"drop": ["ALL"]}}}]),
        RESTRICTED,
        8,
        'allowPrivilegeEscalation != false (container "i" must set securityContext.allowPrivilegeEscalation=false)',
    ),
    (
        "an ephemeral container",
        a_pod(ephemeralContainers=[{"name": "e", "securityContext": {**SAFE, "allowPrivilegeEscalation": True}}]),
        RESTRICTED,
        LATEST,
        'allowPrivilegeEscalation != false (container "e" must set securityContext.allowPrivilegeEscalation=false)',
    ),
    (
        "no word on root",
        unset("runAsNonRoot"),
        RESTRICTED,
        0,
        'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true)',
    ),
    (
        "a container that may be root although its pod may not",
        contained({"runAsNonRoot": False}, {}),
        RESTRICTED,
        0,
        'runAsNonRoot != true (container "a" must not set securityContext.runAsNonRoot=false)',
    ),
    (
        "a pod that may be root although its container may not",
        a_pod(
            securityContext={**SAFE_POD, "runAsNonRoot": False},
            containers=[{"name": "c", "securityContext": {**SAFE, "runAsNonRoot": True}}],
        ),
        RESTRICTED,
        LATEST,
        "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)",
    ),
    ("root as the user", secured(runAsUser=0), RESTRICTED, 23, "runAsUser=0 (pod must not set runAsUser=0)"),
    (
        "root as the user of containers",
        contained({"runAsUser": 0}, {"runAsUser": 1}, {"runAsUser": 0}),
        RESTRICTED,
        LATEST,
        'runAsUser=0 (containers "a", "c" must not set runAsUser=0)',
    ),
    (
        "an AppArmor profile that is turned off",
        secured(appArmorProfile={"type": "Unconfined"}),
        BASELINE,
        0,
        'forbidden AppArmor profile (pod must not set AppArmor profile type to "Unconfined")',
    ),
    (
        "AppArmor profiles that an annotation and a container turn off",
        with_container({f"{APP_ARMOR}c": "unconfined"}, securityContext={**SAFE, "appArmorProfile": {"type": "X"}}),
        BASELINE,
        LATEST,
        'forbidden AppArmor profiles (container "c" and annotation must not set AppArmor profile type to '
        f'"X", "{APP_ARMOR}c="unconfined"")',
    ),
    (
        "options of SELinux",
        a_pod(
            securityContext={**SAFE_POD, "seLinuxOptions": {"type": "x", "user": "u"}},
            containers=[{"name": "c", "securityContext": {**SAFE, "seLinuxOptions": {"type": "y", "role": "r"}}}],
        ),
        BASELINE,
        0,
        'seLinuxOptions (pod and container "c" set forbidden securityContext.seLinuxOptions: types "x", "y"; '
        "user may not be set; role may not be set)",
    ),
    (
        "a type of SELinux that is allowed since 1.31",
        secured(seLinuxOptions={"type": "container_engine_t"}),
        BASELINE,
        30,
        'seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "container_engine_t")',
    ),
    (
        "seccomp that annotations turn off",
        a_pod(
            annotations={f"{SECCOMP}c": "unconfined", "seccomp.security.alpha.kubernetes.io/pod": ""},
        ),
        BASELINE,
        18,
        f'seccompProfile (forbidden annotations {SECCOMP}c="unconfined", seccomp.security.alpha.kubernetes.io/pod="")',
    ),
    (
        "seccomp that is turned off",
        contained(seccompProfile={"type": "Unconfined"}),
        BASELINE,
        19,
        'seccompProfile (container "c" must not set securityContext.seccompProfile.type to "Unconfined")',
    ),
    (
        "seccomp that is turned off where profiles are required",
        a_pod(
            securityContext={**SAFE_POD, "seccompProfile": {"type": "Unconfined"}},
            containers=[{"name": "c", "securityContext": {**SAFE, "seccompProfile": {"type": "Unconfined"}}}],
        ),
        RESTRICTED,
        19,
        'seccompProfile (pod and container "c" must not set securityContext.seccompProfile.type to "Unconfined")',
    ),
    (
        "no word on seccomp",
        unset("seccompProfile"),
        RESTRICTED,
        19,
        'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or '
        '"Localhost")',
    ),
    (
        "/proc without its mask",
        contained(procMount="Unmasked"),
        BASELINE,
        0,
        'procMount (container "c" must not set securityContext.procMount to "Unmasked")',
    ),
    (
        "/proc without its mask in a user namespace",
        a_pod(hostUsers=False, containers=[{"name": "c", "securityContext": {**SAFE, "procMount": "Unmasked"}}]),
        RESTRICTED,
        LATEST,
        'procMount (container "c" must not set securityContext.procMount to "Unmasked")',
    ),
    (
        "sysctls",
        secured(sysctls=[{"name": "kernel.b"}, {"name": "kernel.shm_rmid_forced"}, {"name": "kernel.a"}]),
        BASELINE,
        0,
        "forbidden sysctls (kernel.b, kernel.a)",
    ),
    (
        "checks in order: those of the baseline first",
        a_pod(
            hostNetwork=True,
            volumes=[{"name": "v", "hostPath": {}}],
            containers=[{"name": "c", "securityContext": {"privileged": True}}],
        ),
        RESTRICTED,
        LATEST,
        'host namespaces (hostNetwork=true), privileged (container "c" must not set securityContext.privileged=true), '
        'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), '
        'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), '
        'restricted volume types (volume "v" uses restricted volume type "hostPath")',
    ),
]

WINDOWS = CheckedPod.of(
    {"spec": {"os": {"name": "windows"}, "containers": [{"name": "c"}], "securityContext": {"runAsNonRoot": True}}}
)
ROOT_IN_USER_NAMESPACE = a_pod(
    hostUsers=False, securityContext={"runAsUser": 0, "seccompProfile": {"type": "Localhost"}}
)

ALLOWED: list[tuple[str, CheckedPod, Level, int | None]] = [
    ("a safe pod", a_pod(), RESTRICTED, LATEST),
    ("a pod without a word", CheckedPod.of({"spec": {"containers": [{"name": "c"}]}}), BASELINE, LATEST),
    ("a pod without anything", CheckedPod.of({}), RESTRICTED, LATEST),
    ("the host's namespaces, privileged", a_pod(hostNetwork=True), Level.PRIVILEGED, LATEST),
    ("ports of its own", with_container(ports=[{"containerPort": 80, "hostPort": 0}]), RESTRICTED, LATEST),
    ("probes of itself", with_container(livenessProbe={"httpGet": {"port": 80, "host": ""}}), RESTRICTED, LATEST),
    ("probes of other hosts before 1.34", with_container(livenessProbe={"tcpSocket": {"host": "a"}}), BASELINE, 33),
    ("no host process", secured(windowsOptions={"hostProcess": False}), RESTRICTED, LATEST),
    (
        "volumes of every sort that is allowed",
        a_pod(
            volumes=[
                {"name": source, source: {}}
                for source in (
                    *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image"),
                    *("persistentVolumeClaim", "projected", "secret"),
                )
            ]
        ),
        RESTRICTED,
        LATEST,
    ),
    ("capabilities of every runtime", contained(capabilities={"add": ["MKNOD", "SYS_CHROOT"]}), BASELINE, LATEST),
    (
        "the capability to bind to low ports",
        contained(capabilities={"drop": ["CHOWN", "ALL"], "add": ["NET_BIND_SERVICE"]}),
        RESTRICTED,
        LATEST,
    ),
    ("capabilities that are kept, before 1.22", contained(capabilities={}), RESTRICTED, 21),
    ("privilege escalation before 1.8", contained(allowPrivilegeEscalation=True), RESTRICTED, 7),
    (
        "containers that are not root, each by itself",
        a_pod(
            securityContext={"seccompProfile": {"type": "Localhost"}},
            containers=[{"name": "c", "securityContext": {**SAFE, "runAsNonRoot": True, "runAsUser": 1}}],
        ),
        RESTRICTED,
        LATEST,
    ),
    ("root as the user before 1.23", secured(runAsUser=0), RESTRICTED, 22),
    ("root in a user namespace since 1.35", ROOT_IN_USER_NAMESPACE, RESTRICTED, 35),
    ("AppArmor profiles of the host", secured(appArmorProfile={"type": "Localhost"}), RESTRICTED, LATEST),
    (
        "AppArmor annotations",
        a_pod(annotations={f"{APP_ARMOR}a": "", f"{APP_ARMOR}b": "runtime/default", f"{APP_ARMOR}c": "localhost/x"}),
        RESTRICTED,
        LATEST,
    ),
    ("a type of SELinux", secured(seLinuxOptions={"type": "container_kvm_t", "level": "s0"}), RESTRICTED, LATEST),
    ("another type since 1.31", secured(seLinuxOptions={"type": "container_engine_t"}), RESTRICTED, 31),
    ("seccomp annotations since 1.19", a_pod(annotations={f"{SECCOMP}c": "unconfined"}), BASELINE, 19),
    ("the default of Docker", a_pod(annotations={f"{SECCOMP}c": "docker/default"}), BASELINE, 18),
    ("no seccomp profile before 1.19", unset("seccompProfile"), RESTRICTED, 18),
    ("the default mask on /proc", contained(procMount="Default"), RESTRICTED, LATEST),
    (
        "/proc without its mask in a user namespace since 1.35",
        a_pod(hostUsers=False, containers=[{"name": "c", "securityContext": {"procMount": "Unmasked"}}]),
        BASELINE,
        35,
    ),
    ("a pod for Windows since 1.25", WINDOWS, RESTRICTED, 25),
]


@pytest.mark.parametrize(
    ("pod", "level", "minor", "message"), [case[1:] for case in VIOLATIONS], ids=[case[0] for case in VIOLATIONS]
)
def test_a_pod_that_breaks_a_rule_violates_its_check(
    pod: CheckedPod, level: Level, minor: int | None, message: str
) -> None:
    assert in_detail(violations(LevelVersion(level, Version(minor)), pod)) == message


@pytest.mark.parametrize(("pod", "level", "minor"), [case[1:] for case in ALLOWED], ids=[case[0] for case in ALLOWED])
def test_a_pod_that_keeps_to_the_rules_violates_none(pod: CheckedPod, level: Level, minor: int | None) -> None:
    assert violations(LevelVersion(level, Version(minor)), pod) == []


@pytest.mark.parametrize(
    ("pod", "minor", "reasons"),
    [
        pytest.param(WINDOWS, 24, ["allowPrivilegeEscalation != false", "unrestricted capabilities", "seccompProfile"]),
        pytest.param(ROOT_IN_USER_NAMESPACE, 34, ["runAsNonRoot != true", "runAsUser=0"]),
    ],
    ids=["a pod for Windows before 1.25", "root in a user namespace before 1.35"],
)
def test_an_exemption_is_one_of_the_versions_that_have_it(pod: CheckedPod, minor: int, reasons: list[str]) -> None:
    found = violations(LevelVersion(RESTRICTED, Version(minor)), pod)
    assert [each.reason for each in found] == reasons


@pytest.mark.parametrize(
    ("sysctl", "since"),
    [
        ("kernel.shm_rmid_forced", 0),
        ("net.ipv4.ip_local_port_range", 0),
        ("net.ipv4.tcp_syncookies", 0),
        ("net.ipv4.ping_group_range", 0),
        ("net.ipv4.ip_unprivileged_port_start", 0),
        ("net.ipv4.ip_local_reserved_ports", 27),
        ("net.ipv4.tcp_keepalive_time", 29),
        ("net.ipv4.tcp_fin_timeout", 29),
        ("net.ipv4.tcp_keepalive_intvl", 29),
        ("net.ipv4.tcp_keepalive_probes", 29),
        ("net.ipv4.tcp_rmem", 32),
        ("net.ipv4.tcp_wmem", 32),
    ],
)
def test_a_sysctl_is_allowed_since_the_version_that_made_it_safe(sysctl: str, since: int) -> None:
    pod = secured(sysctls=[{"name": sysctl, "value": "1"}])
    allowed = [minor for minor in range(40) if not violations(LevelVersion(BASELINE, Version(minor)), pod)]
    assert allowed == list(range(since, 40))


def test_the_restricted_level_reports_what_it_replaces_only_once() -> None:
    for minor in range(36):
        replaced = [check for check in CHECKS if check.replaces and check.form(minor)]
        both = len(rules_of(RESTRICTED, minor)) + len(replaced)
        assert both == len([check for check in CHECKS if check.form(minor)])
    assert {check.replaces for check in CHECKS} <= {"", *(check.id for check in CHECKS if check.level is BASELINE)}
