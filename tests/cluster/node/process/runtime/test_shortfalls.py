from __future__ import annotations

import errno
from pathlib import Path

import pytest

from shoal.cluster.node.process.runtime.shortfalls import Fault, Findings, shortfalls


def a_fault(step: str, number: int = errno.EPERM) -> Fault:
    return Fault(step=step, number=number, words="Operation not permitted")


def a_machine(folder: Path, **settings: str) -> Path:
    for name, setting in settings.items():
        file = folder / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(setting + "\n")
    return folder


def test_nothing_is_said_where_nothing_is_missing() -> None:
    assert shortfalls(Findings(has_network=True), wants_network=True) == []


@pytest.mark.parametrize(
    ("findings", "settings", "says"),
    [
        pytest.param(
            Findings(fault=a_fault("mounts", errno.EACCES)),
            {"kernel__apparmor_restrict_unprivileged_userns": "1"},
            "AppArmor gives user namespaces no power here; allow it with "
            "`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, or start this as root.",
            id="AppArmor lets them be made, and nothing be done in them",
        ),
        pytest.param(
            Findings(fault=a_fault("user")),
            {"kernel__unprivileged_userns_clone": "0"},
            "user namespaces are kept for root",
            id="kept for root",
        ),
        pytest.param(
            Findings(fault=a_fault("user", errno.ENOSPC)),
            {"user__max_user_namespaces": "0"},
            "user.max_user_namespaces is 0",
            id="none at all",
        ),
        pytest.param(
            Findings(fault=a_fault("user", errno.ENOSPC)),
            {"user__max_user_namespaces": "60000"},
            "the limit on them is reached",
            id="no more",
        ),
        pytest.param(Findings(fault=a_fault("user", errno.EINVAL)), {}, "CONFIG_USER_NS", id="not in the kernel"),
        pytest.param(Findings(fault=a_fault("user")), {}, "seccomp profile", id="refused by a filter"),
        pytest.param(Findings(fault=a_fault("processes")), {}, "systempaths=unconfined", id="in a container"),
        pytest.param(Findings(fault=a_fault("namespaces")), {}, "security module", id="refused for another reason"),
        pytest.param(Findings(id_fault=a_fault("ids")), {}, "CAP_SETUID", id="but one user"),
        pytest.param(Findings(overlay_fault=a_fault("overlay")), {}, "read-only in containers", id="no overlays"),
        pytest.param(
            Findings(network_fault=a_fault("network", errno.EOPNOTSUPP)),
            {},
            "modules `bridge` and `veth`",
            id="no bridge",
        ),
        pytest.param(
            Findings(network_fault=a_fault("network", errno.ENOSPC)),
            {},
            "user.max_net_namespaces",
            id="no more networks",
        ),
        pytest.param(
            Findings(has_network=True, translation_fault=a_fault("translation", errno.EOPNOTSUPP)),
            {},
            "`nf_tables`",
            id="no nftables",
        ),
        pytest.param(
            Findings(has_network=True, translation_fault=a_fault("translation", errno.EROFS)),
            {},
            "mount /proc/sys writable",
            id="settings that cannot be changed",
        ),
    ],
)
def test_what_is_missing_is_told_with_its_reason_and_remedy(
    tmp_path: Path, findings: Findings, settings: dict[str, str], says: str
) -> None:
    (sentence,) = shortfalls(findings, wants_network=True, settings=a_machine(tmp_path, **settings))
    assert says in sentence
    assert sentence.endswith(".")


def test_a_network_that_nobody_asked_for_is_not_missed() -> None:
    assert shortfalls(Findings(), wants_network=False) == []
