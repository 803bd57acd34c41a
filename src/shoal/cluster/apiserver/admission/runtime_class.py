"""RuntimeClass: what a runtime costs beside its pods, and where it is to be found."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.admission.attributes import Attributes
from shoal.cluster.apiserver.admission.pod_resources import amounts
from shoal.cluster.apiserver.admission.refusing import refuse
from shoal.cluster.apiserver.admission.scope import scope
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.reader import Reader

_DIFFERS = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_WITHOUT = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"

Toleration = dict[str, Any]


class RuntimeClasses:
    """Carries a class's overhead, node selector and tolerations into its pods."""

    mutates = scope("pods")
    validates = scope("pods")

    def __init__(self, state: Reader) -> None:
        self._state = state

    async def mutate(self, request: Attributes) -> None:
        """Completes a new pod of a class."""
        spec = (request.object or {}).setdefault("spec", {})
        chosen = self._chosen(request, spec)
        if chosen is None:
            return
        fixed = (chosen.get("overhead") or {}).get("podFixed")
        if chosen.get("overhead") is not None:
            if spec.get("overhead") and amounts(spec["overhead"]) != amounts(fixed):
                raise refuse(request, _DIFFERS)
            if fixed:
                spec["overhead"] = dict(fixed)
        if (scheduling := chosen.get("scheduling")) is not None:
            _select_nodes(request, spec, scheduling.get("nodeSelector") or {})
            merged = merged_tolerations(spec.get("tolerations") or [], scheduling.get("tolerations") or [])
            if merged:
                spec["tolerations"] = merged

    async def validate(self, request: Attributes) -> None:
        """Refuses an overhead that is not the class's."""
        spec = (request.object or {}).get("spec") or {}
        chosen = self._chosen(request, spec)
        if chosen is not None and chosen.get("overhead") is not None:
            if amounts(chosen["overhead"].get("podFixed")) != amounts(spec.get("overhead")):
                raise refuse(request, _DIFFERS)
        elif spec.get("overhead") is not None:
            raise refuse(request, _WITHOUT)

    def _chosen(self, request: Attributes, spec: dict[str, Any]) -> Object | None:
        name = spec.get("runtimeClassName")
        if name is None:
            return None
        found = self._state.get("runtimeclasses.node.k8s.io", "", name)
        if found is None:
            raise refuse(request, f'pod rejected: RuntimeClass "{name}" not found')
        return found


def merged_tolerations(first: list[Toleration], second: list[Toleration]) -> list[Toleration]:
    """All tolerations of both but those that another one includes."""
    everything = first + second
    merged: list[Toleration] = []
    for place, each in enumerate(everything):
        later = everything[place + 1 :]
        if any(_includes(other, each) for other in merged):
            continue
        if any(other != each and _includes(other, each) for other in later):
            continue
        merged.append(dict(each))
    return merged


def _select_nodes(request: Attributes, spec: dict[str, Any], wanted: dict[str, str]) -> None:
    selector = dict(spec.get("nodeSelector") or {})
    for key, value in wanted.items():
        if selector.get(key, value) != value:
            told = f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
            raise refuse(request, f"{told}pod.spec.nodeSelector[{key}] = {selector[key]}")
        selector[key] = value
    if selector:
        spec["nodeSelector"] = selector


def _includes(wide: Toleration, narrow: Toleration) -> bool:
    if wide == narrow:
        return True
    operator = wide.get("operator") or ""
    key, effect = wide.get("key") or "", wide.get("effect") or ""
    if (narrow.get("key") or "") != key and (key or operator != "Exists"):
        return False
    if effect and (narrow.get("effect") or "") != effect:
        return False
    seconds, narrower = wide.get("tolerationSeconds"), narrow.get("tolerationSeconds")
    if effect == "NoExecute" and seconds is not None and (narrower is None or narrower > seconds):
        return False
    if operator in ("", "Equal"):
        return narrow.get("operator") == "Equal" and (narrow.get("value") or "") == (wide.get("value") or "")
    return operator == "Exists"
