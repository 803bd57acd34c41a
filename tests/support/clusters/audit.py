"""What programs asked of a real API server, by its audit log, compared with the rights of their accounts.

A script in front of kube-apiserver has it write the log; ``shoal up`` finds it among its binaries.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from shoal.cluster.kubernetes import Binaries


@dataclass(frozen=True, order=True)
class Right:
    """One verb on one kind (``pods/status`` for a part of it), for objects of some names or of any."""

    group: str
    resource: str
    verb: str
    names: tuple[str, ...] = ()

    def covers(self, other: Right) -> bool:
        same = (self.group, self.resource, self.verb) == (other.group, other.resource, other.verb)
        return same and (not self.names or set(other.names) <= set(self.names))

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}.{self.group} {' '.join(self.names)}".rstrip(". ")


def audited_options(binaries: Binaries, folder: Path, *, namespace: str) -> list[str]:
    """The options of ``shoal up`` for a real API server that writes down what accounts of a namespace ask."""
    folder.mkdir()
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "userGroups": [f"system:serviceaccounts:{namespace}"]}, {"level": "None"}],
    }
    (folder / "policy.yaml").write_text(yaml.safe_dump(policy))
    flags = [f"--audit-policy-file={folder / 'policy.yaml'}", f"--audit-log-path={log_in(folder)}"]
    script = folder / "kube-apiserver"
    script.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exec {binaries.kube_apiserver} --version\n')
    with script.open("a") as more:
        more.write(f'exec {shlex.quote(str(binaries.kube_apiserver))} "$@" {shlex.join(flags)}\n')
    script.chmod(0o755)
    folders = [folder, *sorted({path.parent for path in (binaries.etcd, binaries.kube_apiserver)})]
    return ["--engine=kube", *(f"--kube-binaries={each}" for each in folders)]


def log_in(folder: Path) -> Path:
    return folder / "audit.log"


def used_rights(log: Path, user: str) -> set[Right]:
    """What a user asked and was given: an apply that made an object counts as a create too."""
    used = set()
    for line in log.read_text().splitlines():
        event = json.loads(line)
        about = event.get("objectRef") or {}
        if event["user"]["username"] != user or "resource" not in about:
            continue
        code = (event.get("responseStatus") or {}).get("code", 200)
        if code == 403:
            continue
        part = f"/{about['subresource']}" if "subresource" in about else ""
        names = (about["name"],) if "name" in about else ()
        resource = f"{about['resource']}{part}"
        used.add(Right(about.get("apiGroup", ""), resource, event["verb"], names))
        if (event["verb"], code) == ("patch", 201):
            used.add(Right(about.get("apiGroup", ""), resource, "create", names))
    return used


def granted_rights(objects: Iterable[Mapping[str, Any]], account: str) -> set[Right]:
    """What the roles in a file give an account of the file."""
    found = list(objects)
    roles = {
        (each["roleRef"]["kind"], each["roleRef"]["name"])
        for each in found
        if each["kind"] in ("ClusterRoleBinding", "RoleBinding")
        and account in [subject["name"] for subject in each["subjects"]]
    }
    return {
        Right(group, resource, verb, tuple(rule.get("resourceNames", ())))
        for each in found
        if (each["kind"], each["metadata"]["name"]) in roles
        for rule in each["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def unused_rights(granted: Iterable[Right], used: Iterable[Right]) -> list[Right]:
    """Rights that nothing asked for. Who watches may list: servers that do not stream lists are listed first."""
    asked = list(used)
    asked += [replace(right, verb="list") for right in asked if right.verb == "watch"]
    return sorted(right for right in granted if not any(right.covers(other) for other in asked))


def by_kind(rights: Sequence[Right]) -> str:
    """Rights as a person reads them: a line for each kind."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for right in rights:
        kinds.setdefault((right.group, right.resource), []).append(right.verb)
    return "\n".join(f"{group or 'core'}/{resource}: {' '.join(verbs)}" for (group, resource), verbs in kinds.items())
