from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api.definitions import ALL
from shoal.cluster.apiserver.calls import Call
from shoal.cluster.apiserver.custom import default_definition, kinds_of
from shoal.cluster.apiserver.discovery import Discovery, OpenApi, version_order
from shoal.cluster.apiserver.discovery.openapi import document
from shoal.cluster.apiserver.kinds.registry import Registry
from shoal.cluster.apiserver.kinds.tables import builtin_kinds

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


@pytest.fixture(scope="module")
def registry() -> Registry:
    found = Registry(builtin_kinds({}))
    for definition in ALL:
        manifest = definition.manifest()
        default_definition(manifest)
        kinds = kinds_of(manifest)
        found.replace_custom(manifest["metadata"]["name"], kinds, kinds[0])
    return found


def answered(discovery: Discovery | OpenApi, path: str, **headers: str) -> Any:
    answer = discovery.answer(Call(method="GET", path=path, headers=headers))
    assert answer.status == 200
    assert isinstance(answer.body, bytes)
    return msgspec.json.decode(answer.body)


def test_an_unqualified_podgroup_is_that_of_scheduling_run_ai(registry: Registry) -> None:
    groups = answered(Discovery(registry), "/apis", accept=AGGREGATED)["items"]
    having = [
        group["metadata"]["name"]
        for group in groups
        if any(one["resource"] == "podgroups" for version in group["versions"] for one in version["resources"])
    ]
    assert having[0] == "scheduling.run.ai"


def test_kubernetes_own_groups_come_first(registry: Registry) -> None:
    names = [group["name"] for group in answered(Discovery(registry), "/apis")["groups"]]
    assert names[:2] == ["apps", "events.k8s.io"]
    assert names.index("kai.scheduler") > names.index("resource.k8s.io")


def test_the_same_answer_has_the_same_tag_until_a_definition_changes(registry: Registry) -> None:
    discovery = Discovery(registry)
    first = discovery.answer(Call(method="GET", path="/apis", headers={"accept": AGGREGATED}))
    tag = first.headers["ETag"]
    again = Call(method="GET", path="/apis", headers={"accept": AGGREGATED, "if-none-match": tag})
    assert discovery.answer(again).status == 304
    registry.replace_custom("topologies.kai.scheduler", (), None)
    assert discovery.answer(again).status == 200


def test_subresources_are_listed_beside_their_resource(registry: Registry) -> None:
    resources = answered(Discovery(registry), "/apis/apps/v1")["resources"]
    scale = next(one for one in resources if one["name"] == "deployments/scale")
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")


def test_versions_are_sorted_by_trust() -> None:
    mixed = ["v1alpha1", "foo", "v1", "v2beta1", "v10", "v1beta2", "v2"]
    assert sorted(mixed, key=version_order) == ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1alpha1", "foo"]


@pytest.mark.parametrize("where", ["api/v1", "apis/apps/v1", "apis/scheduling.run.ai/v2"])
def test_every_reference_of_a_document_leads_somewhere(registry: Registry, where: str) -> None:
    made = answered(OpenApi(registry), f"/openapi/v3/{where}")

    def references(value: Any) -> list[str]:
        if isinstance(value, dict):
            own = [value["$ref"]] if "$ref" in value else []
            return own + [each for item in value.values() for each in references(item)]
        return [each for item in value for each in references(item)] if isinstance(value, list) else []

    missing = {
        each
        for each in references(made)
        if each.removeprefix("#/components/schemas/") not in made["components"]["schemas"]
    }
    assert not missing


def test_kubectl_finds_that_fields_can_be_validated(registry: Registry) -> None:
    """It looks for the parameter on the PATCH of the kind, and validates by itself, badly, where it is missing."""
    for kind in registry:
        if "patch" not in kind.verbs:
            continue
        patches = [operations["patch"] for operations in document([kind])["paths"].values() if "patch" in operations]
        assert any("fieldValidation" in {one["name"] for one in patch["parameters"]} for patch in patches), (
            kind.resource
        )


def test_the_index_names_each_document_by_what_it_says(registry: Registry) -> None:
    api = OpenApi(registry)
    before = answered(api, "/openapi/v3")["paths"]
    registry.replace_custom("queues.scheduling.run.ai", (), None)
    after = answered(api, "/openapi/v3")["paths"]
    assert after["api/v1"] == before["api/v1"]
    assert "apis/scheduling.run.ai/v2" not in after
