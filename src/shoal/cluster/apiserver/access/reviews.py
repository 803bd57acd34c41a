"""The kinds that are questions: who am I, whom does this token stand for, who may do what.

Each function takes the body of the request, decoded, and gives the object to answer with; nothing is stored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from shoal.api.meta import InvalidSelector, Selector, format_time, label_value_problems, qualified_name_problems
from shoal.cluster.apiserver.access.account_tokens import BadToken
from shoal.cluster.apiserver.access.authentication import Authenticator
from shoal.cluster.apiserver.access.authorization import Authorizer, Query
from shoal.cluster.apiserver.access.user import User
from shoal.cluster.apiserver.access.wording import aggregate
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.refusals import bad_request, invalid
from shoal.kube.admission import fields
from shoal.kube.admission.fields import FieldProblem

AUTHENTICATION = "authentication.k8s.io"
AUTHORIZATION = "authorization.k8s.io"
_RESOURCE = "spec.resourceAttributes"
# A path that no rule names but the one for all: what a review for no path at all comes to.
_NO_PATH = "\0"


def token_review(body: Object, authenticator: Authenticator) -> Object:
    """Whom a token stands for."""
    spec = body.get("spec") or {}
    token = spec.get("token", "")
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    try:
        reviewed = authenticator.review(token, spec.get("audiences") or ())
    except BadToken as error:
        return {**body, "status": {"user": {}, "error": str(error)}}
    status = {
        "authenticated": True,
        "user": user_info(reviewed.user),
        "audiences": list(reviewed.audiences),
    }
    return {**body, "status": status}


def self_subject_review(body: Object, user: User, *, now: datetime) -> Object:
    """Who asks."""
    return {
        "kind": "SelfSubjectReview",
        "apiVersion": body.get("apiVersion", f"{AUTHENTICATION}/v1"),
        "metadata": {"creationTimestamp": format_time(now)},
        "status": {"userInfo": user_info(user)},
    }


def subject_access_review(body: Object, authorizer: Authorizer) -> Object:
    """Whether some user may do something."""
    problems = [*_spec_problems(body, of_self=False), *_metadata_problems(body, except_namespace=False)]
    return _answered(body, authorizer, problems, _subject)


def local_subject_access_review(body: Object, authorizer: Authorizer, *, namespace: str) -> Object:
    """Whether some user may do something in a namespace."""
    metadata = {**(body.get("metadata") or {})}
    metadata.setdefault("namespace", namespace)
    body = {**body, "metadata": metadata}
    problems = [*_spec_problems(body, of_self=False), *_metadata_problems(body, except_namespace=True)]
    spec = body.get("spec") or {}
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and resource.get("namespace", "") != metadata["namespace"]:
        where = f"{_RESOURCE}.namespace"
        problems.append(fields.invalid(where, resource.get("namespace", ""), "must match metadata.namespace"))
    if path is not None:
        where = "spec.nonResourceAttributes"
        problems.append(fields.invalid(where, _internal(path), "disallowed on this kind of request"))
    return _answered(body, authorizer, problems, _subject)


def self_subject_access_review(body: Object, user: User, authorizer: Authorizer) -> Object:
    """Whether the one who asks may do something."""
    problems = [*_spec_problems(body, of_self=True), *_metadata_problems(body, except_namespace=False)]
    return _answered(body, authorizer, problems, lambda _spec: user)


def self_subject_rules_review(body: Object, user: User, authorizer: Authorizer) -> Object:
    """All that the one who asks may do in a namespace."""
    namespace = (body.get("spec") or {}).get("namespace", "")
    if not namespace:
        raise bad_request("no namespace on request")
    found = authorizer.rules_for(user, namespace)
    status: Object = {
        "resourceRules": found.resource,
        "nonResourceRules": found.non_resource,
        "incomplete": False,
    }
    if found.problems:
        status["evaluationError"] = aggregate(found.problems)
    return {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": f"{AUTHORIZATION}/v1",
        "metadata": {},
        "spec": {},
        "status": status,
    }


def user_info(user: User) -> Object:
    """A user as reviews, admission reviews and certificate requests show it."""
    info: Object = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(user.extra[key]) for key in sorted(user.extra)}
    return info


def _answered(
    body: Object, authorizer: Authorizer, problems: list[FieldProblem], subject: Callable[[Object], User]
) -> Object:
    if problems:
        raise invalid("", AUTHORIZATION, "", problems)
    spec = body["spec"]
    decision = authorizer.decision(_query(spec, subject(spec)))
    status: Object = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    if ignored := list(_ignored_selectors(spec.get("resourceAttributes") or {})):
        status["evaluationError"] = "; ".join(ignored)
    return {**body, "status": status}


def _subject(spec: Object) -> User:
    extra = {key: tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    groups = tuple(spec.get("groups") or ())
    return User(name=spec.get("user", ""), uid=spec.get("uid", ""), groups=groups, extra=extra)


def _query(spec: Object, user: User) -> Query:
    asked = spec.get("resourceAttributes")
    if asked is None:
        asked = spec["nonResourceAttributes"]
        return Query(user=user, verb=asked.get("verb", ""), path=asked.get("path") or _NO_PATH)
    names = ("verb", "group", "resource", "subresource", "namespace", "name")
    return Query(user=user, version=asked.get("version") or "*", **{name: asked.get(name, "") for name in names})


def _spec_problems(body: Object, *, of_self: bool) -> Iterator[FieldProblem]:
    spec = body.get("spec") or {}
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        why = "cannot be specified in combination with resourceAttributes"
        yield fields.invalid("spec.nonResourceAttributes", _internal(path), why)
    if resource is None and path is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        yield fields.invalid(_RESOURCE, None, why)
    if not of_self and not spec.get("user") and not spec.get("groups"):
        yield fields.invalid("spec.user", "", "at least one of user or group must be specified")
    for kind in ("fieldSelector", "labelSelector"):
        selector = (resource or {}).get(kind)
        if selector is not None:
            yield from _selector_problems(selector, f"{_RESOURCE}.{kind}", of_labels=kind == "labelSelector")


def _metadata_problems(body: Object, *, except_namespace: bool) -> Iterator[FieldProblem]:
    metadata = body.get("metadata") or {}
    ignored = {"managedFields", "namespace"} if except_namespace else {"managedFields"}
    if any(value for key, value in metadata.items() if key not in ignored):
        why = "must be empty except for namespace" if except_namespace else "must be empty"
        yield fields.invalid("metadata", metadata, why)


def _selector_problems(selector: Object, path: str, *, of_labels: bool) -> Iterator[FieldProblem]:
    raw, requirements = selector.get("rawSelector", ""), selector.get("requirements") or []
    if raw and requirements:
        yield fields.invalid(f"{path}.rawSelector", raw, "may not specified at the same time as requirements")
    if not raw and not requirements:
        why = f"when {path} is specified, requirements or rawSelector is required"
        yield fields.required(f"{path}.requirements", why)
    for index, requirement in enumerate(requirements):
        where = f"{path}.requirements[{index}]"
        key, values = requirement.get("key", ""), requirement.get("values") or []
        match requirement.get("operator", ""):
            case "In" | "NotIn" if not values:
                why = "must be specified when `operator` is 'In' or 'NotIn'"
                late = [fields.required(f"{where}.values", why)]
            case "Exists" | "DoesNotExist" if values:
                why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                late = [fields.forbidden(f"{where}.values", why)]
            case _:
                late = []
        if not of_labels:
            if not key:
                yield fields.required(f"{where}.key", "must be specified")
            yield from late
            continue
        yield from late
        yield from (fields.invalid(f"{where}.key", key, problem) for problem in qualified_name_problems(key))
        for position, value in enumerate(values):
            for problem in label_value_problems(value):
                yield fields.invalid(f"{where}.values[{position}]", value, problem)


def _ignored_selectors(asked: Object) -> Iterator[str]:
    """Selectors that cannot be read are left out of the decision, which is then for more than was asked."""
    for kind, fault in (("fieldSelector", _field_fault), ("labelSelector", _label_fault)):
        selector = asked.get(kind) or {}
        raw, requirements = selector.get("rawSelector", ""), selector.get("requirements") or []
        faults = [fault(each) for each in requirements]
        is_unreadable = bool(raw) and not (_reads_fields(raw) if kind == "fieldSelector" else _reads_labels(raw))
        if any(faults) or is_unreadable:
            partially = "partially " if faults and not all(faults) else ""
            yield f"{_RESOURCE}.{kind} {partially}ignored due to parse error"


def _field_fault(requirement: Object) -> bool:
    return requirement.get("operator") not in ("In", "NotIn") or len(requirement.get("values") or ()) != 1


def _label_fault(requirement: Object) -> bool:
    return requirement.get("operator") not in ("In", "NotIn", "Exists", "DoesNotExist")


def _reads_fields(raw: str) -> bool:
    return all("=" in term for term in re.split(r"(?<!\\),", raw) if term)


def _reads_labels(raw: str) -> bool:
    try:
        Selector.parse(raw)
    except InvalidSelector:
        return False
    return True


def _internal(attributes: Object) -> dict[str, Any]:
    """Attributes as the real server shows them: by the names of its own type."""
    return {"Path": attributes.get("path", ""), "Verb": attributes.get("verb", "")}
