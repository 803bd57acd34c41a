"""Kinds that no rule knows, grouped as a definition in the cluster says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from typing import Any

import msgspec
import pytest

from shoal.api.core import EVENTS, PODS
from shoal.api.run_ai import KARTAS, Karta
from shoal.api.scheduling_run_ai import POD_GROUPS
from shoal.kube import Manager
from shoal.scheduler.grouper import GrouperSettings, add_grouper
from shoal.scheduler.grouper.case import Facts
from shoal.scheduler.grouper.definitions import (
    MOST_COMPONENTS,
    Definition,
    InvalidDefinition,
    definition_of,
    described_kind,
)
from shoal.scheduler.grouper.fields import Ungroupable
from shoal.scheduler.grouper.jq import DEEPEST, FUNCTIONS, LONGEST, MOST_WORDS, InvalidQuery, QueryFailed, parse
from shoal.scheduler.grouper.wanted import GroupWanted
from tests.scheduler.grouper.builders import CLASSES, a_grouped_pod, an_owner, parts_of, the_group
from tests.scheduler.grouper.stage import (
    THINGS,
    define_kinds,
    group_of,
    grouped_pod_manifest,
    grouper,
    groups_there,
    is_served,
    made,
    marked_pods,
    part_of,
    told,
)
from tests.scheduler.grouper.test_docs import EXAMPLES, PAGE
from tests.scheduler.grouper.test_rights import BINDINGS, ROLES, with_own_rights
from tests.support.clusters.client import install, until
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.waiting.at_rest import at_rest

Json = dict[str, Any]
ROLE = ".metadata.labels.role"


def a_component(name: str, above: str = "flow", **more: Any) -> Json:
    """A component below another whose pods are known by their role."""
    return {
        "name": name,
        "ownerRef": above,
        "specDefinition": {"podTemplateSpecPath": f".spec.{name}.template"},
        "scaleDefinition": {"replicasPath": f".spec.{name}.replicas"},
        "podSelector": {"componentTypeSelector": {"keyPath": ROLE, "value": name}},
        **more,
    }


def a_karta(
    *children: Json,
    group: Json | None = None,
    groups: list[Json] | None = None,
    name: str = "flow",
    kind: str = "Flow",
    **root: Any,
) -> Json:
    """The definition of a kind with a master and workers, unless other components are given."""
    gangs = {**({"podGroup": group} if group else {}), **({"podGroups": groups} if groups else {})}
    top = {
        "name": "flow",
        "kind": {"group": "example.com", "version": "v1", "kind": kind},
        "statusDefinition": {"statusMappings": {}},
        **root,
    }
    labels = {"run.ai/karta-group": "example.com", "run.ai/karta-version": "v1", "run.ai/karta-kind": kind}
    return {
        "apiVersion": "run.ai/v1alpha1",
        "kind": "Karta",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "structureDefinition": {
                "rootComponent": top,
                "childComponents": list(children) or [a_component("master"), a_component("worker")],
            },
            "optimizationInstructions": {"gangScheduling": gangs} if gangs else {},
        },
    }


def parts(*components: str) -> list[Json]:
    return [{"componentName": component} for component in components]


def ready(karta: Json) -> Definition:
    return definition_of(msgspec.convert(karta, Karta))


def a_flow(**spec: Any) -> Json:
    return an_owner("Flow", "example.com/v1", spec=spec or {"master": {"replicas": 1}, "worker": {"replicas": 2}})


def grouped(karta: Json, owner: Json | None = None, **labels: str) -> GroupWanted:
    """The group of a pod of a Flow, in a cluster with one definition."""
    definition = ready(karta)
    facts = Facts(priority_classes=CLASSES, definitions={definition.kind: definition})
    return the_group(owner or a_flow(), pod=a_grouped_pod(labels={"role": "worker", **labels}), facts=facts)


# The newer form: one group for the workload.


def test_the_components_that_are_named_become_parts_that_all_start_together() -> None:
    near = {"topologyName": "gpus", "preferredTopologyLevel": "host", "requiredTopologyLevel": "rack"}
    wide = {"topologyName": "racks", "preferredTopologyLevel": "rack", "requiredTopologyLevel": "zone"}
    named = [{"componentName": "master"}, {"componentName": "worker", "topology": near}]
    group = grouped(a_karta(group={"name": "training", "subGroups": named, "topology": wide}))
    assert group.name == "pg-w-uid-training"
    assert (group.min_member, group.min_sub_group) == (None, 2)
    assert parts_of(group) == {"master": "1 pods", "worker": "2 pods"}
    assert msgspec.to_builtins(group.topology) == {
        "topology": "racks",
        "preferredTopologyLevel": "rack",
        "requiredTopologyLevel": "zone",
    }
    master, worker = group.sub_groups
    assert master.topology_constraint is None
    assert worker.topology_constraint is not None
    assert worker.topology_constraint.topology == "gpus"
    roles = {role: group.part_of(a_grouped_pod(labels={"role": role})) for role in ("master", "worker", "other")}
    assert roles == {"master": "master", "worker": "worker", "other": ""}
    assert group.part_of(a_grouped_pod()) == ""


def test_without_parts_all_pods_of_all_components_start_together() -> None:
    karta = a_karta(group={"name": "training"})
    owner = a_flow(master={"replicas": 1}, worker={"replicas": 1})
    for role in ("master", "worker"):
        group = grouped(karta, owner, role=role)
        assert (group.name, group.min_member, group.min_sub_group, group.sub_groups) == (
            "pg-w-uid-training",
            2,
            None,
            (),
        )


def test_a_part_need_not_say_where_its_pods_are_described() -> None:
    bare = [a_component(name, specDefinition=None) for name in ("master", "worker")]
    group = grouped(a_karta(*bare, group={"name": "training", "subGroups": parts("master", "worker")}))
    assert parts_of(group) == {"master": "1 pods", "worker": "2 pods"}


def test_the_newer_form_goes_before_the_older() -> None:
    older = [{"name": "old", "members": [{"componentName": "flow"}]}]
    group = grouped(a_karta(group={"name": "new", "subGroups": parts("worker")}, groups=older))
    assert (group.name, group.min_sub_group, parts_of(group)) == ("pg-w-uid-new", 1, {"worker": "2 pods"})


def test_the_workload_itself_says_best_where_it_runs() -> None:
    topology = {"topologyName": "racks", "requiredTopologyLevel": "rack"}
    owner = a_flow()
    owner["metadata"]["annotations"] = {
        "kai.scheduler/topology": "mine",
        "kai.scheduler/topology-required-placement": "zone",
    }
    group = grouped(a_karta(group={"name": "g", "topology": topology}), owner)
    assert group.topology is not None
    assert (group.topology.topology, group.topology.required_topology_level) == ("mine", "zone")


def test_queue_and_priority_are_found_as_for_every_other_kind() -> None:
    owner = a_flow()
    owner["metadata"]["labels"] = {"kai.scheduler/queue": "team-a", "priorityClassName": "urgent"}
    group = grouped(a_karta(group={"name": "g", "subGroups": parts("worker")}), owner)
    assert (group.queue, group.priority_class, group.owner.kind) == ("team-a", "urgent", "Flow")


def test_the_pods_of_components_below_a_part_are_in_it() -> None:
    karta = a_karta(
        a_component("fleet", podSelector=None, specDefinition=None),
        a_component("leader", "fleet"),
        a_component("follower", "fleet"),
        group={"name": "g", "subGroups": parts("fleet")},
    )
    owner = a_flow(fleet={"replicas": 2}, leader={"replicas": 1}, follower={"replicas": 3})
    group = grouped(karta, owner)
    assert parts_of(group) == {"fleet": "8 pods"}
    assert group.part_of(a_grouped_pod(labels={"role": "follower"})) == "fleet"


JOBS = [
    {"name": "a", "replicas": 2, "minReplicas": 1},
    {"name": "b", "replicas": 3},
]

SCALES: list[Any] = [
    pytest.param({"replicasPath": ".spec.n"}, {"n": 4}, 4, id="replicas"),
    pytest.param({"replicasPath": ".spec.n", "minReplicasPath": ".spec.m"}, {"n": 4, "m": 2}, 2, id="its minimum"),
    pytest.param({"replicasPath": ".spec.n", "minReplicasPath": ".spec.m"}, {"n": 4, "m": 0}, 4, id="no minimum"),
    pytest.param({"replicasPath": ".spec.n // 1"}, {}, 1, id="a default"),
    pytest.param({"replicasPath": "2"}, {}, 2, id="a number"),
    pytest.param({"replicasPath": "(.spec.n // 1) * ((.spec.size // 1) - 1)"}, {"n": 2, "size": 4}, 6, id="a product"),
    pytest.param({"minReplicasPath": '.spec.notes["a/min"] // 1'}, {"notes": {"a/min": "3"}}, 3, id="written as text"),
]


@pytest.mark.parametrize(("scale", "spec", "pods"), SCALES)
def test_how_many_start_together_is_what_the_component_says(scale: Json, spec: Json, pods: int) -> None:
    karta = a_karta(a_component("worker", scaleDefinition=scale), group={"name": "g", "subGroups": parts("worker")})
    assert parts_of(grouped(karta, a_flow(**(spec or {"x": 1})))) == {"worker": f"{pods} pods"}


def test_the_instances_of_a_component_are_counted_together() -> None:
    jobs = a_component(
        "job",
        instanceIdPath=".spec.jobs[].name",
        scaleDefinition={"replicasPath": ".spec.jobs[].replicas", "minReplicasPath": ".spec.jobs[].minReplicas"},
        podSelector={
            "componentTypeSelector": {"keyPath": ".metadata.labels.job"},
            "componentInstanceSelector": {"idPath": ".metadata.labels.job"},
        },
    )
    group = grouped(a_karta(jobs, group={"name": "g", "subGroups": parts("job")}), a_flow(jobs=JOBS))
    assert parts_of(group) == {"job": "4 pods"}
    assert group.part_of(a_grouped_pod(labels={"job": "b"})) == "job"


COUNTED: list[Any] = [
    pytest.param([a_component("a", scaleDefinition=None), a_component("b", scaleDefinition=None)], {}, 2, id="pods"),
    pytest.param(
        [
            a_component(
                "a",
                scaleDefinition=None,
                instanceIdPath=".spec.services | to_entries[] | .key",
                podSelector={"componentInstanceSelector": {"idPath": ROLE}},
            )
        ],
        {"services": {"z": {}, "y": {}, "x": {}}},
        3,
        id="instances",
    ),
    pytest.param([a_component("a", scaleDefinition=None, specDefinition=None)], {}, 1, id="nothing: one by one"),
]


@pytest.mark.parametrize(("children", "spec", "pods"), COUNTED)
def test_where_nobody_says_replicas_what_describes_pods_is_counted(children: Any, spec: Json, pods: int) -> None:
    assert grouped(a_karta(*children, group={"name": "g"}), a_flow(**(spec or {"x": 1}))).min_member == pods


TREES: list[Any] = [
    pytest.param(".spec.n", 3, {"n": 2}, 6, id="both: times"),
    pytest.param(".spec.n", 3, {"x": 2}, 3, id="below alone"),
    pytest.param(".spec.n", 0, {"n": 2}, 2, id="above alone"),
]


@pytest.mark.parametrize(("path", "below", "spec", "pods"), TREES)
def test_replicas_of_components_are_multiplied_down_the_tree(path: str, below: int, spec: Json, pods: int) -> None:
    karta = a_karta(a_component("worker"), group={"name": "g"}, scaleDefinition={"replicasPath": path})
    assert grouped(karta, a_flow(worker={"replicas": below}, **spec)).min_member == pods


# The older form: groups by keys that the pods carry.


def members(*said: Json) -> list[Json]:
    return [{"name": "job", "members": list(said)}]


def test_pods_are_grouped_by_the_values_of_their_keys() -> None:
    karta = a_karta(groups=members({"componentName": "flow", "groupByKeyPaths": ['.metadata.labels["job-name"]']}))
    group = grouped(karta, None, **{"job-name": "one"})
    assert (group.name, group.min_member, group.min_sub_group, group.sub_groups) == ("pg-w-uid-one", 3, None, ())


def test_without_keys_the_workload_is_one_group() -> None:
    assert grouped(a_karta(groups=members({"componentName": "flow"}))).name == "pg-w-uid"


def test_what_is_said_of_the_component_itself_goes_before_what_is_said_of_the_one_above() -> None:
    karta = a_karta(groups=members({"componentName": "flow"}, {"componentName": "worker"}))
    assert {role: grouped(karta, role=role).min_member for role in ("master", "worker")} == {"master": 3, "worker": 2}


def test_filters_decide_which_member_a_pod_is() -> None:
    karta = a_karta(
        groups=[
            *members({"componentName": "worker", "filters": ['.metadata.labels.size == "big"', "true"]}),
            {"name": "rest", "members": [{"componentName": "flow"}]},
        ]
    )
    assert [grouped(karta, size=size).min_member for size in ("big", "small")] == [2, 3]


def test_a_pod_of_one_instance_waits_for_that_instance_alone() -> None:
    job = a_component(
        "job",
        instanceIdPath=".spec.jobs[].name",
        scaleDefinition={"replicasPath": ".spec.jobs[].replicas"},
        podSelector={"componentInstanceSelector": {"idPath": ".metadata.labels.job"}},
    )
    by_job = {"componentName": "job", "groupByKeyPaths": [".metadata.labels.job"]}
    karta, owner = a_karta(job, groups=members(by_job)), a_flow(jobs=JOBS)
    groups = [grouped(karta, owner, job=name) for name in "ab"]
    assert [(group.name, group.min_member) for group in groups] == [("pg-w-uid-a", 2), ("pg-w-uid-b", 3)]
    with pytest.raises(Ungroupable, match="has the instances a, b and the pod is of 'c'"):
        grouped(karta, owner, job="c")


BY_NAME = {"componentName": "flow", "groupByKeyPaths": [".metadata.labels.name"]}
ONLY_MASTERS = {"componentName": "flow", "filters": ['.metadata.labels.role == "master"']}
TROUBLES: list[Any] = [
    pytest.param(a_karta(groups=members(BY_NAME)), {"name": "Not_A_Name"}, "Not_A_Name", id="no name of a group"),
    pytest.param(a_karta(groups=members(BY_NAME)), {}, "not one value", id="no key"),
    pytest.param(a_karta(groups=members(ONLY_MASTERS)), {}, "member of no group", id="no member"),
    pytest.param(a_karta(groups=members(BY_NAME)), {"role": "guest"}, "is of no component", id="no component"),
    pytest.param(
        a_karta(group={"name": "g", "subGroups": parts("flow", "worker")}, scaleDefinition={"replicasPath": ".kind"}),
        {},
        "gives 'Flow' in place of a whole number",
        id="no number",
    ),
    pytest.param(
        a_karta(
            a_component("worker", scaleDefinition=None),
            a_component("master"),
            group={"name": "g", "subGroups": parts("worker")},
        ),
        {},
        "the component 'worker' has no replicas",
        id="an empty part",
    ),
    pytest.param(
        a_karta(a_component("worker", scaleDefinition={"replicasPath": ".spec[].replicas"}), group={"name": "g"}),
        {},
        "has 1 instances and the replicas of 2",
        id="more replicas than instances",
    ),
    pytest.param(
        a_karta(a_component("worker", scaleDefinition={"replicasPath": ".kind.replicas"}), group={"name": "g"}),
        {},
        "a value of type string has no 'replicas'",
        id="a path that does not suit",
    ),
]


@pytest.mark.parametrize(("karta", "labels", "said"), TROUBLES)
def test_what_a_definition_cannot_make_of_a_workload_is_said(karta: Json, labels: dict[str, str], said: str) -> None:
    with pytest.raises(Ungroupable, match=said):
        grouped(karta, None, **labels)


# Which definition counts.


def test_another_version_of_the_kind_is_not_meant() -> None:
    karta = a_karta(group={"name": "g"})
    owner = {**a_flow(), "apiVersion": "example.com/v2"}
    assert (grouped(karta, owner).name, grouped(karta, owner).min_member) == ("pg-w-w-uid", 1)


def test_rules_of_our_own_go_before_definitions() -> None:
    definition = ready(a_karta(group={"name": "g"}))
    facts = Facts(priority_classes=CLASSES, definitions={("apps/v1", "StatefulSet"): definition})
    assert the_group(an_owner("StatefulSet", "apps/v1"), facts=facts).name == "pg-w-w-uid"


def test_a_definition_that_says_nothing_of_groups_or_is_about_to_go_is_of_no_use() -> None:
    leaving = a_karta(group={"name": "g"})
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    found = [described_kind(msgspec.convert(one, Karta)) for one in (a_karta(), leaving)]
    assert found == [None, None]


@contextmanager
def changed(karta: Json, *path: str | int) -> Iterator[Json]:
    """The innermost of the fields on a path, to be changed."""
    found: Any = karta
    for step in path:
        found = found[step]
    yield found


STRUCTURE = ("spec", "structureDefinition")
WORKER = (*STRUCTURE, "childComponents", 1)
GROUP = ("spec", "optimizationInstructions", "gangScheduling", "podGroup")
SELECTOR = (*WORKER, "podSelector", "componentTypeSelector")
SCALE = (*WORKER, "scaleDefinition")

FLAWS: list[Any] = [
    pytest.param((*STRUCTURE, "rootComponent"), {"kind": None}, "does not say its group", id="no kind"),
    pytest.param((*STRUCTURE, "rootComponent"), {"statusDefinition": None}, "no statusDefinition", id="no status"),
    pytest.param((*STRUCTURE, "rootComponent"), {"ownerRef": "worker"}, "has an ownerRef", id="an owned root"),
    pytest.param(
        ("metadata", "labels"), {"run.ai/karta-kind": "Other"}, "set label run.ai/karta-kind=Flow", id="labels"
    ),
    pytest.param(WORKER, {"name": ""}, "has no name", id="no name"),
    pytest.param(WORKER, {"name": "master"}, "two components are named 'master'", id="names twice"),
    pytest.param(WORKER, {"ownerRef": None}, "has no ownerRef", id="no owner"),
    pytest.param(WORKER, {"ownerRef": "nobody"}, "'nobody', which is not there", id="owner not there"),
    pytest.param(WORKER, {"ownerRef": "worker"}, "lies below itself", id="a circle"),
    pytest.param(WORKER, {"instanceIdPath": ".spec.x"}, "add the other", id="instances that no pod names"),
    pytest.param((*WORKER, "specDefinition"), {"podSpecPath": ".spec"}, "in several ways", id="pods described twice"),
    pytest.param(SELECTOR, {"keyPath": ".. | .metadata.name"}, "'..' is not understood", id="everything below"),
    pytest.param(SELECTOR, {"keyPath": ""}, "is empty", id="an empty path"),
    pytest.param(SELECTOR, {"keyPath": ".spec.containers[0].name"}, ".spec.containers of pods is not", id="containers"),
    pytest.param(SELECTOR, {"keyPath": "keys"}, "name a field of pods", id="the whole pod"),
    pytest.param(SCALE, {"replicasPath": ".spec.worker.("}, "is not expected", id="no expression"),
    pytest.param(SCALE, {"minReplicasPath": "del(.spec)"}, "'del' is not understood", id="changing"),
    pytest.param(SCALE, {"replicasPath": ".spec.n = 3"}, "is not understood", id="assigning"),
    pytest.param(GROUP, {"name": ""}, "podGroup has no name", id="a group without name"),
    pytest.param(GROUP, {"subGroups": parts("nobody")}, "component 'nobody', which is not there", id="unknown part"),
    pytest.param(GROUP, {"topology": {"requiredTopologyLevel": "rack"}}, "no topologyName", id="no topology"),
    pytest.param(GROUP, {"topology": {"topologyName": "racks"}}, "names no level", id="no level"),
]


@pytest.mark.parametrize(("path", "fields", "said"), FLAWS)
def test_a_definition_with_a_flaw_says_which(path: tuple[str | int, ...], fields: Json, said: str) -> None:
    karta = deepcopy(a_karta(group={"name": "g", "subGroups": parts("worker")}))
    ready(karta)
    with changed(karta, *path) as found:
        found.update(fields)
    with pytest.raises(InvalidDefinition) as problem:
        ready(karta)
    assert said in str(problem.value)


def test_a_definition_has_so_many_components_and_no_more() -> None:
    chain = [a_component(f"c{index}", f"c{index - 1}" if index else "flow") for index in range(MOST_COMPONENTS)]
    group = grouped(a_karta(*chain[:-1], group={"name": "g", "subGroups": parts("c0")}), a_flow(c0={"replicas": 2}))
    assert parts_of(group) == {"c0": "2 pods"}
    with pytest.raises(InvalidDefinition, match="more than 100 components"):
        ready(a_karta(*chain, group={"name": "g"}))


def test_a_member_that_is_no_component_is_a_flaw() -> None:
    with pytest.raises(InvalidDefinition, match="component 'nobody', which is not there"):
        ready(a_karta(groups=members({"componentName": "nobody"})))


def test_the_example_of_the_page_gives_the_group_that_it_shows() -> None:
    karta, group = (one for one in EXAMPLES if one.get("kind") == "Karta" or "subGroups" in one.get("spec", {}))
    spec = {"coordinator": {}, "worker": {"replicas": 8, "min": 4}}
    wanted = grouped(karta, an_owner("CustomJob", "example.com/v1", spec=spec))
    assert wanted.name == "pg-w-uid-customjob"
    assert {**wanted.body(frozenset())["spec"], "priorityClassName": None} == {
        **group["spec"],
        "priorityClassName": None,
    }
    assert wanted.part_of(a_grouped_pod(labels={"example.com/role": "worker"})) == "worker"


def test_the_page_names_every_function_of_expressions() -> None:
    assert [name for name in FUNCTIONS if f"`{name}`" not in PAGE] == []


# Expressions.

SAMPLE = {
    "spec": {"n": 2, "list": [{"k": 1}, {"k": None}, {"k": 3}], "map": {"b": 2, "a": 1}, "text": "a-b"},
    "metadata": {"labels": {"x.io/y": "z"}},
}
EXPRESSIONS: list[tuple[str, list[Any]]] = [
    (".", [SAMPLE]),
    (".spec.n", [2]),
    ('.metadata.labels["x.io/y"]', ["z"]),
    ('.metadata.labels."x.io/y"', ["z"]),
    ('.["metadata"].labels | .["x.io/y"]', ["z"]),
    (".spec.missing.too", [None]),
    (".spec.list[0].k", [1]),
    (".spec.list[-1].k", [3]),
    (".spec.list[9]", [None]),
    (".spec.list[].k", [1, None, 3]),
    (".spec.list[].k // 7", [1, 3]),
    (".spec.list[] | .k // 7", [1, 7, 3]),
    (".spec.map[]", [1, 2]),
    (".spec.map | to_entries[] | .key", ["a", "b"]),
    (".spec.n[]?", []),
    (".spec.n.x? // 5", [5]),
    (".spec.n.x // 5", [5]),
    ("(.spec.n.x.y)?", []),
    (".spec.list[].k.x?", [None]),
    ("(.spec.n // 1) * (.spec.list[].k // 1)", [2, 6]),
    ("1 + 2 * 3 - 4 / 2", [5]),
    ("007 + 0.5", [7.5]),
    ("7 % 4, -7 % 4", [3, -3]),
    ("[.spec.list[].k] | length", [3]),
    ("[]", [[]]),
    ("[.spec.map[]] | add", [3]),
    ('.spec.text | split("-") | first, last', ["a", "b"]),
    ('.spec.text == "a-b" and (.spec.n >= 2 or false)', [True]),
    (".spec.n == true", [False]),
    ('null < 0, 1 < "a", .spec.n != 2', [True, True, False]),
    (".spec.list[] | select(.k != null) | .k", [1, 3]),
    (".spec.list | map(.k // 0) | add", [4]),
    (".spec.list | any(.k == 3), all(.k == 3)", [True, False]),
    ('if .spec.n > 5 then "big" elif .spec.n > 1 then "middle" else "small" end', ["middle"]),
    ('.spec | has("n"), has("m")', [True, False]),
    ('.spec.text | startswith("a"), endswith("a"), ltrimstr("a-"), ascii_upcase', [True, False, "b", "A-B"]),
    ('"12" | tonumber | tostring | type', ["string"]),
    (".spec.missing | not", [True]),
    ("empty", []),
    ("first(.spec.list[].k)", [1]),
]


@pytest.mark.parametrize(("text", "gives"), EXPRESSIONS)
def test_an_expression_gives_what_jq_gives(text: str, gives: list[Any]) -> None:
    found = parse(text).results(SAMPLE)
    assert found == gives
    assert [type(one) is bool for one in found] == [type(one) is bool for one in gives]


@pytest.mark.parametrize(
    "text",
    [
        "", "spec", "..", ".a = 1", ".a |= 1", "del(.a)", "recurse", "range(9)", "[.a", "(.a", ".a)", ".a |",
        "if . then 1", "@base64", '"a\\(.b)"', "{a: 1}", ". as $x | $x", "select", "length(1)",
        f'"{"a" * LONGEST}"', ".a" * (MOST_WORDS + 1), "-" * 99 + "1", "(" * (DEEPEST + 1) + "1" + ")" * (DEEPEST + 1),
    ],
)  # fmt: skip
def test_what_is_no_expression_or_not_known_here_is_refused(text: str) -> None:
    with pytest.raises(InvalidQuery):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        ".spec.n.x", ".spec.n[]", ".spec.text + 1", "1 / 0", "1 % 0", '"x" | tonumber', ".spec.n | startswith(\"a\")",
        "[] < [1]", "[] == []", "[.] | tostring",
        ".spec.n.x.y?", ".spec | has(1)", "true | length", "null | to_entries",
    ],
)  # fmt: skip
def test_a_value_that_does_not_suit_is_said(text: str) -> None:
    with pytest.raises(QueryFailed):
        parse(text).results(SAMPLE)


def test_an_expression_that_gives_or_takes_too_much_is_stopped() -> None:
    many = {"a": list(range(1200))}
    with pytest.raises(QueryFailed, match="more than 1000 values"):
        parse(".a[]").results(many)
    with pytest.raises(QueryFailed, match="steps"):
        parse("[.a[] + .a[]] | length").results(many)
    with pytest.raises(QueryFailed, match="longer"):
        parse(".a" + " | . + ." * 30).results(many)
    assert parse("3" + " | . * ." * 9).results(None) == [float(3**512)]
    with pytest.raises(QueryFailed, match="too large"):
        parse("3" + " | . * ." * 12).results(None)


@pytest.mark.parametrize("text", ["." + "?" * (MOST_WORDS - 1), ".a" * MOST_WORDS, "1" + "+1" * (MOST_WORDS // 2 - 1)])
def test_the_longest_expressions_are_read_and_run(text: str) -> None:
    parse(text).reads()
    assert len(parse(text).results(None)) == 1


READS: list[tuple[str, set[tuple[str, ...]]]] = [
    (ROLE, {("metadata", "labels", "role")}),
    (".spec | .nodeName // .metadata.name", {("spec", "nodeName"), ("spec", "metadata", "name")}),
    (".metadata.labels[] | length", {("metadata", "labels")}),
    ("select(.spec.x) | .kind", {("spec", "x"), ("kind",)}),
    (".spec.containers[0].name == .kind", {("spec", "containers"), ("spec", "containers", "name"), ("kind",)}),
    ("keys", {()}),
    ("((.a | .b) | .c)?", {("a", "b", "c")}),
    ("if .a then .b else 1 end", {("a",), ("b",)}),
    ("true", set()),
]


@pytest.mark.parametrize(("text", "fields"), READS)
def test_it_is_known_which_fields_an_expression_reads(text: str, fields: set[tuple[str, ...]]) -> None:
    assert parse(text).reads() == fields


# On a cluster.

THING = a_karta(group={"name": "all", "subGroups": parts("master", "worker")}, kind="Thing", name="things")


async def define_kartas(cluster: Cluster) -> None:
    """Installs the kind of definitions, as Karta's chart does."""
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    names = {"kind": "Karta", "plural": "kartas", "singular": "karta", "listKind": "KartaList"}
    manifest = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "kartas.run.ai"},
        "spec": {"group": "run.ai", "names": names, "scope": "Cluster", "versions": [version]},
    }
    await install(cluster.client, manifest)
    await until(partial(is_served, cluster, KARTAS.documents()))


async def a_thing(cluster: Cluster, name: str = "flow", *, workers: int = 2) -> Json:
    """A workload of a kind that no rule knows, with its pods."""
    spec = {"master": {"replicas": 1}, "worker": {"replicas": workers}}
    thing: Json = await made(cluster, THINGS, name, spec, labels={"kai.scheduler/queue": "q"})
    for index, role in enumerate(("master", *["worker"] * workers)):
        await cluster.make(PODS, grouped_pod_manifest(f"{name}-{index}", owner=thing, labels={"role": role}))
    return thing


async def spec_there(cluster: Cluster, name: str, wanted: Callable[[Json], bool]) -> Json:
    """The spec of a group, once it is as wanted."""

    async def there() -> Json | None:
        found = await cluster.read(POD_GROUPS, name)
        return found["spec"] if found and wanted(found["spec"]) else None

    found: Json = await until(there)
    return found


async def test_a_workload_of_a_kind_that_is_described_becomes_one_gang(cluster: Cluster) -> None:
    await define_kinds(cluster, THINGS)
    await define_kartas(cluster)
    await cluster.make(KARTAS, THING)
    thing = await a_thing(cluster)
    async with cluster.controllers(grouper) as manager:
        pods = await marked_pods(cluster, 3)
        (group,) = await groups_there(cluster, 1)
        name = f"pg-{thing['metadata']['uid']}-all"
        assert {group_of(pod) for pod in pods} == {name} == {group["metadata"]["name"]}
        assert [part_of(pod) for pod in pods] == ["master", "worker", "worker"]
        assert group["spec"] == {
            "minSubGroup": 2,
            "queue": "q",
            "priorityClassName": "train",
            "subGroups": [{"name": "master", "minMember": 1}, {"name": "worker", "minMember": 2}],
        }
        (owner,) = group["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("Thing", thing["metadata"]["uid"])
        await at_rest(manager)
        assert writes_of(manager) == 4
        # The workload is followed from now on.
        more = {"spec": {"worker": {"replicas": 5}}}
        await cluster.client.merge_patch(THINGS, "flow", more, "default")
        await spec_there(cluster, name, lambda spec: bool(spec["subGroups"][1]["minMember"] == 5))


async def test_without_a_definition_the_workload_is_one_group_whose_pods_start_one_by_one(cluster: Cluster) -> None:
    await define_kinds(cluster, THINGS)
    await a_thing(cluster)
    async with cluster.controllers(grouper) as manager:
        pods = await marked_pods(cluster, 3)
        (group,) = await groups_there(cluster, 1)
        await at_rest(manager)
    assert (group["spec"]["minMember"], "subGroups" in group["spec"]) == (1, False)
    assert [part_of(pod) for pod in pods] == ["", "", ""]


async def test_definitions_are_not_read_where_that_is_switched_off(cluster: Cluster) -> None:
    await define_kinds(cluster, THINGS)
    await define_kartas(cluster)
    await cluster.make(KARTAS, THING)
    thing = await a_thing(cluster)

    def without(manager: Manager) -> None:
        add_grouper(manager, GrouperSettings(reads_definitions=False))

    async with cluster.controllers(without):
        await marked_pods(cluster, 3)
        (group,) = await groups_there(cluster, 1)
    assert group["metadata"]["name"] == f"pg-flow-{thing['metadata']['uid']}"


async def test_definitions_that_come_later_count_from_then_on(cluster: Cluster) -> None:
    await define_kinds(cluster, THINGS)
    thing = await a_thing(cluster)
    name = f"pg-{thing['metadata']['uid']}-all"
    async with cluster.controllers(grouper):
        await marked_pods(cluster, 3)
        await define_kartas(cluster)
        await cluster.make(KARTAS, THING)
        await spec_there(cluster, name, lambda spec: spec.get("minSubGroup") == 2)

        async def all_moved() -> bool:
            return {group_of(pod) for pod in await cluster.all(PODS)} == {name}

        await until(all_moved)


async def test_a_bad_definition_is_told_once_and_keeps_nobody_waiting(cluster: Cluster) -> None:
    await define_kinds(cluster, THINGS)
    await define_kartas(cluster)
    bad = deepcopy(THING)
    with changed(bad, *SELECTOR) as found:
        found["keyPath"] = ".. | .name"
    await cluster.make(KARTAS, bad)
    await cluster.make(KARTAS, {**deepcopy(bad), "metadata": {**bad["metadata"], "name": "odd"}, "spec": []})
    thing = await a_thing(cluster)
    await cluster.make(PODS, grouped_pod_manifest("solo"))
    async with cluster.controllers(grouper) as manager:
        pods = await marked_pods(cluster, 4)
        event = await told(cluster, "'..' is not understood")
        assert (event["involvedObject"]["kind"], event["involvedObject"]["name"]) == ("Karta", "things")
        odd = await told(cluster, "Karta odd")
        assert odd["involvedObject"]["name"] == "odd"
        assert group_of(pods[0]) == f"pg-flow-{thing['metadata']['uid']}"
        # Its label changes and the flaw stays: nothing new is to be said.
        await cluster.client.merge_patch(KARTAS, "things", {"metadata": {"labels": {"team": "a"}}}, "")
        await at_rest(manager)
        said = [one for one in await cluster.all(EVENTS) if one["involvedObject"]["name"] == "things"]
        assert [one.get("count", 1) for one in said] == [1]
        # A second one, which is right, counts.
        await cluster.make(KARTAS, {**deepcopy(THING), "metadata": {**THING["metadata"], "name": "right"}})
        await spec_there(cluster, f"pg-{thing['metadata']['uid']}-all", lambda spec: spec.get("minSubGroup") == 2)


async def test_its_own_rights_and_those_to_read_the_kind_are_enough(cluster: Cluster) -> None:
    await define_kinds(cluster, THINGS)
    await define_kartas(cluster)
    await cluster.make(KARTAS, THING)
    thing = await a_thing(cluster)
    rule = {"apiGroups": ["example.com"], "resources": ["things"], "verbs": ["get", "list", "watch"]}
    await cluster.make(ROLES, {"metadata": {"name": "things"}, "rules": [rule]})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "things"}
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "grouper"}
    await cluster.make(BINDINGS, {"metadata": {"name": "things"}, "roleRef": role, "subjects": [user]})
    async with with_own_rights(cluster):
        pods = await marked_pods(cluster, 3)
    assert {group_of(pod) for pod in pods} == {f"pg-{thing['metadata']['uid']}-all"}


async def test_of_two_definitions_for_a_kind_neither_counts_until_one_is_gone(cluster: Cluster) -> None:
    await define_kinds(cluster, THINGS)
    await define_kartas(cluster)
    await cluster.make(KARTAS, THING)
    await cluster.make(KARTAS, {**deepcopy(THING), "metadata": {**THING["metadata"], "name": "second"}})
    thing = await a_thing(cluster)
    async with cluster.controllers(grouper):
        pods = await marked_pods(cluster, 3)
        assert {group_of(pod) for pod in pods} == {f"pg-flow-{thing['metadata']['uid']}"}
        await told(cluster, "second, things are about the same kind")
        await cluster.client.delete(KARTAS, "second")
        await spec_there(cluster, f"pg-{thing['metadata']['uid']}-all", lambda spec: spec.get("minSubGroup") == 2)


async def test_what_a_definition_cannot_make_of_one_workload_concerns_that_one_alone(cluster: Cluster) -> None:
    await define_kinds(cluster, THINGS)
    await define_kartas(cluster)
    await cluster.make(KARTAS, THING)
    odd = await made(cluster, THINGS, "odd", {"worker": {"replicas": "many"}, "master": {"replicas": 1}})
    await cluster.make(PODS, grouped_pod_manifest("odd", owner=odd, labels={"role": "worker"}))
    await a_thing(cluster)
    async with cluster.controllers(grouper):
        await marked_pods(cluster, 3)
        event = await told(cluster, "'many' in place of a whole number")
        assert event["involvedObject"]["name"] == "odd"
        # The workload is mended, and its pod need not wait for the next look.
        await cluster.client.merge_patch(THINGS, "odd", {"spec": {"worker": {"replicas": 1}}}, "default")
        await marked_pods(cluster, 4)
