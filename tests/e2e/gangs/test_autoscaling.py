"""Autoscaling: whoever scales a clique or a scaling group, its pods follow, and its set never takes it back."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.autoscaling import HORIZONTAL_POD_AUTOSCALERS
from shoal.api.grove import POD_CLIQUES, SCALING_GROUPS, names
from tests.gangs.builders import a_clique_template, a_scaling_group_template, a_set
from tests.support.gangs.stage import Stage, of_cliques, of_replica, one_cpu, uids


async def test_sizes_by_the_scale_subresource_outlive_every_other_change_of_the_set(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=20)
    cliques = [a_clique_template("worker", 2, min_available=1, pod_spec=one_cpu()), member()]
    await stage.make(a_set("web", *cliques, groups=[a_scaling_group_template("g", ["member"])]))
    before = await stage.until_ready("web", 3)
    await stage.scale(POD_CLIQUES, "web-0-worker", 4)
    await stage.scale(SCALING_GROUPS, "web-0-g", 3)
    grown = await stage.until_ready("web", 7)
    assert uids(before) < uids(grown)

    def change(spec: dict[str, Any]) -> None:
        """Nothing of this is about pods; and the template's own sizes are for cliques that are yet to be made."""
        spec["replicas"] = 2
        spec["template"]["terminationDelay"] = "1h"
        spec["template"]["cliques"][0]["spec"]["replicas"] = 3

    await stage.change("web", change)
    after = await stage.until_ready("web", 11)
    assert uids(of_replica(after, 0)) == uids(grown)
    assert len(of_cliques(after, "web-1-worker")) == 3
    assert (await stage.clique("web-0-worker")).spec.replicas == 4
    assert (await stage.group("web-0-g")).spec.replicas == 3


async def test_an_autoscaler_is_kept_for_each_replica(stage: Stage) -> None:
    config = {"minReplicas": 2, "maxReplicas": 5, "metrics": [by_memory()]}
    worker = a_clique_template("worker", 2, min_available=1, pod_spec=one_cpu())
    worker["spec"]["autoScalingConfig"] = config
    group = a_scaling_group_template("g", ["member"], scaleConfig={"minReplicas": 1, "maxReplicas": 3})
    await stage.make(a_set("web", worker, member(), groups=[group], replicas=2))
    autoscalers = ["web-0-g", "web-0-worker", "web-1-g", "web-1-worker"]
    await stage.until_names(HORIZONTAL_POD_AUTOSCALERS, autoscalers)
    await stage.change("web", lambda spec: spec.update(replicas=1))
    await stage.until_names(HORIZONTAL_POD_AUTOSCALERS, autoscalers[:2])


@pytest.mark.slow
async def test_a_real_autoscaler_sizes_a_clique_and_a_scaling_group_by_what_their_pods_use(stage: Stage) -> None:
    await stage.add_nodes(1, cpu=40)
    worker = a_clique_template("worker", 1, pod_spec=with_memory("100Mi"), annotations=using("250Mi"))
    worker["spec"]["autoScalingConfig"] = {"minReplicas": 1, "maxReplicas": 3, "metrics": [by_memory()]}
    busy = a_clique_template("member", 1, pod_spec=with_memory("100Mi"), annotations=using("300Mi"))
    config = {"minReplicas": 1, "maxReplicas": 2, "metrics": [by_memory()]}
    group = a_scaling_group_template("g", ["member"], scaleConfig=config)
    stage.history.asked += [(name, size) for name in ("web-0-worker", "web-0-g") for size in (2, 3)]
    await stage.make(a_set("web", worker, busy, groups=[group]))
    pods = await stage.until_ready("web", 5, within=60)
    assert len(of_cliques(pods, "web-0-worker")) == 3
    assert {pod.metadata.labels[names.GANG_LABEL] for pod in pods} == {"web-0", "web-0-g-0"}
    assert (await stage.set("web")).spec.template.cliques[0].spec.replicas == 1


def member() -> dict[str, Any]:
    return a_clique_template("member", 1, pod_spec=one_cpu())


def with_memory(request: str) -> dict[str, Any]:
    requests = {"cpu": "1", "memory": request}
    return {"containers": [{"name": "main", "image": "none", "resources": {"requests": requests}}]}


def using(memory: str) -> dict[str, str]:
    return {"shoal.dev/sim-memory": memory}


def by_memory() -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": 100}
    return {"type": "Resource", "resource": {"name": "memory", "target": target}}
