"""What the server remarks about volumes: sources of the past, fractions of bytes, files that hide each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from shoal.api.meta import parse_quantity
from shoal.cluster.apiserver.builtin.workloads.resources import is_fractional

_OLD_SOURCES = {
    "photonPersistentDisk": ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    "gitRepo": ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    "scaleIO": ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    "flocker": ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    "storageos": ("storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    "quobyte": ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    "glusterfs": ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    "cephfs": ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    "rbd": ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
}
_File = tuple[str, str]


def volume_warnings(volumes: list[dict[str, Any]], path: str) -> list[str]:
    """All volumes of a pod."""
    found: list[str] = []
    for index, volume in enumerate(volumes):
        for kind in volume.keys() & _OLD_SOURCES.keys():
            shown, words = _OLD_SOURCES[kind]
            found.append(f"{path}[{index}].{shown}: {words}")
        template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if template is not None:
            here = f"{path}[{index}].ephemeral.volumeClaimTemplate.spec"
            found += claim_warnings(template.get("spec") or {}, here)
    for volume in volumes:
        found += _overlaps(volume)
    return found


def claim_warnings(spec: dict[str, Any], path: str) -> list[str]:
    """A claim of storage that asks for a part of a byte."""
    resources = spec.get("resources") or {}
    return [
        f'{path}.resources.{side}[storage]: fractional byte value "{parse_quantity(amount)}" is invalid, '
        "must be an integer"
        for side in ("requests", "limits")
        if (amount := (resources.get(side) or {}).get("storage")) is not None and is_fractional(amount)
    ]


def _overlaps(volume: dict[str, Any]) -> Iterator[str]:
    name = volume.get("name", "")
    for kind, shown, field in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
        if source := volume.get(kind):
            files = [(item.get("path", ""), "") for item in source.get("items") or ()]
            yield from _collisions(name, f'{shown} "{source.get(field, "")}"', files)
    if source := volume.get("downwardAPI"):
        files = [(item.get("path", ""), "") for item in source.get("items") or ()]
        yield from _collisions(name, "DownwardAPI", files)
    if source := volume.get("projected"):
        files = []
        for part in source.get("sources") or ():
            if not part:
                yield f'volume "{name}" (Projected) has no sources provided'
            files += _projected_files(part)
        yield from _collisions(name, "Projected", files)


def _projected_files(part: dict[str, Any]) -> list[_File]:
    for kind, shown in (("configMap", "ConfigMap"), ("secret", "Secret")):
        if source := part.get(kind):
            items = source.get("items") or ()
            return [(item.get("path", ""), f'{shown} "{source.get("name", "")}"') for item in items]
    if source := part.get("downwardAPI"):
        return [(item.get("path", ""), "DownwardAPI") for item in source.get("items") or ()]
    if source := part.get("serviceAccountToken"):
        return [(source.get("path", ""), "ServiceAccountToken")]
    return []


def _collisions(name: str, description: str, files: Iterable[_File]) -> Iterator[str]:
    seen: list[_File] = []
    for path, source in files:
        file = (path.rstrip("/"), source)
        for other in seen:
            if file[0] and other[0] and (_holds(file[0], other[0]) or _holds(other[0], file[0])):
                body = f"{_shown(file)} with {_shown(other)}"
                yield f'volume "{name}" ({description}): overlapping paths: {body}'
        seen.append(file)


def _holds(folder: str, path: str) -> bool:
    return f"{path}/".startswith(f"{folder}/")


def _shown(file: _File) -> str:
    return f'"{file[0]}" ({file[1]})' if file[1] else f'"{file[0]}"'
