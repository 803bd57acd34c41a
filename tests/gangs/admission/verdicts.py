"""A sound set, changes to it in few words, and what admission says of the outcome."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from shoal.api.grove import ClusterTopologyBinding
from shoal.api.meta import HasMetadata
from shoal.gangs.admission import Lookups, set_findings
from shoal.gangs.backends import Backends
from shoal.gangs.settings import GangSettings
from shoal.kube.admission import FieldProblem, Finding, Warn
from tests.gangs.builders import a_clique_template, a_scaling_group_template, a_set, typed

GONE = object()
"""Takes a field away."""

CLIQUE = "spec.template.cliques"
GROUP = "spec.template.podCliqueScalingGroups"


def sound(**template: Any) -> dict[str, Any]:
    """Cliques of ``web``: 0 ``front`` (2 pods) alone, 1 ``back`` (3 pods, 1 enough) twice, in group 0 ``pair``."""
    return a_set(
        "web",
        a_clique_template("front", 2),
        a_clique_template("back", 3, min_available=1),
        groups=[a_scaling_group_template("pair", ["back"], 2)],
        **template,
    )


def changed(body: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The same with other values at these paths, as in ``spec.template.cliques[0].name``; ``["a.b/c"]`` is a key."""
    result: dict[str, Any] = copy.deepcopy(dict(body))
    for path, value in fields.items():
        *way, last = _steps(path)
        place: Any = result
        for step in way:
            if isinstance(place, dict):
                place.setdefault(step, {})
            place = place[step]
        if value is GONE:
            del place[last]
        else:
            place[last] = value
    return result


def _steps(path: str) -> list[int | str]:
    found = re.findall(r'\["([^"]+)"\]|\[(\d+)\]|([^.\[\]"]+)', path)
    return [int(index) if index else key or name for key, index, name in found]


def findings(
    body: Mapping[str, Any],
    *,
    old: Mapping[str, Any] | None = None,
    binding: ClusterTopologyBinding | None = None,
    settings: GangSettings = GangSettings(),
    backends: Backends | None = None,
) -> list[Finding]:
    """What admission finds: of a new set, or of one that replaces another."""
    return set_findings(
        typed(body),
        None if old is None else typed(old),
        is_new=old is None,
        binding=binding,
        settings=settings,
        backends=backends or Backends(()),
    )


def problems(body: Mapping[str, Any], **more: Any) -> list[str]:
    """The problems, as users read them."""
    return said(findings(body, **more))


def said(found: Iterable[Finding]) -> list[str]:
    return [str(one) for one in found if isinstance(one, FieldProblem)]


def warnings(body: Mapping[str, Any], **more: Any) -> list[str]:
    """The warnings, as users read them."""
    return [one.message for one in findings(body, **more) if isinstance(one, Warn)]


def a_binding(*domains: str, name: str = "racks") -> ClusterTopologyBinding:
    """A topology with these levels, widest first."""
    levels = [{"domain": domain, "key": f"example.com/{domain}"} for domain in domains]
    return msgspec.convert({"metadata": {"name": name}, "spec": {"levels": levels}}, ClusterTopologyBinding)


def a_template(name: str) -> dict[str, Any]:
    """A template of claims that asks for a GPU."""
    asked = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
    return {"name": name, "templateSpec": {"spec": {"devices": {"requests": [asked]}}}}


def shared(name: str, **more: Any) -> dict[str, Any]:
    """A claim of that template, shared by all."""
    return {"name": name, "scope": "AllReplicas", **more}


def nothing_there() -> Lookups:
    """A cluster with neither topologies nor sets."""

    async def topology(name: str) -> ClusterTopologyBinding | None:
        return None

    async def pod_clique_set(namespace: str, name: str) -> HasMetadata | None:
        return None

    return Lookups(topology=topology, pod_clique_set=pod_clique_set)
