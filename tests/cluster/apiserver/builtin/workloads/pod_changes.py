"""Short ways to say how the good pod is changed."""

from __future__ import annotations

from typing import Any

from tests.cluster.apiserver.builtin.workloads.objects import GONE, SELECTOR

C = "spec/containers/0/"
GPU = {"limits": {"example.com/gpu": "2"}}
VOLUME = {"name": "v", "emptyDir": {}}
MOUNT = {"name": "v", "mountPath": "/v"}


def volume(source: dict[str, Any], name: str = "v") -> dict[str, Any]:
    return {"spec/volumes": [{"name": name, **source}]}


def env(*variables: dict[str, Any]) -> dict[str, Any]:
    return {C + "env": list(variables)}


def probe(kind: str, made: dict[str, Any]) -> dict[str, Any]:
    return {C + kind: made}


def ports(*made: dict[str, Any]) -> dict[str, Any]:
    return {C + "ports": list(made)}


def amounts(limits: dict[str, Any] | None = None, requests: dict[str, Any] | None = None) -> dict[str, Any]:
    made = {"limits": limits, "requests": requests}
    return {C + "resources": {side: each for side, each in made.items() if each is not None}}


def affinity(**made: Any) -> dict[str, Any]:
    return {"spec/affinity": made}


def nodes(*expressions: dict[str, Any], fields: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    term: dict[str, Any] = {"matchExpressions": list(expressions)}
    if fields:
        term["matchFields"] = list(fields)
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return affinity(nodeAffinity=required)


def pods(**term: Any) -> dict[str, Any]:
    made = {"topologyKey": "zone", "labelSelector": SELECTOR, **term}
    made = {key: value for key, value in made.items() if value is not GONE}
    return affinity(podAffinity={"requiredDuringSchedulingIgnoredDuringExecution": [made]})


def spread(**constraint: Any) -> dict[str, Any]:
    made = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": SELECTOR,
        **constraint,
    }
    return {"spec/topologySpreadConstraints": [{key: value for key, value in made.items() if value is not GONE}]}
