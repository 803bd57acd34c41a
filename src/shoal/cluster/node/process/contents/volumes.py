"""The volumes of pods as files and folders of this machine, made before containers start and kept up to date."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from shoal.api.core.pod_details import EmptyDirSource, PodDetails, TokenSource, VolumeDetails
from shoal.api.meta import parse_quantity
from shoal.cluster.node.process.contents.claims import claim_name, claimed_volume
from shoal.cluster.node.process.contents.facts import NodeFacts
from shoal.cluster.node.process.contents.files import Ingredients, files_of
from shoal.cluster.node.process.contents.host_paths import host_path, make_folders
from shoal.cluster.node.process.contents.identity import common_user
from shoal.cluster.node.process.contents.images import Images
from shoal.cluster.node.process.contents.memory import MemoryFolders
from shoal.cluster.node.process.contents.ownership import give_to_group
from shoal.cluster.node.process.contents.problems import ConfigProblem, Missing, Unbound, VolumeProblem
from shoal.cluster.node.process.contents.references import all_containers, references_of_volumes
from shoal.cluster.node.process.contents.sources import Sources
from shoal.cluster.node.process.contents.tokens import Tokens
from shoal.cluster.node.process.contents.writer import make_folder, write_files
from shoal.cluster.node.process.layout import Layout
from shoal.kube import ApiError, Client, ConnectionFault

_OPEN = 0o777


@dataclass(frozen=True, kw_only=True)
class Volume:
    """A volume that is there."""

    source: Path
    is_read_only: bool = False
    is_of_machine: bool = False
    """Whether its path was chosen by a user: what is hidden from pods is refused there."""


class Volumes:
    """Makes the volumes of pods."""

    def __init__(
        self,
        client: Client,
        layout: Layout,
        facts: NodeFacts,
        *,
        sources: Sources,
        tokens: Tokens,
        images: Images,
        memory: MemoryFolders,
        hidden: Callable[[], Sequence[str]],
    ) -> None:
        self._client = client
        self._layout = layout
        self._facts = facts
        self._sources = sources
        self._tokens = tokens
        self._images = images
        self._memory = memory
        self._hidden = hidden

    async def set_up(self, pod: PodDetails, made: dict[str, Volume]) -> None:
        """Makes the volumes that containers use and adds them to ``made``; VolumeProblem says what is missing.

        Those that are in ``made`` already are left alone.
        """
        problems: list[str] = []
        used = _used(pod)
        for volume in pod.spec.volumes:
            if volume.name not in used or volume.name in made:
                continue
            try:
                made[volume.name] = await self._made(pod, volume)
            except Unbound as unbound:
                problems.append(
                    f"Unable to attach or mount volumes: unmounted volumes=[{volume.name}], unattached volumes=[], "
                    f"failed to process volumes=[{volume.name}]: {unbound}"
                )
            except (Missing, OSError) as missing:
                problems.append(f'MountVolume.SetUp failed for volume "{volume.name}" : {missing}')
        if problems:
            raise VolumeProblem("; ".join(problems))

    async def refresh(self, pod: PodDetails) -> bool:
        """Brings volumes of configuration up to date; whether any was written. VolumeProblem where one could not be."""
        is_written = False
        problems: list[str] = []
        used = _used(pod)
        for volume in pod.spec.volumes:
            if volume.name in used and _is_configuration(volume):
                try:
                    is_written |= await self._write(pod, volume)
                except (Missing, OSError) as missing:
                    problems.append(f'MountVolume.SetUp failed for volume "{volume.name}" : {missing}')
        if problems:
            raise VolumeProblem("; ".join(problems))
        return is_written

    async def _made(self, pod: PodDetails, volume: VolumeDetails) -> Volume:
        if _is_configuration(volume):
            await self._write(pod, volume)
            return Volume(source=self._folder(pod, volume), is_read_only=True)
        if volume.empty_dir is not None:
            return Volume(source=self._empty(pod, volume, volume.empty_dir))
        if volume.host_path is not None:
            source = host_path(volume.host_path.path, volume.host_path.type, hidden=self._hidden())
            return Volume(source=source, is_of_machine=True)
        if claim_name(pod, volume):
            return await self._claimed(pod, volume)
        if volume.image is not None:
            return self._image(volume.image.reference)
        raise Missing(
            "volumes of this kind cannot be had on this node: use emptyDir, configMap, secret, downwardAPI, projected, "
            "hostPath, image or persistentVolumeClaim"
        )

    async def _write(self, pod: PodDetails, volume: VolumeDetails) -> bool:
        tokens = await self._tokens_for(pod, volume)
        try:
            contents = await self._sources.contents(references_of_volumes(pod.metadata.namespace, [volume]))
        except (ApiError, ConnectionFault) as error:
            raise Missing(error.message if isinstance(error, ApiError) else str(error)) from error

        def token(source: TokenSource) -> str:
            found = tokens[source]
            if isinstance(found, Missing):
                raise found
            return found

        group = self._group(pod)
        files = files_of(
            volume,
            Ingredients(
                pod=pod,
                contents=contents,
                token=token,
                allocatable=self._facts.allocatable,
                owner=common_user(pod) if self._facts.has_all_ids else None,
                has_group=group is not None,
            ),
        )
        assert files is not None
        folder = self._folder(pod, volume)
        is_new = write_files(folder, files, group=group)
        for place in nested_mounts(pod, volume.name):
            make_folders(folder / place)
        return is_new

    async def _tokens_for(self, pod: PodDetails, volume: VolumeDetails) -> dict[TokenSource, str | Missing]:
        found: dict[TokenSource, str | Missing] = {}
        for part in volume.projected.sources if volume.projected is not None else ():
            if part.service_account_token is not None:
                try:
                    found[part.service_account_token] = await self._tokens.token(pod, part.service_account_token)
                except Missing as missing:
                    found[part.service_account_token] = missing
        return found

    def _empty(self, pod: PodDetails, volume: VolumeDetails, source: EmptyDirSource) -> Path:
        folder = self._folder(pod, volume)
        if source.medium == "Memory":
            size = parse_quantity(source.size_limit).value() if source.size_limit is not None else 0
            folder = self._memory.folder(pod.metadata.uid, volume.name, size) or folder
        elif source.medium.startswith("HugePages"):
            raise Missing("huge pages cannot be had on this node")
        elif source.medium:
            raise Missing(f'unknown storage medium "{source.medium}"')
        if not folder.is_dir():
            make_folder(folder, _OPEN)
            group = self._group(pod)
            if group is not None:
                give_to_group(folder, group, is_read_only=False)
        return folder

    async def _claimed(self, pod: PodDetails, volume: VolumeDetails) -> Volume:
        found = await claimed_volume(self._client, pod, volume, provisioned=self._layout.claims, hidden=self._hidden())
        group = self._group(pod)
        if found.is_local and group is not None:
            await asyncio.to_thread(give_to_group, found.folder, group, is_read_only=False)
        claim = volume.persistent_volume_claim
        return Volume(
            source=found.folder,
            is_read_only=claim is not None and claim.read_only,
            is_of_machine=not found.is_provisioned,
        )

    def _image(self, reference: str) -> Volume:
        try:
            image = self._images.image(reference)
        except ConfigProblem as problem:
            raise Missing(problem.message) from problem
        if not image.root:
            raise Missing(
                f'image "{reference}" has no files of its own here: give it a rootfs in {self._layout.images}'
            )
        return Volume(source=Path(image.root), is_read_only=True)

    def _folder(self, pod: PodDetails, volume: VolumeDetails) -> Path:
        return self._layout.volume(pod.metadata.uid, volume.name)

    def _group(self, pod: PodDetails) -> int | None:
        return pod.spec.security_context.fs_group if self._facts.has_all_ids else None


def nested_mounts(pod: PodDetails, name: str) -> list[str]:
    """The places in a volume at which containers mount others: they must be there, since nothing can be made later."""
    places: list[str] = []
    for container in all_containers(pod):
        points = sorted(PurePosixPath("/", mount.mount_path) for mount in container.volume_mounts)
        for own in (PurePosixPath("/", mount.mount_path) for mount in container.volume_mounts if mount.name == name):
            nested: list[PurePosixPath] = []
            for point in points:
                if point != own and point.is_relative_to(own) and not any(map(point.is_relative_to, nested)):
                    nested.append(point)
            places += [str(point.relative_to(own)) for point in nested]
    return [place for place in dict.fromkeys(places) if ".." not in place.split("/")]


def _is_configuration(volume: VolumeDetails) -> bool:
    return any((volume.config_map, volume.secret, volume.downward_api, volume.projected))


def _used(pod: PodDetails) -> set[str]:
    """The volumes that some container uses; what nobody uses is not missed."""
    used: set[str] = set()
    for container in all_containers(pod):
        used.update(mount.name for mount in container.volume_mounts)
        for variable in container.env:
            if variable.value_from is not None and variable.value_from.file_key_ref is not None:
                used.add(variable.value_from.file_key_ref.volume_name)
    return used
