"""Pools of equal simulated nodes, as ``--sim NODESxGPUS[:MODEL]`` asks for them, and the nodes they consist of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from shoal.api.meta import ResourceList, label_value_problems
from shoal.cluster.node.simulated.models import DEFAULT, Model, model_named

POOL = "shoal.dev/sim-pool"
"""Label: the place of the pool among those that were asked for."""

FAKE = "kwok.x-k8s.io/node"
"""Annotation, with the value ``fake``: the node is simulated. kwok's own, so that its manifests work unchanged."""

MOST_NODES, MOST_GPUS = 100_000, 1024
PODS_PER_NODE = "110"
_CPU_NODE = {"cpu": "32", "memory": "128Gi"}
_SHAPE = re.compile(r"([0-9]+)[xX×]([0-9]+)(?::(.+))?")


class InvalidPool(ValueError):
    """A text that describes no pool."""

    def __init__(self, text: str, problem: str) -> None:
        self.text = text
        super().__init__(f"pool {text!r} is not valid: {problem}")


@dataclass(frozen=True, slots=True)
class Pool:
    """So many nodes with so many GPUs each."""

    nodes: int
    gpus: int
    model: str = DEFAULT

    @staticmethod
    def parse(text: str) -> Pool:
        """Reads ``16x8:H100``, or without a model ``16x8``; raises InvalidPool."""
        shape = _SHAPE.fullmatch(text.strip())
        if shape is None:
            raise InvalidPool(text, "write NODESxGPUS or NODESxGPUS:MODEL, such as 16x8:H100")
        nodes, gpus, model = shape.groups()
        for number, most, what in ((nodes, MOST_NODES, "nodes"), (gpus, MOST_GPUS, "GPUs in a node")):
            if len(number) > 9 or int(number) > most:
                raise InvalidPool(text, f"{number} {what} are too many: at most {most} are possible")
        if model is not None and (problems := label_value_problems(model)):
            raise InvalidPool(text, f"the model {model!r} cannot be a label: {problems[0]}")
        return Pool(int(nodes), int(gpus), model or DEFAULT)

    def __str__(self) -> str:
        return f"{self.nodes}x{self.gpus}" + (f":{self.model}" if self.gpus else "")


def node_names(index: int, pool: Pool) -> Iterator[str]:
    """The names of a pool's nodes."""
    return (f"sim-{index}-{number}" for number in range(pool.nodes))


def node_labels(name: str, index: int, pool: Pool) -> dict[str, str]:
    """The labels of one node of a pool."""
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "type": "kwok",
        POOL: str(index),
    }
    if pool.gpus:
        model = model_named(pool.model)
        labels |= {
            "nvidia.com/gpu.product": model.product,
            "nvidia.com/gpu.count": str(pool.gpus),
            "nvidia.com/gpu.memory": str(model.memory_mib),
        }
    return labels


def node_resources(pool: Pool) -> ResourceList:
    """What each node of a pool has."""
    if not pool.gpus:
        return {**_CPU_NODE, "pods": PODS_PER_NODE}
    model: Model = model_named(pool.model)
    return {
        "cpu": str(model.cpus * pool.gpus),
        "memory": f"{model.memory_gib * pool.gpus}Gi",
        model.resource: str(pool.gpus),
        "pods": PODS_PER_NODE,
    }


def is_simulated(annotations: Mapping[str, Any]) -> bool:
    """Whether a node with these annotations is simulated."""
    return annotations.get(FAKE) == "fake"
