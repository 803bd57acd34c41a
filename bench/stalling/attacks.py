"""Requests that take a server long: each is one that a tenant with ordinary rights may send."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

NAMESPACE = "stalls"
GROUP = "stalls.example.com"
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
SERVICES = f"/api/v1/namespaces/{NAMESPACE}/services"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JSON, YAML = "application/json", "application/yaml"
JSON_PATCH, MERGE_PATCH = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC_PATCH, APPLY_PATCH = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"

_ANYTHING: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_MANY = 1_000


@dataclass(frozen=True, kw_only=True)
class Sent:
    """One request; its body is made when it is sent, so that a list of requests stays small."""

    method: str
    path: str
    body: Callable[[], bytes] = bytes
    content_type: str = JSON
    accept: str = JSON


@dataclass(frozen=True, kw_only=True)
class Attack:
    """A request that takes long, after those that prepare its objects."""

    name: str
    request: Sent
    prepares: Sequence[Sent] = ()
    answers: tuple[int, ...] = (200, 201)
    """The statuses that are right."""


def attacks() -> list[Attack]:
    """All of them."""
    return [*_patches(), *_bodies(), *_patterns(), *_expressions(), *_lists()]


def _patches() -> list[Attack]:
    inserts = [{"op": "add", "path": "/spec/items/0", "value": 1}] * 10_000
    moves = [{"op": "move", "from": "/spec/items/0", "path": "/spec/items/0"}] * 10_000
    items = {"items": list(range(200_000))}
    ports = {"spec": {"ports": [{"port": n, "name": f"p{n}"} for n in range(1, 8_001)]}}
    service = {"metadata": {"name": "wide"}, "spec": {"ports": [{"port": 1}]}}
    return [
        _patch("10,000 inserts by JSON patch", JSON_PATCH, "inserts", lambda: inserts, spec=items),
        _patch("10,000 moves by JSON patch", JSON_PATCH, "moves", lambda: moves, spec=items),
        _patch("merge patch of 230,000 keys", MERGE_PATCH, "merged", lambda: {"spec": _keys(230_000)}, spec={}),
        Attack(
            name="apply of 150,000 fields",
            prepares=[_defined("anything", _ANYTHING)],
            request=Sent(
                method="PATCH",
                path=f"{path_of('anything')}/applied?fieldManager=stalls&force=true",
                content_type=APPLY_PATCH,
                body=lambda: encoded(custom("anything", "applied", _keys(150_000))),
            ),
        ),
        Attack(
            name="strategic merge of 8,000 ports",
            prepares=[Sent(method="POST", path=SERVICES, body=lambda: encoded(service))],
            request=Sent(
                method="PATCH",
                path=f"{SERVICES}/wide?dryRun=All",
                content_type=STRATEGIC_PATCH,
                body=lambda: encoded(ports),
            ),
        ),
    ]


def _bodies() -> list[Attack]:
    head = f"apiVersion: {GROUP}/v1\nkind: Anything\nmetadata: {{name: yaml}}\nspec:\n".encode()
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o"}
    owners = {"name": "owned", "ownerReferences": [{**owner, "uid": str(n)} for n in range(8_000)]}
    wrong = {"metadata": {"name": "wrong"}, "data": {f"k {n}": "" for n in range(100_000)}}
    return [
        _created("YAML of 200,000 keys", lambda: head + b"".join(b" k%d: 1\n" % n for n in range(200_000)), kind=YAML),
        _created(
            "YAML aliases of aliases",
            lambda: head + b" a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(map(_nine_aliases, range(ord("b"), ord("z")))),
            kind=YAML,
            answers=(400,),
        ),
        _created("JSON of 230,000 keys", lambda: encoded(custom("anything", "j", _keys(230_000)))),
        _created(
            "JSON that ends too early",
            lambda: encoded(custom("anything", "j"))[:-1] + b',"spec":[' + b'"",' * 700_000,
            answers=(400,),
        ),
        Attack(
            name="8,000 owner references",
            request=Sent(method="POST", path=f"{CONFIG_MAPS}?dryRun=All", body=lambda: encoded({"metadata": owners})),
        ),
        Attack(
            name="100,000 wrong keys",
            request=Sent(method="POST", path=f"{CONFIG_MAPS}?dryRun=All", body=lambda: encoded(wrong)),
            answers=(422,),
        ),
    ]


def _patterns() -> list[Attack]:
    # Python's engine takes twice as long for each further letter, and the linear one does not take it for its size.
    schema = {"type": "object", "properties": {"t": {"type": "string", "pattern": r"^(x+x+)+y\pL{1000}$"}}}
    return [
        Attack(
            name="definition of a pattern that backtracks",
            request=Sent(method="POST", path=DEFINITIONS, body=lambda: encoded(definition("patterned", schema))),
            answers=(422,),
        ),
        _ruled("pattern found in a text", "self.t.find('(a+)+b|c$') != ''", {"t": "a" * 40 + "c"}),
    ]


def _expressions() -> list[Attack]:
    numbers = {"l": list(range(5_000)), "t": "a" * 10_000}
    grown = "self.t" + ".replace('a', 'aaaaaaaaaaaaaaaaaaaa')" * 7
    return [
        _ruled("CEL: a number of a billion digits", "'%.999999999f'.format([1.0]).size() > 0", numbers),
        _ruled("CEL: replace of replace", f"{grown}.size() > 0", numbers),
        _ruled("CEL: replace in a loop", "self.l.all(x, self.t.replace('a', 'bb').size() > 0)", numbers),
        _ruled("CEL: sets of lists", "sets.contains(self.l, self.l)", numbers),
        _ruled("CEL: distinct", "self.l.distinct().size() > 0", numbers, answers=(201,)),
        _ruled("CEL: comparisons in a loop", "self.l.all(x, self.l == self.l)", numbers),
        _ruled(
            "CEL: loops in loops", "self.l.all(x, self.l.all(y, self.l.all(z, x + y + z >= 0)))", {**numbers, "t": ""}
        ),
    ]


def _lists() -> list[Attack]:
    many = [
        Sent(method="POST", path=CONFIG_MAPS, body=lambda n=n: encoded(_labelled(n)))  # type: ignore[misc]
        for n in range(_MANY)
    ]
    labels, fields = ",".join(["a!=c"] * 8_000), ",".join(["metadata.name!=x"] * 3_500)
    return [
        Attack(
            name="label selector of 8,000 requirements",
            prepares=many,
            request=Sent(method="GET", path=f"{CONFIG_MAPS}?labelSelector={labels}"),
        ),
        Attack(
            name="field selector of 3,500 requirements",
            prepares=many,
            request=Sent(method="GET", path=f"{CONFIG_MAPS}?fieldSelector={fields}"),
        ),
        Attack(
            name=f"table of {_MANY:,} objects",
            prepares=many,
            request=Sent(method="GET", path=CONFIG_MAPS, accept=TABLE),
        ),
    ]


def encoded(value: Any) -> bytes:
    """JSON as clients write it."""
    return json.dumps(value, separators=(",", ":")).encode()


def definition(plural: str, spec: dict[str, Any]) -> dict[str, Any]:
    """A custom kind whose ``spec`` has this schema."""
    kind = plural.capitalize()
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, "listKind": f"{kind}List"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def custom(plural: str, name: str, spec: Any = None) -> dict[str, Any]:
    """An object of such a kind."""
    kind = {"apiVersion": f"{GROUP}/v1", "kind": plural.capitalize(), "metadata": {"name": name}}
    return kind if spec is None else {**kind, "spec": spec}


def path_of(plural: str) -> str:
    """Where objects of such a kind are."""
    return f"/apis/{GROUP}/v1/namespaces/{NAMESPACE}/{plural}"


def _defined(plural: str, spec: dict[str, Any]) -> Sent:
    return Sent(method="POST", path=DEFINITIONS, body=lambda: encoded(definition(plural, spec)))


def _patch(name: str, language: str, object_name: str, body: Callable[[], Any], *, spec: Any) -> Attack:
    path = path_of("anything")
    start = Sent(method="POST", path=path, body=lambda: encoded(custom("anything", object_name, spec)))
    return Attack(
        name=name,
        prepares=[_defined("anything", _ANYTHING), start],
        request=Sent(method="PATCH", path=f"{path}/{object_name}", content_type=language, body=lambda: encoded(body())),
    )


def _created(name: str, body: Callable[[], bytes], *, kind: str = JSON, answers: tuple[int, ...] = (201,)) -> Attack:
    request = Sent(method="POST", path=f"{path_of('anything')}?dryRun=All", content_type=kind, body=body)
    return Attack(name=name, prepares=[_defined("anything", _ANYTHING)], request=request, answers=answers)


def _ruled(name: str, rule: str, spec: dict[str, Any], *, answers: tuple[int, ...] = (422,)) -> Attack:
    """An object that a rule of its kind takes long for; each rule has a kind of its own."""
    plural = "ruled" + "".join(letter for letter in name.lower() if letter.isalpha())
    properties = {"t": {"type": "string"}, "l": {"type": "array", "items": {"type": "integer"}}}
    schema = {"type": "object", "properties": properties, "x-kubernetes-validations": [{"rule": rule}]}
    return Attack(
        name=name,
        prepares=[_defined(plural, schema)],
        request=Sent(
            method="POST", path=f"{path_of(plural)}?dryRun=All", body=lambda: encoded(custom(plural, "c", spec))
        ),
        answers=answers,
    )


def _keys(count: int) -> dict[str, int]:
    return {f"k{n}": 1 for n in range(count)}


def _labelled(number: int) -> dict[str, Any]:
    return {"metadata": {"name": f"many-{number}", "labels": {"a": "b"}}}


def _nine_aliases(letter: int) -> bytes:
    """Nine times the list before it."""
    return b" %c: &%c [%s]\n" % (letter, letter, b",".join([b"*%c" % (letter - 1)] * 9))
