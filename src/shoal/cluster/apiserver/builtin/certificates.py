"""CertificateSigningRequest: a request that never changes, and decisions that are never taken back.

Who asks is set by the server (``sign_as``), not by the client. The certificate request itself is looked at as far as
its outer form goes.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from shoal.api.meta import format_time, now
from shoal.cluster.apiserver.builtin.names import label_problems
from shoal.cluster.apiserver.builtin.values import one_of, text
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import FieldProblem, duplicate, forbidden, invalid, required

GROUP = "certificates.k8s.io"
USAGES = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)
_LASTING = ("Approved", "Denied", "Failed")
_IDENTITY = ("username", "uid", "groups", "extra")


def sign_as(new: Object, username: str, uid: str, groups: Sequence[str], extra: Mapping[str, Sequence[str]]) -> None:
    """Writes who asks into a request that is to be created."""
    spec = new.setdefault("spec", {})
    values: dict[str, Any] = {
        "username": username,
        "uid": uid,
        "groups": list(groups),
        "extra": {key: list(value) for key, value in extra.items()},
    }
    for field in _IDENTITY:
        spec.pop(field, None)
        if values[field]:
            spec[field] = values[field]


def prepare_update(new: Object, old: Object) -> None:
    """Keeps all but metadata."""
    new["spec"] = old["spec"]
    if "status" in old:
        new["status"] = old["status"]


def prepare_status(new: Object, old: Object) -> None:
    """Keeps decisions, which have a subresource of their own."""
    new["spec"] = old["spec"]
    status = new.setdefault("status", {})
    kept = [each for each in _conditions(old) if each.get("type") in ("Approved", "Denied")]
    rest = [each for each in status.get("conditions") or () if each.get("type") not in ("Approved", "Denied")]
    if kept or rest:
        status["conditions"] = _timed([*kept, *rest], old)


def prepare_approval(new: Object, old: Object) -> None:
    """Takes the decision alone."""
    new["spec"] = old["spec"]
    conditions = _timed(_conditions(new), old)
    status = {key: value for key, value in (old.get("status") or {}).items() if key != "conditions"}
    new["status"] = {**status, **({"conditions": conditions} if conditions else {})}


def request_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a request."""
    spec = new.get("spec") or {}
    problems: list[FieldProblem] = []
    if not _is_request(spec.get("request") or ""):
        words = "PEM block type must be CERTIFICATE REQUEST"
        problems.append(invalid("spec.request", spec.get("request"), words))
    usages = spec.get("usages") or []
    if not usages:
        problems.append(required("spec.usages"))
    for index, usage in enumerate(usages):
        problems += one_of(f"spec.usages[{index}]", usage, USAGES)
    for index, usage in enumerate(usages):
        if usage in usages[:index]:
            problems.append(duplicate(f"spec.usages[{index}]", usage))
    problems += signer_name_problems(spec.get("signerName", ""), "spec.signerName")
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < 600:
        words = "may not specify a duration less than 600 seconds (10 minutes)"
        problems.append(invalid("spec.expirationSeconds", seconds, words))
    return problems + _condition_problems(new)


def signer_name_problems(name: str, path: str) -> list[FieldProblem]:
    """What keeps a text from naming a signer: a domain, and a path below it."""
    if not name:
        return [required(path)]
    if name == "kubernetes.io/legacy-unknown":
        return [invalid(path, name, "the legacy signerName is not allowed via this API version")]
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        words = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [invalid(path, name, words)]
    problems: list[FieldProblem] = []
    parts = domain.split(".")
    if len(parts) < 2:
        problems.append(invalid(path, domain, "should be a domain with at least two segments separated by dots"))
    for part in parts:
        problems += [invalid(path, part, f'validating label "{part}": {each}') for each in label_problems(part)]
    for part in rest.split("."):
        problems += [invalid(path, part, f'validating label "{part}": {each}') for each in label_problems(part)]
    return problems


def validate_update(new: Object, old: Object) -> list[FieldProblem]:
    """What is wrong with a change."""
    return request_problems(new) + _kept_problems(new, old, decisions=False, certificate=False)


def validate_status(new: Object, old: Object) -> list[FieldProblem]:
    """The same for what a signer writes."""
    return request_problems(new) + _kept_problems(new, old, decisions=False, certificate=True)


def validate_approval(new: Object, old: Object) -> list[FieldProblem]:
    """The same for a decision."""
    return request_problems(new) + _kept_problems(new, old, decisions=True, certificate=False)


def _kept_problems(new: Object, old: Object, *, decisions: bool, certificate: bool) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    path = "status.conditions"
    for kind in _LASTING:
        is_there, was_there = (
            [each for each in _conditions(which) if each.get("type") == kind] for which in (new, old)
        )
        if len(is_there) < len(was_there):
            problems.append(forbidden(path, f'updates may not remove a condition of type "{kind}"'))
        elif not decisions and kind != "Failed" and len(is_there) > len(was_there):
            problems.append(forbidden(path, f'updates may not add a condition of type "{kind}"'))
        elif not decisions and kind != "Failed" and is_there != was_there:
            problems.append(forbidden(path, f'updates may not modify a condition of type "{kind}"\n'))
    issued, before = ((each.get("status") or {}).get("certificate") for each in (new, old))
    if issued != before and not certificate:
        problems.append(forbidden("status.certificate", "updates may not set certificate content"))
    elif issued != before and before:
        problems.append(forbidden("status.certificate", "updates may not modify existing certificate content"))
    return problems


def _condition_problems(new: Object) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    path, seen = "status.conditions", set[str]()
    for index, condition in enumerate(_conditions(new)):
        here, kind, status = f"{path}[{index}]", condition.get("type", ""), condition.get("status", "")
        if not kind:
            problems.append(required(f"{here}.type"))
        if not status:
            problems.append(required(f"{here}.status"))
        else:
            known = ("True",) if kind in _LASTING else ("False", "True", "Unknown")
            problems += one_of(f"{here}.status", status, known)
        other = {"Approved": "Denied", "Denied": "Approved"}.get(kind)
        if other in seen:
            words = "Approved and Denied conditions are mutually exclusive"
            problems.append(invalid(path, kind, words))
        if kind in seen:
            problems.append(duplicate(f"{here}.type", kind))
        seen.add(kind)
    return problems


def _conditions(request: Object) -> list[dict[str, Any]]:
    return (request.get("status") or {}).get("conditions") or []


def _timed(conditions: list[dict[str, Any]], old: Object) -> list[dict[str, Any]]:
    """The same conditions, those that are new or have changed with the time of it."""
    before = {each.get("type"): each for each in _conditions(old)}
    moment = format_time(now())
    timed = []
    for condition in conditions:
        had = before.get(condition.get("type")) or {}
        since = had.get("lastTransitionTime") if had.get("status") == condition.get("status") else moment
        stamps = {"lastUpdateTime": moment, "lastTransitionTime": since or moment}
        timed.append({**stamps, **{key: value for key, value in condition.items() if value}})
    return timed


def _is_request(encoded: str) -> bool:
    try:
        contents = base64.b64decode(encoded)
    except binascii.Error:
        return False
    return b"-----BEGIN CERTIFICATE REQUEST-----" in contents


RULES = {
    (GROUP, "CertificateSigningRequest"): Rules(
        name_problems=lambda _name: [],
        prepare_update=prepare_update,
        prepare_status=prepare_status,
        validate_create=request_problems,
        validate_update=validate_update,
        validate_status=validate_status,
        has_generation=False,
        resets={
            "": (("spec",), ("status",)),
            "status": (("spec",), ("status", "conditions")),
            "approval": (("spec",), ("status", "certificate")),
        },
        fields={"spec.signerName": text("spec", "signerName")},
    )
}
