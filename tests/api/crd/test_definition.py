"""From a declaration to the whole CustomResourceDefinition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shoal.api.crd import Column, CustomResource, DefinitionError, Scale, Version
from shoal.api.meta import Object, Resource
from tests.support.schemas.structs import a_kind, a_struct


def a_resource(**changes: Any) -> Resource[Object]:
    thing = a_kind(doc="A thing.", spec=a_struct(replicas=int))
    return Resource(
        **{"type": thing, "group": "example.com", "version": "v1", "kind": "Thing", "plural": "things", **changes}
    )


def a_version(*, version: str = "v1", **said: Any) -> Version:
    return Version(resource=a_resource(version=version), **said)


def test_the_least_declaration_gives_a_whole_definition() -> None:
    manifest = CustomResource(versions=(a_version(),)).manifest()
    schema = manifest["spec"]["versions"][0].pop("schema")
    assert schema["openAPIV3Schema"]["properties"]["spec"]["required"] == ["replicas"]
    assert manifest == {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True}],
        },
    }


def test_names_scope_and_annotations_are_carried() -> None:
    manifest = CustomResource(
        versions=(Version(resource=a_resource(namespaced=False)),),
        short_names=("th", "t"),
        categories=("all", "shoal"),
        singular="thingy",
        annotations={"b": "2", "a": "1"},
    ).manifest()
    assert manifest["spec"]["scope"] == "Cluster"
    assert manifest["spec"]["names"] == {
        "kind": "Thing",
        "listKind": "ThingList",
        "plural": "things",
        "singular": "thingy",
        "shortNames": ["th", "t"],
        "categories": ["all", "shoal"],
    }
    assert list(manifest["metadata"]["annotations"].items()) == [("a", "1"), ("b", "2")]


@pytest.mark.parametrize(
    ("said", "wire"),
    [
        pytest.param({"status": True}, {"subresources": {"status": {}}}, id="status"),
        pytest.param(
            {
                "status": True,
                "scale": Scale(
                    spec_replicas=".spec.replicas", status_replicas=".status.replicas", selector=".status.selector"
                ),
            },
            {
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                }
            },
            id="status and scale",
        ),
        pytest.param(
            {"scale": Scale(spec_replicas=".spec.replicas", status_replicas=".status.replicas")},
            {
                "subresources": {
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
                }
            },
            id="scale alone",
        ),
        pytest.param(
            {
                "columns": (
                    Column(name="Ready", path=".status.ready", type="integer"),
                    Column(
                        name="Age",
                        path=".metadata.creationTimestamp",
                        type="date",
                        priority=1,
                        format="date-time",
                        description="How old it is.",
                    ),
                )
            },
            {
                "additionalPrinterColumns": [
                    {"name": "Ready", "type": "integer", "jsonPath": ".status.ready"},
                    {
                        "name": "Age",
                        "type": "date",
                        "format": "date-time",
                        "description": "How old it is.",
                        "jsonPath": ".metadata.creationTimestamp",
                        "priority": 1,
                    },
                ]
            },
            id="columns",
        ),
        pytest.param(
            {"selectable_fields": (".spec.node", ".spec.queue")},
            {"selectableFields": [{"jsonPath": ".spec.node"}, {"jsonPath": ".spec.queue"}]},
            id="selectable fields",
        ),
        pytest.param({"deprecated": True}, {"deprecated": True}, id="deprecated"),
        pytest.param(
            {"deprecated": "use v2"}, {"deprecated": True, "deprecationWarning": "use v2"}, id="deprecated in words"
        ),
    ],
)
def test_a_version_shows_and_offers_what_it_declares(said: dict[str, Any], wire: dict[str, Any]) -> None:
    version = CustomResource(versions=(a_version(**said),)).manifest()["spec"]["versions"][0]
    del version["schema"]
    assert version == {"name": "v1", "served": True, "storage": True, **wire}


def test_versions_of_one_kind_stand_side_by_side_and_need_no_conversion() -> None:
    definition = CustomResource(
        versions=(a_version(version="v2"), a_version(version="v1", storage=False, served=False, deprecated="use v2"))
    )
    spec = definition.manifest()["spec"]
    states = [(version["name"], version["served"], version["storage"]) for version in spec["versions"]]
    assert states == [("v2", True, True), ("v1", False, False)]
    assert spec["conversion"] == {"strategy": "None"}
    assert definition.resource.version == "v2"


@pytest.mark.parametrize(
    ("declare", "problem"),
    [
        pytest.param(lambda: (), "it has no version", id="nothing"),
        pytest.param(
            lambda: (a_version(), Version(resource=a_resource(version="v2", kind="Other"), storage=False)),
            "differ in kind: they are two kinds",
            id="two kinds",
        ),
        pytest.param(
            lambda: (a_version(), Version(resource=a_resource(version="v2", namespaced=False), storage=False)),
            "differ in namespaced",
            id="two scopes",
        ),
        pytest.param(
            lambda: (a_version(), a_version(storage=False)), "a version is declared twice among v1, v1", id="twice"
        ),
        pytest.param(
            lambda: (a_version(), a_version(version="v2")),
            "exactly one version is stored, and here it is v1 and v2",
            id="2",
        ),
        pytest.param(lambda: (a_version(storage=False),), "and here it is none", id="none stored"),
        pytest.param(lambda: (Version(resource=a_resource(group="")),), "the core group", id="core group"),
        pytest.param(
            lambda: (a_version(columns=(Column(name="Ready", path="status.ready"),)),),
            "v1: column Ready has path status.ready: it must begin with .",
            id="path of a column",
        ),
        pytest.param(
            lambda: (a_version(scale=Scale(spec_replicas=".replicas", status_replicas=".status.replicas")),),
            "v1: scale.spec_replicas has path .replicas: it must begin with .spec.",
            id="path of the scale",
        ),
        pytest.param(
            lambda: (
                a_version(
                    scale=Scale(spec_replicas=".spec.n", status_replicas=".status.n", selector=".metadata.labels")
                ),
            ),
            "v1: scale.selector has path .metadata.labels",
            id="path of the selector",
        ),
        pytest.param(lambda: (a_version(selectable_fields=("spec.a",)),), "selectable field has path", id="selectable"),
        pytest.param(lambda: (a_version(deprecated="x" * 257),), "longer than 256 characters", id="long warning"),
    ],
)
def test_a_declaration_that_contradicts_itself_is_refused(
    declare: Callable[[], tuple[Version, ...]], problem: str
) -> None:
    versions = declare()
    with pytest.raises(DefinitionError) as refused:
        CustomResource(versions=versions)
    assert problem in str(refused.value)
    assert str(refused.value).startswith("definition of Thing" if versions else "definition of nothing")


def test_the_same_declaration_gives_the_same_manifest() -> None:
    definition = CustomResource(versions=(a_version(status=True),), short_names=("th",))
    assert repr(definition.manifest()) == repr(definition.manifest())
