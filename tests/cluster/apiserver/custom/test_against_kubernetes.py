"""The real API server and our functions agree on custom kinds: what is refused, why, and what is left of the rest."""

from __future__ import annotations

import copy
import http.client
import json
import ssl
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from shoal.cluster.apiserver.builtin.metadata import object_meta_problems
from shoal.cluster.apiserver.custom import default_definition, kinds_of, validate_definition
from shoal.cluster.apiserver.kinds.kind import Kind
from shoal.cluster.apiserver.refusals import Refused, invalid
from shoal.cluster.kubernetes import RealKubernetes
from shoal.kube.admission.fields import FieldProblem
from shoal.kube.errors import Status
from tests.cluster.apiserver.custom.gadgets import FIELDS, GROUP, VALUES, definition, gadget
from tests.cluster.apiserver.custom.test_corpus import FILES, PROJECTS, load
from tests.cluster.apiserver.custom.test_definitions import CHANGES, FIELD_PROBLEMS, changed
from tests.support.schemas.corpus import needs_corpus, upstream_samples

pytestmark = pytest.mark.slow

Answer = tuple[int, Any]
Ask = Callable[[str, str, Any], Answer]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GADGETS = f"/apis/{GROUP}/v1/namespaces/default/gadgets"
# Estimating what a rule may cost, and telling a whole schema in Go's names, are left to Kubernetes.
NOT_OURS = ("estimated rule cost", '{"ID":""', "Internal error")


@pytest.fixture(scope="module")
def ask(kube: RealKubernetes) -> Iterator[Ask]:
    context = ssl.create_default_context(cafile=str(kube.ca_file))
    connection = http.client.HTTPSConnection(urlsplit(kube.server).netloc, context=context, timeout=20)

    def request(method: str, path: str, body: Any) -> Answer:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {kube.admin_token}", "Content-Type": kind}
        try:
            connection.request(method, path, json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        except http.client.HTTPException:
            # The server drops the connection where a schema makes it panic.
            connection.close()
            return 500, {}

    yield request
    connection.close()


@pytest.fixture(scope="module")
def kind(kube: RealKubernetes) -> Kind:
    value = definition()
    kube.admin.define([value])
    default_definition(value)
    [made] = kinds_of(value)
    return made


def refusal(status: int, answer: dict[str, Any]) -> tuple[int, str, list[tuple[str, str, str]]]:
    causes = (answer.get("details") or {}).get("causes") or []
    told = sorted((each.get("reason", ""), each["message"], each.get("field", "")) for each in causes)
    return status, answer["message"] if status == 400 else "", told


def ours(kind: Kind, value: dict[str, Any]) -> tuple[int, Any]:
    """What our functions make of a create: the status, and the spec or the causes."""
    assert kind.read is not None
    try:
        new = kind.read(copy.deepcopy(value), [])
    except Refused as refused:
        return 400, (400, refused.status.message, [])
    metadata = new.get("metadata") or {}
    rule = kind.rules.name_problems
    problems = object_meta_problems(metadata, "metadata", namespaced=kind.namespaced, rule=rule, is_custom=True)
    problems += kind.rules.validate_create(new)
    if not problems:
        return 201, new.get("spec")
    return 422, (422, "", causes_of(invalid(kind.kind, kind.group, "x", problems).status))


def causes_of(status: Status) -> list[tuple[str, str, str]]:
    return sorted((each.reason, each.message, each.field) for each in status.details.causes)


@pytest.mark.parametrize("name", FIELDS)
def test_the_same_values_of_a_field_are_accepted_and_refused(name: str, kind: Kind, ask: Ask) -> None:
    differences = []
    for value in VALUES:
        body = gadget({"name": "abc", name: value})
        status, answer = ask("POST", f"{GADGETS}?dryRun=All", body)
        theirs = (status, answer.get("spec") if status == 201 else refusal(status, answer))
        if (mine := ours(kind, body)) != theirs:
            differences.append((value, mine, theirs))
    assert differences == []


CHANGED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"mode": "C", "name": "abc"}, {"flag": True}),
    ({"mode": "C", "name": "abc"}, {"mode": "D"}),
    ({"rule": 1, "name": "abc"}, {"flag": True}),
    ({"rule": 1, "name": "abc"}, {"rule": 2}),
    ({"map": [{"k": "a", "v": "x"}], "name": "abc"}, {"map": [{"k": "b", "v": 1}, {"k": "a", "v": "x"}]}),
    ({"map": [{"k": "a", "v": "x"}], "name": "abc"}, {"map": [{"k": "a", "v": "y"}]}),
    ({"set": ["a", "a"], "name": "abc"}, {"set": ["a", "a", "b"]}),
    ({"set": list("abcd"), "name": "abc"}, {"flag": True}),
    ({"set": list("abcd"), "name": "abc"}, {"set": list("abcde")}),
    ({"alt": {"a": "x"}, "name": "abc"}, {"alt": {"b": 9}}),
    ({"alt": {"a": "x"}, "name": "abc"}, {"alt": {"b": 1}}),
    ({"obj": {"a": 3, "b": 2, "c": "x"}, "name": "abc"}, {"obj": {"c": "y"}}),
    ({"obj": {"a": 3, "b": 2, "c": "x"}, "name": "abc"}, {"flag": True}),
    ({"imm": "a", "opt": "a", "name": "abc"}, {"imm": "b"}),
    ({"imm": "a", "opt": "a", "name": "abc"}, {"opt": "b"}),
    ({"imm": "a", "name": "abc"}, {"imm": None, "opt": "new"}),
    ({"labels": {"a": "long"}, "name": "abc"}, {"labels": {"b": "x"}}),
    ({"name": "TOO-LONG-NAME"}, {"flag": True}),
    ({"name": "TOO-LONG-NAME"}, {"name": "TOO-LONG-NAME-TOO"}),
    ({"all": "yy", "one": {}, "name": "abc"}, {"flag": True}),
]


def test_what_was_wrong_before_is_tolerated_alike(kube: RealKubernetes, ask: Ask) -> None:
    """Objects are made while their kind takes anything, and changed once it has its schema."""
    free = definition()
    free["metadata"]["name"] = "widgets.loose.shoal.test"
    free["spec"]["group"] = "loose.shoal.test"
    free["spec"]["names"] = {"kind": "Gadget", "plural": "widgets"}
    version = free["spec"]["versions"][0]
    strict = copy.deepcopy(version["schema"])
    version["schema"] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version.pop("selectableFields")
    version["subresources"] = {"status": {}}
    kube.admin.define([free])
    path = "/apis/loose.shoal.test/v1/namespaces/default/widgets"
    for at, (old, _) in enumerate(CHANGED):
        body = {**gadget(old, name=f"g{at}"), "apiVersion": "loose.shoal.test/v1"}
        assert ask("POST", path, body)[0] == 201
    tight = copy.deepcopy(free)
    tight["spec"]["versions"][0]["schema"] = strict
    kube.admin.define([tight])
    wait_until(lambda: ask("POST", f"{path}?dryRun=All", {**gadget({}), "apiVersion": "loose.shoal.test/v1"})[0] == 422)
    default_definition(tight)
    [kind] = kinds_of(tight)
    assert kind.read is not None
    differences = []
    for at, (_, patch) in enumerate(CHANGED):
        live = ask("GET", f"{path}/g{at}", None)[1]
        status, answer = ask("PATCH", f"{path}/g{at}?dryRun=All", {"spec": patch})
        theirs = (200, []) if status == 200 else (status, refusal(status, answer)[2])
        merged = {**live, "spec": _merged(live["spec"], patch)}
        old = kind.read(copy.deepcopy(live), [])
        problems: list[FieldProblem] = kind.rules.validate_update(kind.read(copy.deepcopy(merged), []), old)
        mine = (422, causes_of(invalid("Gadget", "", "", problems).status)) if problems else (200, [])
        if mine != theirs:
            differences.append((patch, mine, theirs))
    assert differences == []


def _merged(value: Any, patch: dict[str, Any]) -> dict[str, Any]:
    merged = dict(value) if isinstance(value, dict) else {}
    for name, item in patch.items():
        if item is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name), item) if isinstance(item, dict) else item
    return merged


def wait_until(holds: Callable[[], bool]) -> None:
    for _ in range(2000):
        if holds():
            return
    pytest.fail("the new schema did not come into force")


@pytest.mark.parametrize(
    "value",
    [definition(probe=schema) for schema, _ in FIELD_PROBLEMS] + [changed(change) for change in CHANGES.values()],
    ids=[str(schema)[:60] for schema, _ in FIELD_PROBLEMS] + list(CHANGES),
)
def test_the_same_definitions_are_refused_in_the_same_words(value: dict[str, Any], ask: Ask) -> None:
    status, answer = ask("POST", f"{DEFINITIONS}?dryRun=All", value)
    if status == 500:
        pytest.skip("the real server cannot read this schema")
    default_definition(value)
    value["status"] = {"storedVersions": [next(each["name"] for each in value["spec"]["versions"] if each["storage"])]}
    problems = validate_definition(value)
    mine = causes_of(invalid("", "", "", problems).status) if problems else []
    theirs = [each for each in refusal(status, answer)[2] if not any(odd in each[1] for odd in NOT_OURS)]
    assert [each for each in mine if not any(odd in each[1] for odd in NOT_OURS)] == theirs


@needs_corpus
@pytest.mark.parametrize("project", PROJECTS)
def test_samples_of_a_project_are_answered_alike(project: str, kube: RealKubernetes, ask: Ask) -> None:
    files = [file for file in FILES if file.parts[-3] == project]
    values = [load(file) for file in files]
    for value in values:
        value.pop("status", None)
    kube.admin.define(values)
    kinds = {(kind.api_version, kind.kind): kind for value in values for kind in kinds_of(value)}
    differences = []
    for name, sample in upstream_samples(project):
        kind = kinds.get((sample["apiVersion"], sample["kind"]))
        if kind is None:
            continue
        sample.setdefault("metadata", {}).setdefault("name", "x")
        where = ""
        if kind.namespaced:
            sample["metadata"]["namespace"] = "default"
            where = "/namespaces/default"
        path = f"/apis/{kind.api_version}{where}/{kind.resource}?dryRun=All"
        status, answer = ask("POST", path, sample)
        theirs = (status, answer.get("spec") if status == 201 else refusal(status, answer))
        if (mine := ours(kind, sample)) != theirs:
            differences.append((name, mine, theirs))
    assert differences == []
