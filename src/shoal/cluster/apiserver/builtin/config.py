"""ConfigMap and Secret: keys, sizes, types, and what cannot change once it is immutable."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec

from shoal.cluster.apiserver.builtin.names import config_key_problems, subdomain_problems, text_bytes
from shoal.cluster.apiserver.builtin.values import text
from shoal.cluster.apiserver.kinds.json_scan import json_problem
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import FieldProblem, forbidden, immutable, invalid, required, too_long

SIZE_LIMIT = 1024 * 1024
ACCOUNT_NAME = "kubernetes.io/service-account.name"
_MOUNTABLE = "kubernetes.io/enforce-mountable-secrets"
_FROZEN = "field is immutable when `immutable` is set"


def config_map_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a ConfigMap's keys and size."""
    problems: list[FieldProblem] = []
    size = 0
    binary = new.get("binaryData") or {}
    for key, value in (new.get("data") or {}).items():
        problems += [invalid(f"data[{key}]", key, each) for each in config_key_problems(key)]
        if key in binary:
            problems.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        size += text_bytes(value)
    for key, value in binary.items():
        problems += [invalid(f"binaryData[{key}]", key, each) for each in config_key_problems(key)]
        size += _decoded_bytes(value)
    if size > SIZE_LIMIT:
        problems.append(too_long("[]", SIZE_LIMIT))
    return problems


def validate_config_map_update(new: Object, old: Object) -> list[FieldProblem]:
    """What is wrong with a change of a ConfigMap."""
    return _frozen_problems(new, old, ("data", "binaryData")) + config_map_problems(new)


def default_secret(new: Object) -> None:
    """Takes what was given as text into the data, and calls it opaque where no type was given."""
    if plain := new.pop("stringData", None):
        data = new["data"] = dict(new.get("data") or {})
        for key, value in plain.items():
            data[key] = base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()
    if not new.get("type"):
        new["type"] = "Opaque"


def secret_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a Secret's keys and size, and what its type asks for."""
    data: dict[str, str] = new.get("data") or {}
    problems: list[FieldProblem] = []
    for key in data:
        problems += [invalid(f"data[{key}]", key, each) for each in config_key_problems(key)]
    if sum(map(_decoded_bytes, data.values())) > SIZE_LIMIT:
        problems.append(too_long("data", SIZE_LIMIT))
    return problems + _type_problems(new, data)


def validate_secret_update(new: Object, old: Object) -> list[FieldProblem]:
    """What is wrong with a change of a Secret: its type stays."""
    problems = [] if new.get("type") == old.get("type") else [immutable("type", new.get("type", ""))]
    return problems + _frozen_problems(new, old, ("data",)) + secret_problems(new)


def secret_warnings(new: Object) -> list[str]:
    """A certificate or key that is none is told of, not refused."""
    if new.get("type") != "kubernetes.io/tls":
        return []
    data = new.get("data") or {}
    for key, what in (("tls.crt", "certificate"), ("tls.key", "key")):
        if b"-----BEGIN" not in base64.b64decode(data.get(key) or ""):
            return [f"tls: failed to find any PEM data in {what} input"]
    return []


def prepare_account(new: Object) -> None:
    """Secrets are named, and nothing else about them is kept."""
    if secrets := new.get("secrets"):
        new["secrets"] = [{"name": each["name"]} if each.get("name") else {} for each in secrets]


def account_warnings(new: Object) -> list[str]:
    """What a client is told of a ServiceAccount that is taken."""
    if _MOUNTABLE not in (new["metadata"].get("annotations") or {}):
        return []
    return [
        f"metadata.annotations[{_MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to "
        "mounted secrets"
    ]


def _type_problems(new: Object, data: dict[str, str]) -> list[FieldProblem]:
    kind = new.get("type", "")
    if kind == "kubernetes.io/service-account-token":
        if (new["metadata"].get("annotations") or {}).get(ACCOUNT_NAME):
            return []
        return [required(f"metadata.annotations[{ACCOUNT_NAME}]")]
    if kind in ("kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson"):
        key = f".{kind.partition('/')[2]}"
        return _json_problems(key, data)
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & data.keys():
        return [required("data[username]"), required("data[password]")]
    if kind == "kubernetes.io/ssh-auth" and not data.get("ssh-privatekey"):
        return [required("data[ssh-privatekey]")]
    if kind == "kubernetes.io/tls":
        return [required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data]
    return []


def _json_problems(key: str, data: dict[str, str]) -> list[FieldProblem]:
    if key not in data:
        return [required(f"data[{key}]")]
    hidden = "<secret contents redacted>"
    try:
        contents = base64.b64decode(data[key])
        value = msgspec.json.decode(contents)
    except (binascii.Error, msgspec.DecodeError, UnicodeDecodeError):
        return [invalid(f"data[{key}]", hidden, json_problem(base64.b64decode(data[key])))]
    if value is not None and not isinstance(value, dict):
        found = _go_json_type(value)
        words = f"json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        return [invalid(f"data[{key}]", hidden, words)]
    return []


def _go_json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "number"


def _frozen_problems(new: Object, old: Object, fields: tuple[str, ...]) -> list[FieldProblem]:
    if not old.get("immutable"):
        return []
    problems = [] if new.get("immutable") else [forbidden("immutable", _FROZEN)]
    return problems + [forbidden(each, _FROZEN) for each in fields if (new.get(each) or {}) != (old.get(each) or {})]


def _decoded_bytes(value: str | None) -> int:
    """The size of what base64 holds."""
    return len(value) // 4 * 3 - value[-2:].count("=") if value else 0


RULES = {
    ("", "ConfigMap"): Rules(
        name_problems=subdomain_problems,
        validate_create=config_map_problems,
        validate_update=validate_config_map_update,
        has_generation=False,
    ),
    ("", "Secret"): Rules(
        name_problems=subdomain_problems,
        defaults=default_secret,
        validate_create=secret_problems,
        validate_update=validate_secret_update,
        warnings=secret_warnings,
        has_generation=False,
        fields={"type": text("type")},
    ),
    ("", "ServiceAccount"): Rules(
        name_problems=subdomain_problems,
        prepare_create=prepare_account,
        prepare_update=lambda new, _old: prepare_account(new),
        warnings=account_warnings,
        has_generation=False,
    ),
}
