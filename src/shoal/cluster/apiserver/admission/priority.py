"""Priority: a pod's priority is its class's, never a number that its author chose."""

from __future__ import annotations

from shoal.cluster.apiserver.admission.attributes import Attributes
from shoal.cluster.apiserver.admission.refusing import refuse
from shoal.cluster.apiserver.admission.scope import CREATE, WRITE, scope
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.reader import Reader
from shoal.kube.admission.wire import Operation

_CLASSES = "priorityclasses.scheduling.k8s.io"
_LOWER = "PreemptLowerPriority"

SYSTEM_CLASSES: dict[str, int] = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The classes that are there before anyone makes them."""


class Priority:
    """Resolves the classes of pods, and sees that there is one default."""

    mutates = scope("pods", operations=WRITE)
    validates = scope(_CLASSES, operations=WRITE | {Operation.DELETE})

    def __init__(self, state: Reader) -> None:
        self._state = state

    async def mutate(self, request: Attributes) -> None:
        """Sets a pod's priority from its class."""
        spec = (request.object or {}).setdefault("spec", {})
        if request.operation not in CREATE:
            before = (request.old or {}).get("spec") or {}
            for field in ("priority", "preemptionPolicy"):
                if spec.get(field) is None and before.get(field) is not None:
                    spec[field] = before[field]
            return
        name, value, policy = self._resolved(request, spec.get("priorityClassName") or "")
        if name:
            spec["priorityClassName"] = name
        computed = "priority admission controller computed {} from the given PriorityClass name"
        if (given := spec.get("priority")) is not None and given != value:
            told = f"the integer value of priority ({given}) must not be provided in pod spec; "
            raise refuse(request, told + computed.format(value))
        spec["priority"] = value
        if policy is None:
            return
        if (stated := spec.get("preemptionPolicy")) is not None and stated != policy:
            told = f"the string value of PreemptionPolicy ({stated}) must not be provided in pod spec; "
            raise refuse(request, told + computed.format(policy))
        spec["preemptionPolicy"] = policy

    async def validate(self, request: Attributes) -> None:
        """Refuses a second default, and that a system class is deleted."""
        if request.operation is Operation.DELETE:
            if request.name in SYSTEM_CLASSES:
                raise refuse(request, "this is a system priority class and cannot be deleted")
            return
        named = request.object or {}
        if not named.get("globalDefault") or (present := self._default()) is None:
            return
        name = present["metadata"]["name"]
        if request.operation in CREATE or name != named["metadata"].get("name"):
            raise refuse(request, f"PriorityClass {name} is already marked as default. Only one default can exist")

    def _resolved(self, request: Attributes, name: str) -> tuple[str, int, str | None]:
        found = self._state.get(_CLASSES, "", name) if name else self._default()
        if found is not None:
            return found["metadata"]["name"], found.get("value", 0), found.get("preemptionPolicy")
        if not name:
            return "", 0, _LOWER
        if name in SYSTEM_CLASSES:
            return name, SYSTEM_CLASSES[name], _LOWER
        raise refuse(request, f"no PriorityClass with name {name} was found")

    def _default(self) -> Object | None:
        """The default class; of several that came about at once, the lowest."""
        defaults = [each for each in self._state.list(_CLASSES) if each.get("globalDefault")]
        return min(defaults, key=lambda each: each.get("value", 0), default=None)
