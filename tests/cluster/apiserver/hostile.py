"""What a hostile or broken client sends: good bodies with one value made wrong, junk patches, junk queries."""

from __future__ import annotations

import copy
import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.cluster.apiserver.builtin.answers import all_cases
from tests.cluster.apiserver.builtin.workloads import objects

NAMESPACE = "hostile"
Place = tuple[str | int, ...]

_VERSION: dict[str, Any] = {
    "name": "v1",
    "served": True,
    "storage": True,
    "subresources": {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    },
    "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1}],
    "selectableFields": [{"jsonPath": ".spec.color"}],
    "schema": {
        "openAPIV3Schema": {
            "type": "object",
            "required": ["spec"],
            "properties": {
                "spec": {
                    "type": "object",
                    "x-kubernetes-validations": [{"rule": "self.size < 10", "message": "too big"}],
                    "properties": {
                        "color": {"type": "string", "enum": ["red", "blue"], "maxLength": 10, "default": "red"},
                        "size": {"type": "integer", "minimum": 0, "maximum": 100, "format": "int32"},
                        "ratio": {"type": "number", "multipleOf": 0.5},
                        "port": {"x-kubernetes-int-or-string": True},
                        "replicas": {"type": "integer"},
                        "items": {
                            "type": "array",
                            "maxItems": 5,
                            "x-kubernetes-list-type": "map",
                            "x-kubernetes-list-map-keys": ["name"],
                            "items": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {"name": {"type": "string", "pattern": "^[a-z]+$"}},
                            },
                        },
                        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        "map": {"type": "object", "additionalProperties": {"type": "string"}},
                        "maybe": {"type": "string", "nullable": True},
                    },
                },
                "status": {
                    "type": "object",
                    "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}},
                },
            },
        }
    },
}


def definition(plural: str, kind: str) -> dict[str, Any]:
    """A custom kind whose schema uses what schemas can say."""
    names = {
        "plural": plural,
        "singular": kind.lower(),
        "kind": kind,
        "listKind": f"{kind}List",
        "shortNames": [kind[:2].lower()],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [_VERSION]},
    }


GADGET = {
    "apiVersion": "example.com/v1",
    "kind": "Gadget",
    "metadata": {"name": "it", "labels": {"a": "b"}},
    "spec": {
        "color": "red",
        "size": 3,
        "ratio": 1.5,
        "port": 80,
        "replicas": 1,
        "items": [{"name": "x"}],
        "free": {"a": [1]},
        "map": {"k": "v"},
        "maybe": None,
    },
}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_WORKLOADS = {
    objects.POD: "/api/v1/namespaces/{namespace}/pods",
    objects.POD_TEMPLATE: "/api/v1/namespaces/{namespace}/podtemplates",
    objects.REPLICATION_CONTROLLER: "/api/v1/namespaces/{namespace}/replicationcontrollers",
    objects.DEPLOYMENT: "/apis/apps/v1/namespaces/{namespace}/deployments",
    objects.REPLICA_SET: "/apis/apps/v1/namespaces/{namespace}/replicasets",
    objects.STATEFUL_SET: "/apis/apps/v1/namespaces/{namespace}/statefulsets",
    objects.DAEMON_SET: "/apis/apps/v1/namespaces/{namespace}/daemonsets",
    objects.CONTROLLER_REVISION: "/apis/apps/v1/namespaces/{namespace}/controllerrevisions",
    objects.JOB: "/apis/batch/v1/namespaces/{namespace}/jobs",
    objects.CRON_JOB: "/apis/batch/v1/namespaces/{namespace}/cronjobs",
}


def good_bodies() -> dict[str, tuple[str, dict[str, Any]]]:
    """Where an object of each kind is posted, and a good one."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for case in all_cases():
        if case.id.endswith("-as-it-is"):
            made = json.loads(json.dumps(case.object).replace("{namespace}", NAMESPACE))
            found[case.id.removesuffix("-as-it-is")] = (case.path.format(namespace=NAMESPACE), made)
    for kind, path in _WORKLOADS.items():
        found[kind[1]] = (path.format(namespace=NAMESPACE), objects.base(kind))
    found["Gadget"] = (f"/apis/example.com/v1/namespaces/{NAMESPACE}/gadgets", GADGET)
    found["CustomResourceDefinition"] = (DEFINITIONS, definition("widgets", "Widget"))
    return found


VALUES: dict[str, bytes] = {
    "null": b"null",
    "true": b"true",
    "zero": b"0",
    "negative": b"-1",
    "fraction": b"1.5",
    "exponent": b"1e3",
    "64 bits": b"9223372036854775808",
    "400 digits": b"9" * 400,
    "beyond floats": b"1e999",
    "below floats": b"-1e999",
    "empty text": b'""',
    "odd text": '"a/b c:ä%"'.encode(),
    "NUL": b'"\\u0000"',
    "half a surrogate": b'"\\ud800"',
    "no UTF-8": b'"\xff\xfe"',
    "dots": b'".."',
    "two lines": b'"a\\nb"',
    "long text": b'"' + b"x" * 70_000 + b'"',
    "empty list": b"[]",
    "list of null": b"[null]",
    "list of lists": b"[[],{}]",
    "mixed list": b'[1,"a"]',
    "empty object": b"{}",
    "object of null": b'{"":null}',
    "object": b'{"a":{"b":[1]}}',
    "deep list": b"[" * 12_000 + b"]" * 12_000,
    "deep object": b'{"a":' * 12_000 + b"1" + b"}" * 12_000,
    "unfinished": b'{"a":',
    "twice": b'{"name":1,"name":[]}',
}
_MARK = "@@here@@"


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Every place in a value, itself first."""
    yield at
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*at, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*at, index))


def replaced(value: Any, at: Place, by: bytes) -> bytes:
    """A value as JSON, with raw bytes at one place."""
    if not at:
        return by
    made = copy.deepcopy(value)
    _parent(made, at)[at[-1]] = _MARK
    return json.dumps(made).encode().replace(f'"{_MARK}"'.encode(), by)


def without(value: Any, at: Place) -> bytes:
    """A value as JSON, less one place."""
    made = copy.deepcopy(value)
    if at:
        del _parent(made, at)[at[-1]]
    return json.dumps(made).encode()


def _parent(value: Any, at: Place) -> Any:
    for step in at[:-1]:
        value = value[step]
    return value


def _managed(fields: str) -> str:
    entry = '"manager":"m","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1"'
    return f'{{"metadata":{{"managedFields":[{{{entry},"fieldsV1":{fields}}}]}}}}'


JUNK_PATCHES: tuple[str, ...] = (
    *("", "null", "0", "1.5", '"a"', "[]", "{}", "[null]", "[[]]", "[{}]", '{"":null}', '{"a":', "[1,2", "\0"),
    *('{"metadata":null}', '{"metadata":[]}', '{"metadata":{"name":null}}', '{"metadata":{"labels":[]}}'),
    *('{"metadata":{"labels":{"a":1}}}', '{"metadata":{"resourceVersion":"x"}}', '{"metadata":{"uid":1}}'),
    *('{"metadata":{"deletionTimestamp":"x"}}', '{"metadata":{"generation":1e999}}'),
    *('{"metadata":{"creationTimestamp":5}}', '{"metadata":{"finalizers":5}}', '{"metadata":{"finalizers":[5]}}'),
    *('{"metadata":{"managedFields":[{"manager":1}]}}', _managed('{"f:":[]}'), _managed('{"k:{bad":{}}')),
    *('{"apiVersion":1}', '{"kind":null}', '{"apiVersion":"x/y/z","kind":"Pod"}', '{"a":1,"a":2}'),
    *('{"spec":null}', '{"spec":[]}', '{"spec":"x"}', '{"status":5}', '{"status":[]}', '{"data":[]}', '{"data":null}'),
    *('{"status":{"conditions":5}}', '{"status":{"conditions":[{"type":5}]}}', '{"status":{"conditions":[null]}}'),
    *('{"spec":{"replicas":"a"}}', '{"spec":{"replicas":-1}}', '{"spec":{"replicas":99999999999999999999}}'),
    *('{"spec":{"items":5}}', '{"spec":{"items":[{}]}}', '{"spec":{"items":[null]}}', '{"spec":{"free":null}}'),
    *('{"spec":{"versions":[]}}', '{"spec":{"versions":[null]}}', '{"spec":{"names":null}}', '{"data":{"k":5}}'),
    *('[{"op":"add"}]', '[{"op":"add","path":"","value":1}]', '[{"op":"replace","path":"","value":null}]'),
    *('[{"op":"remove","path":""}]', '[{"op":"remove","path":"/metadata"}]', '[{"op":"remove","path":"/kind"}]'),
    *('[{"op":"add","path":"/metadata/labels","value":5}]', '[{"op":"copy","from":"/nope","path":"/x"}]'),
    *('[{"op":"move","from":"/metadata","path":"/metadata/labels"}]', '[{"op":"copy","from":"","path":"/metadata/x"}]'),
    *('[{"op":"test","path":"/metadata/name","value":"z"}]', '[{"op":"zap","path":"/x"}]', '[{"op":1,"path":2}]'),
    *(
        '[{"op":"add","path":"/spec/containers/99","value":{}}]',
        '[{"op":"add","path":"/spec/containers/-1","value":{}}]',
    ),
    *('[{"op":"add","path":"/spec/containers/-","value":null}]', '[{"op":"add","path":"no-slash","value":null}]'),
    *('[{"op":"add","path":"/~2","value":null}]', '[{"op":"replace","path":"/apiVersion","value":5}]'),
    *('{"$patch":"delete"}', '{"$patch":"replace"}', '{"$patch":5}', '{"$retainKeys":5}', '{"$retainKeys":["x"]}'),
    *('{"spec":{"containers":[{"$patch":"delete"}]}}', '{"spec":{"containers":[{"$patch":"zap","name":"c"}]}}'),
    *('{"spec":{"containers":[{"name":1}]}}', '{"spec":{"containers":{"$patch":"replace"}}}', '{"spec":{"ports":[5]}}'),
    *('{"$setElementOrder/spec":[]}', '{"spec":{"$setElementOrder/containers":5}}', '{"spec":{"containers":[null]}}'),
    *('{"spec":{"$setElementOrder/containers":[5]}}', '{"metadata":{"$deleteFromPrimitiveList/finalizers":5}}'),
    *('{"spec":{"$deleteFromPrimitiveList/containers":["a"]}}', '{"metadata":{"ownerReferences":[{"uid":[]}]}}'),
    *('{"a":' * 3000 + "1" + "}" * 3000, "[" * 12_000 + "]" * 12_000, '{"metadata":{"labels":{"\\ud800":"b"}}}'),
    *(
        "---\n",
        "- a\n- b",
        "a: &a [*a]",
        "&a [*a]",
        "a: !!python/object:os.system {}",
        "? {a: b}\n: c",
        "%YAML 9.9\n---\na",
    ),
    *(
        "a: .inf",
        "a: .nan",
        "<<: 5",
        "<<: [5]",
        "a: !!binary x",
        "a: !!timestamp x",
        "a: 2001-01-01",
        "x: " + "[" * 5000,
    ),
)
PATCH_TYPES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
OPTIONS = (
    *("labelSelector", "fieldSelector", "resourceVersion", "resourceVersionMatch", "limit", "continue", "watch"),
    *("allowWatchBookmarks", "sendInitialEvents", "timeoutSeconds", "pretty", "dryRun", "fieldManager"),
    *("fieldValidation", "force", "gracePeriodSeconds", "orphanDependents", "propagationPolicy", "includeObject"),
    *("container", "follow", "tailLines", "limitBytes", "sinceSeconds", "sinceTime", "exclude", "verbose", "timeout"),
)
OPTION_VALUES = (
    *(
        "",
        "x",
        "-1",
        "0",
        "1",
        "1e9",
        "9" * 30,
        "9" * 400,
        "true",
        "false",
        "null",
        "%00",
        "%ff",
        "%ud800",
        "%ed%a0%80",
    ),
    *(
        "a=b",
        "a==",
        "a!=",
        "a%20in%20(",
        "a%20in%20(b)",
        "!",
        "!!",
        "a,",
        "a%3E1",
        "a%3Ex",
        "a%20notin%20()",
        "%",
        "%zz",
    ),
    *(
        "metadata.name=",
        "metadata.name!=x",
        "spec.nodeName=x",
        "foo.bar=1",
        "All",
        "Foreground",
        "Exact",
        "NotOlderThan",
    ),
    *("%20", "%2F", "x" * 5000, "+", "a%3D%5C", "e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOjV9"),
    *(
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Ing0Iiwic3RhcnQiOiJhIn0",
        "%E2%9C%93",
        "Strict",
        "1.5",
        "0x10",
        "1_000",
        "%D9%A3",
    ),
)


class OwnersConnection(http.client.HTTPConnection):
    """A connection by the Unix socket in a server's folder, which needs no credentials."""

    def __init__(self, path: Path, *, patience: float = 20) -> None:
        super().__init__("localhost")
        self._path = path
        self._patience = patience

    def connect(self) -> None:
        self.sock = opened(self._path, patience=self._patience)


def opened(path: Path, *, patience: float = 20) -> socket.socket:
    """A bare socket to a server."""
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(patience)
    made.connect(str(path))
    return made


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, bytes, http.client.HTTPMessage]:
    """One request on a connection, and its answer; one that the server closed is opened again."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, body, named)
        with connection.getresponse() as response:
            return response.status, response.read(), response.headers
    except BaseException:
        connection.close()
        raise
