"""What our rules say to a case, in the form in which Kubernetes' answer is kept: so that the two compare."""

from __future__ import annotations

import copy
import json
import random
from functools import cache
from pathlib import Path
from typing import Any

from shoal.cluster.apiserver.builtin import RULES
from shoal.cluster.apiserver.builtin.metadata import validate_metadata, validate_metadata_update
from shoal.cluster.apiserver.builtin.namespaces import prepare_finalize, validate_finalize
from shoal.cluster.apiserver.builtin.service_addresses import Ranges, Taken, allocate
from shoal.cluster.apiserver.kinds.decode import decode
from shoal.cluster.apiserver.kinds.kind import Kind
from shoal.cluster.apiserver.kinds.tables import builtin_kinds
from shoal.cluster.apiserver.refusals import Refused
from shoal.kube.errors import Cause
from tests.cluster.apiserver.builtin import cases_core, cases_others
from tests.cluster.apiserver.builtin.asking import Asking
from tests.cluster.apiserver.builtin.kind_cases import Case, cases_of

NAMESPACE = "builtin-probe"
ANSWERS = Path(__file__).parent / "answers.jsonl"
Answer = dict[str, Any]

_VOLATILE = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink")
_PROTECTION = ("kubernetes.io/pvc-protection", "kubernetes.io/pv-protection", "kubernetes.io/vac-protection")
_NOT_READY = "node.kubernetes.io/not-ready"
_TAKEN = Taken(addresses=frozenset({"10.96.0.1"}))


@cache
def kinds() -> dict[tuple[str, str], Kind]:
    """The built-in kinds by apiVersion and kind."""
    return {(kind.api_version, kind.kind): kind for kind in builtin_kinds(RULES)}


def all_cases() -> list[Case]:
    """Every case of creation."""
    return list(cases_of((*cases_core.KINDS, *cases_others.KINDS)))


def recorded() -> dict[str, Answer]:
    """What Kubernetes answered to each case, by its id."""
    return dict(map(json.loads, ANSWERS.read_text().splitlines()))


def kubernetes_answer(asking: Asking, case: Case) -> Answer:
    """What a server answers to a case; nothing is written there."""
    return told(*asking.ask("POST", f"{at(case.path)}?dryRun=All&fieldManager=cases", in_namespace(case.object)))


def at(path: str) -> str:
    """A path in the namespace of the cases."""
    return path.format(namespace=NAMESPACE)


def in_namespace(value: dict[str, Any]) -> dict[str, Any]:
    """A copy of an object that speaks of the namespace of the cases."""
    copied: dict[str, Any] = json.loads(json.dumps(value).replace("{namespace}", NAMESPACE))
    return copied


def ours(case: Case) -> Answer:
    """What our rules answer: the steps of a create, without the parts that need a server."""
    body = in_namespace(case.object)
    kind = kinds()[body["apiVersion"], body["kind"]]
    new = decode(kind.schema, body, [])
    new |= {"apiVersion": body["apiVersion"], "kind": body["kind"]}
    if case.namespaced:
        new["metadata"]["namespace"] = NAMESPACE
    kind.rules.defaults(new)
    if kind.rules.has_generation:
        new["metadata"]["generation"] = 1
    if kind.has_status and not kind.rules.keeps_status:
        empty = decode(kind.schema, {}, [])
        new.pop("status", None)
        new |= {"status": empty["status"]} if "status" in empty else {}
    kind.rules.prepare_create(new)
    if not new["metadata"].get("name") and new["metadata"].get("generateName"):
        new["metadata"]["name"] = new["metadata"]["generateName"] + "x"
    try:
        if kind.kind == "Service":
            allocate(new, _TAKEN, Ranges(is_trial=True), source=random.Random(0))
    except Refused as refusal:
        return _refused(list(refusal.status.details.causes))
    problems = validate_metadata(new, namespaced=kind.namespaced, name_problems=kind.rules.name_problems)
    problems += kind.rules.validate_create(new)
    if problems:
        return _refused([Cause(reason=p.reason.cause, message=p.words, field=p.path) for p in problems])
    return _accepted(decode(kind.schema, new, []), kind.rules.warnings(new), body["kind"])


def ours_update(body: dict[str, Any], live: dict[str, Any], subresource: str) -> Answer:
    """What our rules answer to a change of an object that is there."""
    kind = kinds()[body["apiVersion"], body["kind"]]
    old = {**decode(kind.schema, live, []), "apiVersion": body["apiVersion"], "kind": body["kind"]}
    new = {**decode(kind.schema, body, []), "apiVersion": body["apiVersion"], "kind": body["kind"]}
    rules = kind.rules
    rules.defaults(new)
    metadata = new["metadata"]
    metadata["generation"] = old["metadata"].get("generation", 0)
    if not metadata["generation"]:
        del metadata["generation"]
    if subresource == "status":
        new |= {key: value for key, value in old.items() if key not in ("metadata", "status")}
        rules.prepare_status(new, old)
        problems = rules.validate_status(new, old)
    elif subresource == "finalize":
        prepare_finalize(new, old)
        problems = validate_finalize(new, old)
    else:
        if kind.has_status:
            new["status"] = copy.deepcopy(old.get("status"))
        if kind.kind == "Service":
            try:
                allocate(new, Taken(), Ranges(is_trial=True), old=old, source=random.Random(0))
            except Refused as refusal:
                return _refused(list(refusal.status.details.causes))
        rules.prepare_update(new, old)
        if rules.has_generation and _spec(new) != _spec(old):
            metadata["generation"] = old["metadata"].get("generation", 0) + 1
        problems = rules.validate_update(new, old)
    problems = validate_metadata_update(new, old) + problems
    if problems:
        return _refused([Cause(reason=p.reason.cause, message=p.words, field=p.path) for p in problems])
    return _accepted(decode(kind.schema, new, []), rules.warnings(new), body["kind"])


def _spec(value: dict[str, Any]) -> dict[str, Any]:
    return {key: each for key, each in value.items() if key not in ("metadata", "status")}


def told(code: int, answer: dict[str, Any], warnings: list[str]) -> Answer:
    """Kubernetes' answer in the same form."""
    if code >= 300:
        causes = (answer.get("details") or {}).get("causes") or []
        if not causes:
            return {"accepted": False, "message": answer.get("message", "")}
        return _refused(
            [Cause(**{key: cause.get(key, "") for key in ("reason", "message", "field")}) for cause in causes]
        )
    return _accepted(answer, [_unquoted(each) for each in warnings], answer["kind"])


def _refused(causes: list[Cause]) -> Answer:
    # What follows the first line of a message is a difference, whose layout is nobody's contract.
    distinct = {(cause.field, cause.reason, cause.message.partition("\n")[0]) for cause in causes}
    return {"accepted": False, "causes": sorted(map(list, distinct))}


def _accepted(answer: dict[str, Any], warnings: list[str], kind: str) -> Answer:
    shown = copy.deepcopy(answer)
    for field in _VOLATILE:
        shown.get("metadata", {}).pop(field, None)
    for field in ("apiVersion", "kind"):
        shown.pop(field, None)
    if kind == "Service":
        _hide_allocated(shown["spec"])
    _forget_admission(shown)
    if kind == "PersistentVolume":
        shown["status"].pop("lastPhaseTransitionTime", None)
    return {"accepted": True, "object": _shortened(shown), "warnings": sorted(warnings)}


def _shortened(value: Any) -> Any:
    """Long texts by their length: a megabyte is not worth keeping."""
    if isinstance(value, dict):
        return {key: _shortened(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_shortened(each) for each in value]
    return f"{len(value)} characters" if isinstance(value, str) and len(value) > 1000 else value


def _forget_admission(shown: dict[str, Any]) -> None:
    """Takes away what Kubernetes' admission adds, which is no part of the rules."""
    metadata = shown.get("metadata", {})
    kept = [each for each in metadata.get("finalizers") or () if each not in _PROTECTION]
    if not kept:
        metadata.pop("finalizers", None)
    taints = (shown.get("spec") or {}).get("taints")
    if taints and [each for each in taints if each.get("key") != _NOT_READY]:
        shown["spec"]["taints"] = [each for each in taints if each.get("key") != _NOT_READY]
    elif taints:
        del shown["spec"]["taints"]


def _hide_allocated(spec: dict[str, Any]) -> None:
    """Addresses and ports are whatever is free."""
    for field in ("clusterIP", "healthCheckNodePort"):
        if spec.get(field) not in (None, "None"):
            spec[field] = "allocated"
    spec["clusterIPs"] = [each if each == "None" else "allocated" for each in spec.get("clusterIPs") or ()]
    for port in spec.get("ports") or ():
        if port.get("nodePort"):
            port["nodePort"] = "allocated"


def _unquoted(warning: str) -> str:
    """The text of a Warning header: ``299 - "text"``."""
    text = warning.split(" ", 2)[2]
    return str(json.loads(text)) if text.startswith('"') else text
