"""The controllers of backends on a server: what they make, mend, take back, leave alone, and tell."""

from __future__ import annotations

from typing import Any

from structlog.testing import capture_logs

from shoal.api import scheduling_sigs_k8s_io, scheduling_volcano_sh
from shoal.api.grove import POD_CLIQUE_SETS
from shoal.api.scheduler_grove_io import POD_GANGS
from shoal.api.scheduling_k8s_io import WORKLOADS_V1ALPHA1
from shoal.api.scheduling_run_ai import POD_GROUPS
from shoal.cli.processes.api import define
from shoal.cluster.controllers.garbage import add_garbage_collector
from shoal.kube.admission.configuration import CUSTOM_RESOURCE_DEFINITIONS
from tests.gangs.backends.at_work import Gangs
from tests.gangs.backends.builders import a_group
from tests.gangs.builders import a_clique_template, a_set
from tests.support.clusters.client import until
from tests.support.clusters.in_process import writes_of
from tests.support.waiting import eventually
from tests.support.waiting.at_rest import at_rest

SIGS_GROUPS, VOLCANO_GROUPS = scheduling_sigs_k8s_io.POD_GROUPS, scheduling_volcano_sh.POD_GROUPS
BACKEND = "grove.io/scheduler-backend"
SKIP = "kai.scheduler/skip-podgrouper"


async def test_a_gang_of_kai_has_a_pod_group_that_it_owns(gangs: Gangs) -> None:
    uid = await gangs.make(a_group("web-0-workers", 2))
    async with gangs.backends():
        condition = await gangs.ready("Synced")
        found = await gangs.there(POD_GROUPS, f"pg-web-0-{uid}")
    assert condition["status"] == "True"
    assert condition["message"] == f"PodGroup pg-web-0-{uid}"
    assert "." not in condition["lastTransitionTime"], "times are in whole seconds"
    [owner] = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("PodGang", "web-0", uid, True)
    assert found["spec"]["queue"] == "default-queue"
    assert found["spec"]["minMember"] == 2
    assert (await gangs.gang())["metadata"]["annotations"][SKIP] == "true"


async def test_a_gang_of_no_scheduler_has_a_workload_of_its_own_name(gangs: Gangs) -> None:
    uid = await gangs.make(a_group("web-0-workers", 2), backend="default")
    async with gangs.backends():
        await gangs.ready("Synced")
        found = await gangs.there(WORKLOADS_V1ALPHA1, "web-0")
    assert found["metadata"]["ownerReferences"][0]["uid"] == uid
    assert found["spec"]["podGroups"] == [{"name": "web-0-workers", "policy": {"gang": {"minCount": 2}}}]
    assert await gangs.cluster.all(POD_GROUPS) == []


async def test_a_gang_of_koordinator_has_a_pod_group_for_each_clique_and_none_that_is_stale(gangs: Gangs) -> None:
    await define(gangs.cluster.client, scheduling_sigs_k8s_io.DEFINITIONS)
    await gangs.make(a_group("web-0-a", 1), a_group("web-0-b", 2), backend="koordinator")
    async with gangs.backends():
        await gangs.ready("Synced")
        made = await gangs.cluster.all(SIGS_GROUPS)
        assert {each["metadata"]["name"]: each["spec"]["minMember"] for each in made} == {
            "web-0-web-0-a": 1,
            "web-0-web-0-b": 2,
        }
        await gangs.edit(POD_GANGS, "web-0", {"spec": {"podgroups": [a_group("web-0-a", 1, pods=3)]}})
        await gangs.gone(SIGS_GROUPS, "web-0-web-0-b")
        await until(lambda: _annotated(gangs, "total-number", "3"), within=30)
        assert await _annotated(gangs, "groups", '["default/web-0-web-0-a"]')


async def _annotated(gangs: Gangs, name: str, value: str) -> bool:
    found = await gangs.cluster.read(SIGS_GROUPS, "web-0-web-0-a")
    assert found is not None
    return bool(found["metadata"]["annotations"].get(f"gang.scheduling.koordinator.sh/{name}") == value)


async def test_a_gang_of_volcano_has_a_pod_group_of_its_own_name(gangs: Gangs) -> None:
    await define(gangs.cluster.client, scheduling_volcano_sh.DEFINITIONS)
    await gangs.make(backend="volcano")
    async with gangs.backends():
        await gangs.ready("Synced")
    found = await gangs.cluster.read(VOLCANO_GROUPS, "web-0")
    assert found is not None
    assert [group["name"] for group in found["spec"]["subGroupPolicy"]] == ["web-0-workers"]


async def test_what_others_delete_or_change_is_put_right(gangs: Gangs) -> None:
    uid = await gangs.make(a_group("web-0-workers", 2))
    name = f"pg-web-0-{uid}"
    async with gangs.backends():
        await gangs.ready("Synced")
        await gangs.edit(POD_GROUPS, name, {"spec": {"minMember": 1}})

        async def is_mended() -> bool:
            found = await gangs.cluster.read(POD_GROUPS, name)
            return found is not None and found["spec"]["minMember"] == 2

        await until(is_mended, within=30)
        before = await gangs.there(POD_GROUPS, name)
        await gangs.cluster.client.delete(POD_GROUPS, name, "default")

        async def is_anew() -> bool:
            found = await gangs.cluster.read(POD_GROUPS, name)
            return found is not None and found["metadata"]["uid"] != before["metadata"]["uid"]

        await until(is_anew, within=30)


async def test_where_a_gang_waits_is_not_taken_back_from_those_who_move_it(gangs: Gangs) -> None:
    moved = {"kai.scheduler/queue": "b", "kai.scheduler/node-pool": "big"}
    uid = await gangs.make(
        owner=a_set("web", metadata={"labels": {"kai.scheduler/queue": "a"}}), labels={"kai.scheduler/queue": "a"}
    )
    name = f"pg-web-0-{uid}"
    async with gangs.backends() as manager:
        await gangs.ready("Synced")
        assert (await gangs.there(POD_GROUPS, name))["spec"]["queue"] == "a"
        kept = {"queue": "b", "markUnschedulable": False, "schedulingBackoff": 1}
        await gangs.edit(POD_GROUPS, name, {"metadata": {"labels": moved}, "spec": kept})
        await gangs.edit(POD_GANGS, "web-0", {"spec": {"podgroups": [a_group("web-0-workers", 5)]}})

        async def is_told() -> bool:
            found = await gangs.cluster.read(POD_GROUPS, name)
            return found is not None and found["spec"]["minMember"] == 5

        await until(is_told, within=30)
        await at_rest(manager)
        found = await gangs.there(POD_GROUPS, name)
    assert kept.items() <= found["spec"].items()
    assert moved.items() <= found["metadata"]["labels"].items()


async def test_a_backend_whose_kind_is_missing_says_so_and_goes_on_when_it_appears(gangs: Gangs) -> None:
    async with gangs.backends() as manager:
        await gangs.make(backend="volcano")
        condition = await gangs.ready("KindNotServed")
        assert condition["status"] == "False"
        assert "install Volcano" in condition["message"]
        assert await gangs.told(manager) == [("VolcanoCapabilityUnavailable", 1)]
        await define(gangs.cluster.client, scheduling_volcano_sh.DEFINITIONS)
        assert (await gangs.ready("Synced"))["status"] == "True"
        await gangs.there(VOLCANO_GROUPS, "web-0")


async def test_it_is_not_told_again_that_a_kind_is_missing(gangs: Gangs) -> None:
    await gangs.make(backend="koordinator")
    for _ in range(2):
        async with gangs.backends() as manager:
            await gangs.ready("KindNotServed")
            assert await gangs.told(manager) == [("BackendKindNotServed", 1)]
            await gangs.edit(POD_GANGS, "web-0", {"metadata": {"labels": {"more": "yes"}}})
            assert await gangs.told(manager) == [("BackendKindNotServed", 1)]


async def test_a_scheduler_that_is_too_old_is_told_of(gangs: Gangs) -> None:
    [definition, _] = scheduling_volcano_sh.DEFINITIONS
    manifest = definition.manifest()
    spec = manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    del spec["properties"]["subGroupPolicy"]
    await gangs.cluster.make(CUSTOM_RESOURCE_DEFINITIONS, manifest)
    await gangs.make(backend="volcano")
    async with gangs.backends() as manager:
        condition = await gangs.ready("VolcanoCapabilityUnavailable")
        assert "subGroupPolicy" in condition["message"]
        assert ("VolcanoCapabilityUnavailable", 1) in await gangs.told(manager)


async def test_a_foreign_object_of_our_name_is_left_alone_until_it_goes(gangs: Gangs) -> None:
    foreign = {"podGroups": [{"name": "x", "policy": {"basic": {}}}]}
    await gangs.cluster.make(WORKLOADS_V1ALPHA1, {"metadata": {"name": "web-0"}, "spec": foreign})
    await gangs.make(backend="default")
    async with gangs.backends() as manager:
        condition = await gangs.ready("Foreign")
        assert condition["status"] == "False"
        assert "delete it" in condition["message"]
        assert await gangs.told(manager) == [("BackendObjectForeign", 1)]
        found = await gangs.there(WORKLOADS_V1ALPHA1, "web-0")
        assert found["spec"] == foreign
        assert "ownerReferences" not in found["metadata"]
        await gangs.cluster.client.delete(WORKLOADS_V1ALPHA1, "web-0", "default")
        await gangs.ready("Synced")
        assert (await gangs.there(WORKLOADS_V1ALPHA1, "web-0"))["metadata"]["ownerReferences"]


async def test_what_an_earlier_gang_of_the_name_left_is_waited_for_without_a_word(gangs: Gangs) -> None:
    await gangs.make(backend="default")
    async with gangs.backends() as manager:
        await gangs.ready("Synced")
        left = await gangs.there(WORKLOADS_V1ALPHA1, "web-0")
        await gangs.cluster.client.delete(POD_GANGS, "web-0", "default")
        uid = await gangs.make(backend="default")
        await gangs.ready("Replacing")
        assert await gangs.told(manager) == []
        assert await gangs.there(WORKLOADS_V1ALPHA1, "web-0") == left
        await gangs.cluster.client.delete(WORKLOADS_V1ALPHA1, "web-0", "default")
        await gangs.ready("Synced")
        found = await gangs.there(WORKLOADS_V1ALPHA1, "web-0")
        assert found["metadata"]["ownerReferences"][0]["uid"] == uid


async def test_a_gang_that_changes_its_scheduler_leaves_nothing_behind(gangs: Gangs) -> None:
    uid = await gangs.make()
    async with gangs.backends() as manager:
        await gangs.ready("Synced")
        await gangs.edit(POD_GANGS, "web-0", {"metadata": {"labels": {BACKEND: "default"}}})
        await gangs.there(WORKLOADS_V1ALPHA1, "web-0")
        await gangs.gone(POD_GROUPS, f"pg-web-0-{uid}")
        await at_rest(manager)
        gang = await gangs.gang()
    assert SKIP not in gang["metadata"].get("annotations", {})
    [condition] = gang["status"]["conditions"]
    assert condition["message"] == "Workload web-0"


async def test_a_gang_that_changed_its_scheduler_unseen_leaves_nothing_behind(gangs: Gangs) -> None:
    uid = await gangs.make()
    async with gangs.backends():
        await gangs.ready("Synced")
    await gangs.edit(POD_GANGS, "web-0", {"metadata": {"labels": {BACKEND: "nobody-knows"}}})
    async with gangs.backends() as manager:
        await gangs.gone(POD_GROUPS, f"pg-web-0-{uid}")
        await at_rest(manager)
        assert (await gangs.gang())["status"].get("conditions", []) == []  # nobody tells the scheduler any more


async def test_a_workload_that_cannot_be_changed_is_made_anew(gangs: Gangs) -> None:
    await gangs.make(a_group("web-0-workers", 2), backend="default")
    async with gangs.backends():
        await gangs.ready("Synced")
        before = await gangs.there(WORKLOADS_V1ALPHA1, "web-0")
        await gangs.edit(POD_GANGS, "web-0", {"spec": {"podgroups": [a_group("web-0-workers", 3)]}})

        async def minimum() -> int:
            found = await gangs.cluster.read(WORKLOADS_V1ALPHA1, "web-0")
            return int(found["spec"]["podGroups"][0]["policy"]["gang"]["minCount"]) if found else 0

        async def is_anew() -> bool:
            return await minimum() == 3

        await until(is_anew, within=30)
        after = await gangs.there(WORKLOADS_V1ALPHA1, "web-0")
        assert after["metadata"]["uid"] != before["metadata"]["uid"]
        await gangs.ready("Synced")


async def test_what_cannot_be_said_is_told_once_and_passes_when_the_set_is_corrected(gangs: Gangs) -> None:
    def annotated(queue: str) -> dict[str, Any]:
        return {"annotations": {"kai.scheduler/queue": queue}}

    owner = a_set("web", a_clique_template("x", **annotated("a")), a_clique_template("y", **annotated("b")))
    async with gangs.backends() as manager:
        await gangs.make(owner=owner)
        condition = await gangs.ready("KAIBackendMappingFailed")
        assert "names several queues (a, b)" in condition["message"]
        assert await gangs.told(manager) == [("KAIBackendMappingFailed", 1)]
        corrected = [a_clique_template("x", **annotated("a")), a_clique_template("y", **annotated("a"))]
        await gangs.edit(POD_CLIQUE_SETS, "web", {"spec": {"template": {"cliques": corrected}}})
        await gangs.ready("Synced")
        [found] = await gangs.cluster.all(POD_GROUPS)
        assert found["spec"]["queue"] == "a"


async def test_one_gang_that_cannot_be_told_keeps_no_other_from_it(gangs: Gangs) -> None:
    await gangs.make(a_group("my.web-0-workers"), name="bad")
    await gangs.make(name="good")
    async with gangs.backends():
        await gangs.ready("Synced", name="good")
        await gangs.ready("KAIBackendMappingFailed", name="bad")


async def test_conditions_and_the_phase_of_others_are_kept(gangs: Gangs) -> None:
    moment = "2026-01-01T00:00:00Z"
    theirs = {
        "type": "Initialized",
        "status": "True",
        "reason": "PodGangPodsCreated",
        "message": "",
        "lastTransitionTime": moment,
    }
    await gangs.make()
    await gangs.cluster.set_status(POD_GANGS, "web-0", {"phase": "Running", "conditions": [theirs]})
    async with gangs.backends():
        await gangs.ready("Synced")
        status = (await gangs.gang())["status"]
        assert status["phase"] == "Running"
        assert status["conditions"][0] == theirs
        await gangs.cluster.set_status(POD_GANGS, "web-0", {"conditions": [theirs]})  # ours was taken away
        await gangs.ready("Synced")


async def test_at_rest_and_after_a_restart_nothing_is_written(gangs: Gangs) -> None:
    definitions = [*scheduling_sigs_k8s_io.DEFINITIONS, *scheduling_volcano_sh.DEFINITIONS]
    await define(gangs.cluster.client, definitions)
    kinds = ("kai", "default", "koordinator", "volcano")
    for kind in kinds:
        await gangs.make(a_group(f"{kind}-0-a", 1), a_group(f"{kind}-0-b", 2), name=f"{kind}-0", backend=kind)
    async with gangs.backends() as manager:
        for kind in kinds:
            await gangs.ready("Synced", name=f"{kind}-0")
        await at_rest(manager)
        written = writes_of(manager)
        for kind in kinds:  # a pod joins the gang: a change that is looked at, and means nothing to anybody
            groups = [a_group(f"{kind}-0-a", 1), a_group(f"{kind}-0-b", 2, pods=1)]
            await gangs.edit(POD_GANGS, f"{kind}-0", {"spec": {"podgroups": groups}})
        seen = manager.cache.informer(POD_GANGS)
        await eventually(lambda: all(gang.spec.pod_groups[1].pod_references for gang in seen.items()))
        await at_rest(manager)
        assert writes_of(manager) == written
    async with gangs.backends() as manager:
        await at_rest(manager)
        assert writes_of(manager) == 0


async def test_what_a_backend_made_goes_with_the_set(gangs: Gangs) -> None:
    owner = await gangs.cluster.make(POD_CLIQUE_SETS, a_set("web"))
    uid = await gangs.make()
    await gangs.make(name="web-1", backend="default")
    reference = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "name": "web", "uid": owner.metadata.uid}
    for name in ("web-0", "web-1"):
        await gangs.edit(POD_GANGS, name, {"metadata": {"ownerReferences": [{**reference, "controller": True}]}})
    async with gangs.backends(), gangs.cluster.controllers(add_garbage_collector):
        await gangs.ready("Synced")
        await gangs.ready("Synced", name="web-1")
        await gangs.cluster.client.delete(POD_CLIQUE_SETS, "web", "default")
        await gangs.gone(POD_GANGS, "web-0")
        await gangs.gone(POD_GROUPS, f"pg-web-0-{uid}")
        await gangs.gone(WORKLOADS_V1ALPHA1, "web-1")


async def test_the_log_says_which_backends_there_are_and_what_they_work_on(gangs: Gangs) -> None:
    await gangs.make()
    with capture_logs() as logs:
        async with gangs.backends():
            await gangs.ready("Synced")
    said = [entry for entry in logs if entry["log_level"] == "info" and "backend" in entry["event"].lower()]
    assert [(entry["event"], entry.get("backend")) for entry in said[:6]] == [
        ("Setting up backend controllers", None),
        ("Registered backend controller", "kai"),
        ("Registered backend controller", "default"),
        ("Registered backend controller", "koordinator"),
        ("Registered backend controller", "volcano"),
        ("Backend controllers registered successfully", None),
    ]
    processed = [entry for entry in said if entry["event"] == "Processing PodGang with backend"]
    assert {(entry["backend"], entry["podgang"]) for entry in processed} == {("kai", "default/web-0")}
