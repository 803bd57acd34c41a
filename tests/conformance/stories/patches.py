"""JSON patches, merge patches and strategic merge patches, and how bad ones are refused."""

from __future__ import annotations

from typing import Any

from tests.conformance.objects import a_config_map, a_container, a_custom, a_definition, a_deployment, customs, defined
from tests.conformance.story import (
    APPS,
    CORE,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    Request,
    Story,
    get,
    patch,
    post,
    status_is,
)

MAPS = f"{CORE}/configmaps"
ONE = f"{MAPS}/one"
DEPLOYMENT = f"{APPS}/deployments/one"


def json_patch(path: str, *operations: dict[str, Any], **more: Any) -> Request:
    return patch(path, list(operations), JSON_PATCH, **more)


def strategic(path: str, body: Any, **more: Any) -> Request:
    return patch(path, body, STRATEGIC_PATCH, **more)


def containers(*patches: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": list(patches), **spec}}}}


STORIES = [
    Story(
        "json patch operations",
        [
            post(MAPS, a_config_map(data={"a": "1", "b": "2"}), called="made"),
            json_patch(ONE, {"op": "add", "path": "/data/c", "value": "3"}),
            json_patch(ONE, {"op": "replace", "path": "/data/a", "value": "9"}, {"op": "remove", "path": "/data/b"}),
            json_patch(
                ONE,
                {"op": "test", "path": "/data/a", "value": "9"},
                {"op": "copy", "from": "/data/a", "path": "/data/d"},
            ),
            json_patch(ONE, {"op": "move", "from": "/data/d", "path": "/data/e~1f".replace("~1", ".")}),
            json_patch(ONE, {"op": "test", "path": "/metadata/uid", "value": "{made.metadata.uid}"}),
            json_patch(ONE),
        ],
    ),
    Story(
        "json patches that fail",
        [
            post(MAPS, a_config_map(data={"a": "1"}, labels={"l": "x"})),
            json_patch(ONE, {"op": "test", "path": "/data/a", "value": "2"}),
            json_patch(ONE, {"op": "test", "path": "/data/missing", "value": "2"}),
            json_patch(ONE, {"op": "remove", "path": "/data/missing"}),
            json_patch(ONE, {"op": "replace", "path": "/data/missing", "value": "2"}),
            json_patch(ONE, {"op": "add", "path": "/nothing/here", "value": "2"}),
            json_patch(ONE, {"op": "copy", "from": "/data/missing", "path": "/data/b"}),
            json_patch(ONE, {"op": "move", "from": "/data/missing", "path": "/data/b"}),
            json_patch(ONE, {"op": "bogus", "path": "/data/a"}),
            json_patch(ONE, {"op": "add", "value": "x"}),
            json_patch(ONE, {"op": "add", "path": "/data/a"}),
            json_patch(ONE, {"op": "add", "path": "data/a", "value": "x"}),
            json_patch(ONE, {"op": "replace", "path": "/metadata/name", "value": "x"}),
            json_patch(ONE, {"op": "add", "path": "/data/n", "value": 5}),
            json_patch(ONE, {"op": "replace", "path": "", "value": {}}),
            patch(ONE, {"op": "add"}, JSON_PATCH),
            patch(ONE, "[{", JSON_PATCH),
            patch(ONE, "null", JSON_PATCH),
            patch(ONE, [{"op": "add", "path": "/data/x", "value": "y"}] * 10001, JSON_PATCH),
            get(ONE),
        ],
    ),
    Story(
        "json patches of lists",
        [
            post(f"{APPS}/deployments", a_deployment()),
            json_patch(
                DEPLOYMENT, {"op": "add", "path": "/spec/template/spec/containers/-", "value": a_container("two")}
            ),
            json_patch(
                DEPLOYMENT, {"op": "add", "path": "/spec/template/spec/containers/0", "value": a_container("zero")}
            ),
            json_patch(DEPLOYMENT, {"op": "remove", "path": "/spec/template/spec/containers/9"}),
            json_patch(DEPLOYMENT, {"op": "remove", "path": "/spec/template/spec/containers/-1"}),
            json_patch(
                DEPLOYMENT, {"op": "add", "path": "/spec/template/spec/containers/7", "value": a_container("x")}
            ),
            json_patch(DEPLOYMENT, {"op": "remove", "path": "/spec/template/spec/containers/1"}),
        ],
    ),
    Story(
        "merge patches",
        [
            post(MAPS, a_config_map(data={"a": "1", "b": "2"})),
            patch(ONE, {"data": {"a": None, "c": "3"}, "metadata": {"labels": {"x": "y"}}}),
            patch(ONE, {"data": None}),
            patch(ONE, {}),
            patch(ONE, {"binaryData": {"k": "aGVsbG8="}}),
            patch(ONE, {"binaryData": {"k": "not base64!"}}),
            patch(ONE, {"data": "not an object"}),
            patch(ONE, {"unknown": {"field": 1}}),
            patch(ONE, {"unknown": {"field": 1}}, query={"fieldValidation": "Strict"}),
            patch(ONE, [1, 2]),
            patch(ONE, "{bad", MERGE_PATCH),
            patch(ONE, "null", MERGE_PATCH),
            patch(ONE, '"text"', MERGE_PATCH),
            patch(ONE, {"kind": "Secret"}),
            patch(f"{MAPS}/absent", {"data": {"a": "1"}}),
        ],
    ),
    Story(
        "a merge patch replaces lists",
        [
            post(f"{APPS}/deployments", a_deployment()),
            patch(DEPLOYMENT, containers(a_container("other"))),
            patch(DEPLOYMENT, {"spec": {"replicas": 5, "strategy": {"type": "Recreate"}}}),
            patch(DEPLOYMENT, {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}}),
            patch(DEPLOYMENT, {"spec": {"replicas": "five"}}),
            patch(DEPLOYMENT, {"spec": {"replicas": -1}}),
            patch(DEPLOYMENT, {"spec": {"selector": {"matchLabels": {"app": "changed"}}}}),
        ],
    ),
    Story(
        "a patch with a resource version is conditional",
        [
            post(MAPS, a_config_map(data={"a": "1"}), called="made"),
            patch(ONE, {"data": {"a": "2"}, "metadata": {"resourceVersion": "{made.metadata.resourceVersion}"}}),
            patch(ONE, {"data": {"a": "3"}, "metadata": {"resourceVersion": "{made.metadata.resourceVersion}"}}),
            patch(ONE, {"data": {"a": "3"}, "metadata": {"uid": "{made.metadata.uid}"}}),
        ],
    ),
    Story(
        "strategic patches merge lists by key",
        [
            post(f"{APPS}/deployments", a_deployment()),
            strategic(DEPLOYMENT, containers({"name": "main", "image": "example.com/app:2"})),
            strategic(DEPLOYMENT, containers(a_container("second", ports=[{"containerPort": 80}]))),
            strategic(DEPLOYMENT, containers({"name": "second", "ports": [{"containerPort": 81, "name": "b"}]})),
            strategic(DEPLOYMENT, containers({"name": "second", "ports": [{"containerPort": 80, "$patch": "delete"}]})),
            strategic(DEPLOYMENT, containers({"name": "second", "$patch": "delete"})),
            strategic(DEPLOYMENT, containers({"name": "main", "env": [{"name": "A", "value": "1"}, {"name": "B"}]})),
            strategic(
                DEPLOYMENT,
                containers({"name": "main", "$setElementOrder/env": [{"name": "B"}, {"name": "A"}], "env": []}),
            ),
            strategic(
                DEPLOYMENT, containers({"name": "main", "env": [{"$patch": "replace"}, {"name": "C", "value": "3"}]})
            ),
            strategic(DEPLOYMENT, containers({"$patch": "replace"}, a_container("only"))),
        ],
    ),
    Story(
        "strategic patch directives",
        [
            post(MAPS, a_config_map(data={"a": "1", "b": "2"}, finalizers=["example.com/a", "example.com/b"])),
            strategic(ONE, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}),
            strategic(ONE, {"metadata": {"finalizers": ["example.com/c"]}}),
            strategic(ONE, {"data": {"$patch": "replace", "c": "3"}}),
            strategic(ONE, {"data": {"$patch": "delete"}}),
            strategic(ONE, {"data": {"x": "1", "$retainKeys": ["x"]}}),
            strategic(ONE, {"metadata": {"$setElementOrder/finalizers": ["example.com/c", "example.com/b"]}}),
            strategic(ONE, {"$patch": "bogus"}),
            get(ONE),
        ],
    ),
    Story(
        "strategic patch of a deployment strategy keeps the chosen keys",
        [
            post(f"{APPS}/deployments", a_deployment()),
            strategic(DEPLOYMENT, {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
            strategic(DEPLOYMENT, {"spec": {"strategy": {"type": "RollingUpdate"}}}),
        ],
    ),
    Story(
        "strategic patches that fail",
        [
            post(f"{APPS}/deployments", a_deployment()),
            strategic(DEPLOYMENT, containers({"image": "no-name"})),
            strategic(DEPLOYMENT, containers({"name": "main", "$patch": "bogus"})),
            strategic(DEPLOYMENT, {"spec": {"template": {"spec": {"containers": {"name": "main"}}}}}),
            strategic(DEPLOYMENT, {"spec": {"replicas": "many"}}),
            strategic(DEPLOYMENT, {"spec": {"unknown": 1}}),
            strategic(DEPLOYMENT, {"spec": {"unknown": 1}}, query={"fieldValidation": "Strict"}),
            strategic(DEPLOYMENT, "{", query={"fieldValidation": "Strict"}),
            strategic(DEPLOYMENT, [1]),
            strategic(DEPLOYMENT, containers({"name": "main", "image": ""})),
        ],
    ),
    Story(
        "custom objects have no strategic patch",
        [
            *defined(a_definition("patchlings")),
            post(customs("patchlings"), a_custom("patchlings", spec={"size": 1}), until=status_is(201)),
            strategic(f"{customs('patchlings')}/one", {"spec": {"size": 2}}),
            patch(f"{customs('patchlings')}/one", {"spec": {"size": 2}}),
            json_patch(f"{customs('patchlings')}/one", {"op": "replace", "path": "/spec/size", "value": 3}),
            patch(f"{customs('patchlings')}/one", {"spec": {"size": None}}),
            patch(f"{customs('patchlings')}/one", {"spec": {"size": "x"}}),
        ],
    ),
    Story(
        "media types that are no patches",
        [
            post(MAPS, a_config_map()),
            patch(ONE, {"data": {}}, "application/json"),
            patch(ONE, {"data": {}}, ""),
            patch(ONE, {"data": {}}, "text/plain"),
            patch(ONE, {"data": {}}, f"{MERGE_PATCH}; charset=utf-8"),
        ],
    ),
]
