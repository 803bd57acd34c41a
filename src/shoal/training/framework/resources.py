"""What pods ask for, counted exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shoal.api.meta import ZERO_QUANTITY, Quantity, QuantityString, parse_quantity
from shoal.api.trainer import TrainJob, names
from shoal.training.framework.upserts import Json

Amounts = dict[str, Quantity]

_OF_WHOLE_PODS = ("cpu", "memory")


def amounts(resources: Mapping[str, QuantityString] | None) -> Amounts:
    """Amounts that can be counted with."""
    return {name: parse_quantity(value) for name, value in (resources or {}).items()}


def canonical(resources: Mapping[str, QuantityString]) -> dict[str, str]:
    """Amounts as the server writes them, whatever form they came in: clients send 2.0 where they mean 2."""
    return {name: str(parse_quantity(value)) for name, value in resources.items()}


def written(total: Mapping[str, Quantity]) -> dict[str, str]:
    """Amounts as they are written, by name."""
    return {name: str(total[name]) for name in sorted(total)}


def sum_of(parts: Iterable[Mapping[str, Quantity]]) -> Amounts:
    """Amounts added up."""
    total: Amounts = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total[name] + value if name in total else value
    return total


def times(count: int, part: Mapping[str, Quantity]) -> Amounts:
    """So many times an amount."""
    return {name: value * count for name, value in part.items()}


def pod_requests(pod_spec: Json) -> Amounts:
    """What a pod asks of its node, by its requests alone.

    The sum of its containers, or what its initialisation needs where that is more: init containers run one after the
    other, and those that go on running count with all that comes after them. What is asked for the pod as a whole takes
    the place of the sum, and overhead comes on top.
    """
    total = sum_of(_requests(one) for one in pod_spec.get("containers") or ())
    sidecars: Amounts = {}
    most: Amounts = {}
    for container in pod_spec.get("initContainers") or ():
        own = _requests(container)
        if container.get("restartPolicy") == "Always":
            total, sidecars = sum_of((total, own)), sum_of((sidecars, own))
            most = _larger(most, sidecars)
        else:
            most = _larger(most, sum_of((own, sidecars)))
    total = _larger(total, most)
    for name, value in amounts((pod_spec.get("resources") or {}).get("requests")).items():
        if name in _OF_WHOLE_PODS or name.startswith("hugepages-"):
            total[name] = value
    return sum_of((total, amounts(pod_spec.get("overhead"))))


def effective_resources(train_job: TrainJob, spec: Json) -> Json:
    """What each node asks for: all that the TrainJob says of it where it says anything, else the runtime's words."""
    trainer = train_job.spec.trainer
    if trainer is not None and trainer.resources_per_node is not None:
        chosen = trainer.resources_per_node
        return {"requests": chosen.requests, "limits": chosen.limits}
    for replicated_job in spec.get("replicatedJobs") or ():
        template = replicated_job.get("template") or {}
        if replicated_job.get("name") == names.NODE or ancestor_of(template) == names.TRAINER_STEP:
            containers = pod_spec_of(template).get("containers") or ()
            found = next((one for one in containers if one.get("name") == names.NODE), None)
            return (found or {}).get("resources") or {}
    return {}


def gpus(resources: Json) -> int:
    """How many GPUs are asked for: of the first resource whose name has it in it, by name, in requests or in limits."""
    return _gpus(resources.get("requests")) or _gpus(resources.get("limits"))


def cpus(resources: Json) -> int:
    """How many processors are asked for, in requests or else in limits, rounded up to whole ones."""
    for kind in ("requests", "limits"):
        found = amounts(resources.get(kind)).get("cpu", ZERO_QUANTITY)
        if not found.is_zero:
            return found.value()
    return 0


def ancestor_of(job_template: Json) -> str:
    """What a replicated job does for a TrainJob, by the label of its template."""
    labels = (job_template.get("metadata") or {}).get("labels") or {}
    return str(labels.get(names.ANCESTOR_LABEL, ""))


def pod_spec_of(job_template: Json) -> dict[str, Any]:
    """The pods of a template of Jobs."""
    job = job_template.get("spec") or {}
    return (job.get("template") or {}).get("spec") or {}


def _gpus(resources: Mapping[str, QuantityString] | None) -> int:
    named = sorted(name for name in resources or {} if "gpu" in name.lower())
    return parse_quantity((resources or {})[named[0]]).value() if named else 0


def _requests(container: Json) -> Amounts:
    return amounts((container.get("resources") or {}).get("requests"))


def _larger(one: Amounts, other: Amounts) -> Amounts:
    result = dict(one)
    for name, value in other.items():
        if name not in result or value > result[name]:
            result[name] = value
    return result
