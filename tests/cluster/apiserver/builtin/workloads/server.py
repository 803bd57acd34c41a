"""A real API server to ask, and our own rules in the order in which a server applies them."""

from __future__ import annotations

import base64
import copy
import http.client
import json
import re
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from shoal.cluster.apiserver.builtin.metadata import object_meta_problems
from shoal.cluster.apiserver.builtin.workloads import (
    RULES,
    prepare_ephemeral_containers,
    prepare_resize,
    validate_ephemeral_containers_update,
    validate_resize,
)
from shoal.cluster.apiserver.kinds.decode import decode
from shoal.cluster.apiserver.kinds.kind import Kind
from shoal.cluster.apiserver.kinds.tables import builtin_kinds
from shoal.kube.admission.fields import FieldProblem, invalid_status

KINDS: dict[tuple[str, str], Kind] = {
    (kind.group, kind.kind): kind for kind in builtin_kinds(RULES) if (kind.group, kind.kind) in RULES
}
_PARTS = {
    "resize": (prepare_resize, validate_resize),
    "ephemeralcontainers": (prepare_ephemeral_containers, validate_ephemeral_containers_update),
}
Cause = tuple[str, str, str]
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r'"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z"')
_WHOLE = re.compile(r"Invalid value: [{\[].*: field is immutable", re.DOTALL)


class Server:
    """One connection to an API server, with the credentials of a kubeconfig, in one namespace."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(cadata=_text(cluster, "certificate-authority"))
        self._headers = {"Content-Type": "application/json"}
        if "token" in user:
            self._headers["Authorization"] = f"Bearer {user['token']}"
        else:
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as pair:
                pair.write(_text(user, "client-certificate") + _text(user, "client-key"))
                pair.flush()
                context.load_cert_chain(pair.name)
        self._connection = http.client.HTTPSConnection(urlsplit(cluster["server"]).netloc, context=context, timeout=20)
        self.namespace = namespace

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any, list[str]]:
        """The status, the answer, and the warnings."""
        self._connection.request(method, path, None if body is None else json.dumps(body), self._headers)
        response = self._connection.getresponse()
        warnings = [_unquoted(each) for each in response.headers.get_all("Warning") or ()]
        return response.status, json.loads(response.read()), warnings

    def close(self) -> None:
        self._connection.close()

    def path(self, kind: Kind, name: str = "") -> str:
        root = f"/apis/{kind.group}" if kind.group else "/api"
        return f"{root}/{kind.version}/namespaces/{self.namespace}/{kind.resource}" + (f"/{name}" if name else "")


def admitted(pod: dict[str, Any]) -> None:
    """What admission, which is no part of the rules, gives every pod."""
    spec = pod["spec"]
    account = spec.get("serviceAccountName") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = account
    tolerations = spec.get("tolerations") or []
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(
            each.get("key", "") in (key, "") and each.get("effect", "") in ("NoExecute", "") for each in tolerations
        ):
            made = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            tolerations = [*tolerations, made]
    spec["tolerations"] = tolerations
    spec["priority"], spec["preemptionPolicy"] = 0, "PreemptLowerPriority"


def created(kind: Kind, body: dict[str, Any], namespace: str) -> tuple[dict[str, Any], list[FieldProblem], list[str]]:
    """What our rules make of a new object."""
    made = decode(kind.schema, copy.deepcopy(body), [])
    kind.rules.defaults(made)
    made["metadata"].update(namespace=namespace, uid="UID")
    if kind.rules.has_generation:
        made["metadata"]["generation"] = 1
    empty = decode(kind.schema, {}, [])
    if "status" in empty:
        made["status"] = empty["status"]
    if kind.kind == "Pod":
        admitted(made)
    kind.rules.prepare_create(made)
    problems = object_meta_problems(
        made["metadata"], "metadata", namespaced=True, rule=kind.rules.name_problems
    ) + kind.rules.validate_create(made)
    return made, problems, kind.rules.warnings(made)


def updated(
    kind: Kind, body: dict[str, Any], old: dict[str, Any], part: str
) -> tuple[dict[str, Any], list[FieldProblem]]:
    """What our rules make of a changed object, or of what is written to a part of it."""
    made = decode(kind.schema, copy.deepcopy(body), [])
    kind.rules.defaults(made)
    before = copy.deepcopy(old)
    if part in _PARTS:
        prepare, validate = _PARTS[part]
        prepare(made, old)
        problems = validate(made, old)
    elif part == "status":
        kind.rules.prepare_status(made, old)
        problems = kind.rules.validate_status(made, old)
    else:
        if "status" in old:
            made["status"] = old["status"]
        kind.rules.prepare_update(made, old)
        problems = kind.rules.validate_update(made, old)
    assert old == before, "the old object was touched"
    return made, problems


def causes_of(kind: Kind, name: str, problems: list[FieldProblem]) -> set[Cause]:
    """Our causes, as far as they can be compared."""
    status = invalid_status(kind.group, kind.kind, name, problems)
    return {comparable(each.field, each.reason, each.message) for each in status.details.causes}


def told_causes(answer: dict[str, Any]) -> set[Cause]:
    """The causes of a real server, as far as they can be compared."""
    causes = answer["details"].get("causes") or ()
    return {comparable(each.get("field", ""), each.get("reason", ""), each.get("message", "")) for each in causes}


def comparable(field: str, reason: str, message: str) -> Cause:
    """A cause without what differs by nature: ids, and dumps of structs that only the server's own language has."""
    message = _UID.sub("UID", message)
    message = _WHOLE.sub("Invalid value: …: field is immutable", message)
    return field, reason, message.partition("\n")[0]


def settled(made: dict[str, Any]) -> dict[str, Any]:
    """An object without what every write changes."""
    text = _TIME.sub('"TIME"', _UID.sub("UID", json.dumps(made)))
    settled: dict[str, Any] = json.loads(text)
    for field in ("managedFields", "creationTimestamp", "resourceVersion", "namespace"):
        settled["metadata"].pop(field, None)
    return settled


def differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Where two values differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from differences(one.get(key, "(none)"), other.get(key, "(none)"), f"{path}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from differences(left, right, f"{path}[{index}]")
    elif one != other:
        yield f"{path}: Kubernetes has {one!r}, we have {other!r}"


def _text(holder: dict[str, str], field: str) -> str:
    if f"{field}-data" in holder:
        return base64.b64decode(holder[f"{field}-data"]).decode()
    return Path(holder[field]).read_text()


def _unquoted(warning: str) -> str:
    return re.sub(r"\\(.)", r"\1", warning.removeprefix('299 - "').removesuffix('"'))
