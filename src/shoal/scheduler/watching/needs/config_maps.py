"""The ConfigMaps that a pod cannot start without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from shoal.api import kai_names as names
from shoal.api.core import Pod
from shoal.api.core.pods import ConfigMapReference

OF_EVERY_NAMESPACE: Final = "kube-root-ca.crt"
"""The cluster itself puts it into every namespace, and every pod mounts it: it is not worth waiting for."""


def required_config_maps(pod: Pod) -> tuple[str, ...]:
    """Their names, sorted: in volumes that are mounted, and in variables. Those that sharing a GPU makes are none."""
    made_here = pod.metadata.annotations.get(names.SHARED_GPU_CONFIG_MAP)
    required = {
        reference.name
        for reference in _references(pod)
        if not reference.optional
        and reference.name != OF_EVERY_NAMESPACE
        and not (made_here is not None and reference.name.startswith(made_here))
    }
    return tuple(sorted(required))


def config_map_problem(missing: tuple[str, ...]) -> str:
    """What is to be said of ConfigMaps that are not there."""
    if not missing:
        return ""
    return (
        f"ConfigMap {missing[0]} does not exist"
        if len(missing) == 1
        else f"ConfigMaps {', '.join(missing)} do not exist"
    )


def _references(pod: Pod) -> Iterator[ConfigMapReference]:
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    mounted = {mount.name for container in containers for mount in container.volume_mounts}
    for volume in pod.spec.volumes:
        if volume.name not in mounted:
            continue
        if volume.config_map is not None:
            yield volume.config_map
        if volume.projected is not None:
            yield from (part.config_map for part in volume.projected.sources if part.config_map is not None)
    for container in containers:
        for variable in container.env:
            if variable.value_from is not None and variable.value_from.config_map_key_ref is not None:
                yield variable.value_from.config_map_key_ref
        for source in container.env_from:
            if source.config_map_ref is not None:
                yield source.config_map_ref
