"""Where a container finds its volumes, or parts of them.

A part of a volume (``subPath``) is looked for in what other containers may have written: links are followed, but never
out of the volume.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from shoal.api.core.pod_details import ContainerDetails, VolumeMount
from shoal.cluster.node.process.contents.expansion import expand_with
from shoal.cluster.node.process.contents.problems import CONFIG_ERROR, ConfigProblem, Missing
from shoal.cluster.node.process.contents.volumes import Volume
from shoal.cluster.node.process.runtime.protocol import Bind


def volume_binds(
    container: ContainerDetails, volumes: Mapping[str, Volume], variables: Mapping[str, str]
) -> list[Bind]:
    """What is bound for a container's mounts; ConfigProblem where one cannot be."""
    try:
        return [_bind(container, mount, volumes, variables) for mount in container.volume_mounts]
    except Missing as missing:
        raise ConfigProblem(CONFIG_ERROR, str(missing)) from missing


def in_order(binds: list[Bind]) -> list[Bind]:
    """Binds in an order in which none covers one that was made before it: the shallowest first."""
    return sorted(binds, key=lambda bind: bind.target.rstrip("/").count("/"))


def inside(folder: Path, relative: str) -> Path:
    """A path in a folder with all links followed; Missing where it leads out of the folder."""
    root = os.path.realpath(folder)
    found = Path(os.path.realpath(os.path.join(root, relative)))  # noqa: PTH118 - as it is written
    if not found.is_relative_to(root):
        raise Missing(f"{relative} leads out of its volume")
    return found


def _bind(
    container: ContainerDetails, mount: VolumeMount, volumes: Mapping[str, Volume], variables: Mapping[str, str]
) -> Bind:
    volume = volumes.get(mount.name)
    if volume is None:
        raise Missing(f'cannot find volume "{mount.name}" to mount into container "{container.name}"')
    source = volume.source
    part = _sub_path(mount, variables)
    if part:
        try:
            source = _part(volume.source, part)
        except (Missing, OSError) as problem:
            raise Missing(
                f'failed to prepare subPath for volumeMount "{mount.name}" of container "{container.name}"'
            ) from problem
    target = os.path.normpath("/" + mount.mount_path.lstrip("/"))
    return Bind(
        source=str(source),
        target=target,
        is_read_only=mount.read_only or volume.is_read_only,
        follows_links=not part,  # all have been followed, and another container may just be making one
        is_of_machine=volume.is_of_machine,
        has_devices=container.security_context.privileged,
    )


def _sub_path(mount: VolumeMount, variables: Mapping[str, str]) -> str:
    part = mount.sub_path
    if mount.sub_path_expr:
        missing: set[str] = set()

        def value(name: str) -> str:
            found = variables.get(name, "")
            if not found:
                missing.add(name)
            return found

        part = expand_with(mount.sub_path_expr, value)
        if missing:
            raise Missing(f"missing value for {', '.join(sorted(missing))}")
    if part.startswith("/"):
        raise Missing(f"error SubPath `{part}` must not be an absolute path")
    if ".." in part.split("/"):
        raise Missing(f"unable to provision SubPath `{part}`: must not contain '..'")
    return part


def _part(volume: Path, part: str) -> Path:
    """A part of a volume, made as a folder where it is not there."""
    found = inside(volume, part)
    if not found.exists():
        root = os.path.realpath(volume)
        _make_folders(root, os.path.relpath(found, root), mode=stat.S_IMODE(volume.stat().st_mode))
    return found


def _make_folders(root: str, relative: str, *, mode: int) -> None:
    """Makes folders, each in the one before it, following no link that somebody may just be making there."""
    place = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in relative.split("/"):
            is_new = True
            try:
                os.mkdir(name, dir_fd=place)
            except FileExistsError:
                is_new = False
            below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
            os.close(place)
            place = below
            if is_new:
                os.fchmod(place, mode)
    finally:
        os.close(place)
