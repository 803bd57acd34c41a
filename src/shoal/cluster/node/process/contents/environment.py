"""A container's variables, by a kubelet's rules.

Whole ConfigMaps and Secrets come first, in their order; then the variables that are written one by one, which may
refer to all before them; services come last, and give way to what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from shoal.api.core.pod_details import (
    ContainerDetails,
    EnvFromSource,
    EnvVarSource,
    FileKeySelector,
    KeySelector,
    PodDetails,
)
from shoal.cluster.node.process.contents.downward import resource_of, running_field_of
from shoal.cluster.node.process.contents.expansion import expand
from shoal.cluster.node.process.contents.facts import NodeFacts
from shoal.cluster.node.process.contents.problems import CONFIG_ERROR, ConfigProblem, Missing
from shoal.cluster.node.process.contents.references import CONFIG_MAP, SECRET, Content, Reference


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What the variables of one container are taken from."""

    pod: PodDetails
    container: ContainerDetails
    address: str
    facts: NodeFacts
    services: Mapping[str, str]
    contents: Mapping[Reference, Content]
    """The ConfigMaps and Secrets that there are."""
    file_variable: Callable[[FileKeySelector], str]
    """A variable of a file in a volume; empty where the file lacks it, Missing where it cannot be read."""


def variables(around: Surroundings) -> dict[str, str]:
    """The variables of a container; ConfigProblem where one cannot be had."""
    try:
        found = _variables(around)
        for name, value in found.items():
            _check(name, value)
    except Missing as missing:
        raise ConfigProblem(CONFIG_ERROR, str(missing)) from missing
    return found


def command_line(container: ContainerDetails, known: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """A container's own command and arguments, their references replaced."""
    return [expand(part, known) for part in container.command], [expand(part, known) for part in container.args]


def _variables(around: Surroundings) -> dict[str, str]:
    found: dict[str, str] = {}
    for source in around.container.env_from:
        found |= _all_keys(source, around)
    for variable in around.container.env:
        value: str | None = variable.value
        if variable.value:
            value = expand(variable.value, {**around.services, **found})
        elif variable.value_from is not None:
            value = _sourced(variable.value_from, around)
        if value is not None:
            found[variable.name] = value
    return found | {name: value for name, value in around.services.items() if name not in found}


def _all_keys(source: EnvFromSource, around: Surroundings) -> dict[str, str]:
    if source.config_map_ref is not None:
        kind, reference = CONFIG_MAP, source.config_map_ref
    elif source.secret_ref is not None:
        kind, reference = SECRET, source.secret_ref
    else:
        return {}
    named = Reference(kind, around.pod.metadata.namespace, reference.name)
    content = around.contents.get(named)
    if content is None:
        if reference.optional:
            return {}
        raise Missing(named.absence)
    return {source.prefix + key: _text(source.prefix + key, content.data[key]) for key in sorted(content.data)}


def _sourced(source: EnvVarSource, around: Surroundings) -> str | None:
    """The value of a variable that comes from elsewhere; None where it may be, and is, missing."""
    if source.field_ref is not None:
        path = source.field_ref.field_path
        return running_field_of(around.pod, path, address=around.address, node_address=around.facts.address)
    if source.resource_field_ref is not None:
        return resource_of(around.pod, source.resource_field_ref, around.facts.allocatable, around.container)
    if source.config_map_key_ref is not None:
        return _key(CONFIG_MAP, "ConfigMap", source.config_map_key_ref, around)
    if source.secret_key_ref is not None:
        return _key(SECRET, "Secret", source.secret_key_ref, around)
    if source.file_key_ref is not None:
        chosen = source.file_key_ref
        value = around.file_variable(chosen)
        if not value:
            if chosen.optional:
                return None
            raise Missing(f'environment variable key "{chosen.key}" not found in file "{chosen.path}"')
        return value
    return ""


def _key(kind: str, title: str, chosen: KeySelector, around: Surroundings) -> str | None:
    named = Reference(kind, around.pod.metadata.namespace, chosen.name)
    content = around.contents.get(named)
    if content is None:
        if chosen.optional:
            return None
        raise Missing(named.absence)
    value = content.data.get(chosen.key)
    if value is None:
        if chosen.optional:
            return None
        raise Missing(f"couldn't find key {chosen.key} in {title} {named.namespace}/{named.name}")
    return _text(chosen.key, value)


def _text(name: str, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Missing(f"the value of {name} is not UTF-8: mount it as a file") from None


def _check(name: str, value: str) -> None:
    if "\0" in value or "\0" in name:
        raise Missing(f"the variable {name!r} holds a NUL byte, which no environment can")
    if not name or "=" in name:
        raise Missing(f"no variable can have the name {name!r}")
