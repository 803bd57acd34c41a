"""The ConfigMaps and Secrets that a pod is made of, by name; and what is in one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from shoal.api.core.pod_details import ContainerDetails, PodDetails, VolumeDetails

CONFIG_MAP, SECRET = "configmap", "secret"
"""The kinds, as a kubelet names them in its sentences."""


class Reference(NamedTuple):
    """A ConfigMap or Secret."""

    kind: str
    namespace: str
    name: str

    @property
    def absence(self) -> str:
        """What is said where there is none."""
        return f'{self.kind} "{self.name}" not found'


@dataclass(frozen=True, slots=True)
class Content:
    """What a ConfigMap or Secret holds."""

    data: Mapping[str, bytes] = field(default_factory=dict)
    binary: Mapping[str, bytes] = field(default_factory=dict)
    """Of a ConfigMap: what can be a file, but never a variable."""

    def file(self, key: str) -> bytes | None:
        """The value of a key for a file."""
        return self.data.get(key, self.binary.get(key))


def all_containers(pod: PodDetails) -> Iterator[ContainerDetails]:
    """The containers of a pod, of every kind."""
    yield from pod.spec.init_containers
    yield from pod.spec.containers
    yield from pod.spec.ephemeral_containers


def references_of(pod: PodDetails) -> frozenset[Reference]:
    """All that a pod's containers and volumes name."""
    namespace = pod.metadata.namespace
    found = set(references_of_volumes(namespace, pod.spec.volumes))
    for container in all_containers(pod):
        found.update(references_of_variables(namespace, container))
    return frozenset(found)


def references_of_variables(namespace: str, container: ContainerDetails) -> Iterator[Reference]:
    """Those that a container's variables come from."""
    for source in container.env_from:
        if source.config_map_ref is not None:
            yield Reference(CONFIG_MAP, namespace, source.config_map_ref.name)
        elif source.secret_ref is not None:
            yield Reference(SECRET, namespace, source.secret_ref.name)
    for variable in container.env:
        # A value of its own goes before where it may come from.
        if variable.value or variable.value_from is None:
            continue
        if variable.value_from.config_map_key_ref is not None:
            yield Reference(CONFIG_MAP, namespace, variable.value_from.config_map_key_ref.name)
        elif variable.value_from.secret_key_ref is not None:
            yield Reference(SECRET, namespace, variable.value_from.secret_key_ref.name)


def references_of_volumes(namespace: str, volumes: Iterable[VolumeDetails]) -> Iterator[Reference]:
    """Those that volumes hold."""
    for volume in volumes:
        if volume.config_map is not None:
            yield Reference(CONFIG_MAP, namespace, volume.config_map.name)
        if volume.secret is not None:
            yield Reference(SECRET, namespace, volume.secret.secret_name)
        for part in volume.projected.sources if volume.projected is not None else ():
            if part.config_map is not None:
                yield Reference(CONFIG_MAP, namespace, part.config_map.name)
            if part.secret is not None:
                yield Reference(SECRET, namespace, part.secret.name)
