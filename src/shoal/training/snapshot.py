"""A runtime as it was when a TrainJob began, kept as YAML in a ConfigMap: what is done later is done by that one.

So a runtime may be changed or deleted while TrainJobs run by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec
import yaml

from shoal.api.meta import Document, is_controlled_by
from shoal.api.trainer import TrainingRuntimeSpec, TrainJob, names
from shoal.training.framework import Unbuildable

_LEFT_OUT: Final = ("managedFields", "selfLink")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads times as the text that they are."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes what is the same twice twice: anchors are hard to read."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def snapshot_text(runtime: Mapping[str, Any], *, api_version: str, kind: str) -> str:
    """A runtime as YAML, less the server's bookkeeping."""
    metadata = {key: value for key, value in runtime["metadata"].items() if key not in _LEFT_OUT}
    whole = {**runtime, "apiVersion": api_version, "kind": kind, "metadata": metadata}
    return _text(msgspec.json.encode(whole, order="sorted"))


def read_snapshot(config_map: Document, train_job: TrainJob) -> TrainingRuntimeSpec:
    """The runtime of a TrainJob, out of its ConfigMap. Raises Unbuildable where that is not its own, or broken."""
    name = f"ConfigMap {config_map.metadata.name}"
    advice = "delete it, and it is made again from the runtime"
    if not is_controlled_by(config_map.metadata, train_job.metadata.uid):
        raise Unbuildable(f"{name} exists and does not belong to TrainJob {train_job.metadata.name}: delete it")
    text = (config_map.content.get("data") or {}).get(names.SNAPSHOT_KEY)
    if text is None:
        raise Unbuildable(f"{name} has no key {names.SNAPSHOT_KEY!r}: {advice}")
    try:
        snapshot = _read(text)
    except ValueError as error:
        raise Unbuildable(f"{name} {error}: {advice}") from error
    reference = train_job.spec.runtime_ref
    wanted = _Identity(reference.api_group, reference.kind, reference.name)
    if snapshot.identity != wanted:
        raise Unbuildable(f"{name} holds {snapshot.identity}, and not {wanted}: {advice}")
    return snapshot.spec


class _Identity(NamedTuple):
    group: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name} of {self.group}"


class _Snapshot(NamedTuple):
    identity: _Identity
    spec: TrainingRuntimeSpec


@lru_cache(maxsize=64)
def _text(runtime: bytes) -> str:
    """Many TrainJobs begin with the same runtime: it is written out once."""
    return str(yaml.dump(msgspec.json.decode(runtime), Dumper=_Dumper, sort_keys=True, default_flow_style=False))


@lru_cache(maxsize=512)
def _read(text: str) -> _Snapshot:
    """Many TrainJobs have the same snapshot: it is read, and held, once. Raises ValueError where it is none."""
    try:
        runtime = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except yaml.YAMLError as error:
        raise ValueError(f"does not hold YAML ({_first_line(error)})") from error
    if not isinstance(runtime, dict):
        raise ValueError("does not hold a runtime")  # noqa: TRY004 - what is wrong is a text, no argument
    metadata = runtime.get("metadata")
    identity = _Identity(
        str(runtime.get("apiVersion", "")).rpartition("/")[0],
        str(runtime.get("kind", "")),
        str(metadata.get("name", "")) if isinstance(metadata, dict) else "",
    )
    try:
        return _Snapshot(identity, msgspec.convert(runtime.get("spec") or {}, TrainingRuntimeSpec))
    except msgspec.ValidationError as error:
        raise ValueError(f"does not hold a runtime ({error})") from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
