"""What the containers of this node's pods find, from the first volume to the last file that is removed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from secrets import token_hex

import structlog

from shoal.api.core import Service
from shoal.api.core.pod_details import ContainerDetails, FileKeySelector, PodDetails
from shoal.api.meta import PartialObject
from shoal.cluster.node.process.contents.env_files import InvalidEnvFile, variable_in
from shoal.cluster.node.process.contents.environment import Surroundings, variables
from shoal.cluster.node.process.contents.etc import kernel_hostname
from shoal.cluster.node.process.contents.etc_files import EtcFiles, Names
from shoal.cluster.node.process.contents.facts import NodeFacts
from shoal.cluster.node.process.contents.gpus import gpu_devices, shared_gpus
from shoal.cluster.node.process.contents.images import Images
from shoal.cluster.node.process.contents.machine_root import Interpreter, MachineRoot
from shoal.cluster.node.process.contents.memory import MemoryFolders
from shoal.cluster.node.process.contents.mounts import inside, volume_binds
from shoal.cluster.node.process.contents.problems import CONFIG_ERROR, ConfigProblem, Missing, VolumeProblem
from shoal.cluster.node.process.contents.references import (
    CONFIG_MAP,
    SECRET,
    Reference,
    all_containers,
    references_of,
    references_of_variables,
)
from shoal.cluster.node.process.contents.removal import remove_tree
from shoal.cluster.node.process.contents.service_links import service_variables
from shoal.cluster.node.process.contents.sources import Sources
from shoal.cluster.node.process.contents.specs import Recipe, container_spec, exec_spec
from shoal.cluster.node.process.contents.storage import StorageUsage, disk_usage
from shoal.cluster.node.process.contents.tokens import Tokens
from shoal.cluster.node.process.contents.volumes import Volume, Volumes
from shoal.cluster.node.process.contents.writer import make_folder
from shoal.cluster.node.process.layout import Layout
from shoal.cluster.node.process.runtime.protocol import ContainerSpec, ExecSpec
from shoal.kube import ApiError, Change, Client, ConnectionFault, Informer

log = structlog.get_logger("shoal.cluster.node.process")

_ETC = Path("/etc")


@dataclass
class _Held:
    """What is known of a pod whose contents are here."""

    references: frozenset[Reference] = frozenset()
    volumes: dict[str, Volume] = field(default_factory=dict)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Contents:
    """Prepares what containers find. Pods are told apart by their uids; calls for different pods may overlap."""

    def __init__(
        self,
        client: Client,
        layout: Layout,
        facts: NodeFacts,
        *,
        services: Informer[Service],
        config_maps: Informer[PartialObject],
        secrets: Informer[PartialObject],
        interpreter: Interpreter | None = None,
        homes: Sequence[Path] | None = None,
        memory: MemoryFolders | None = None,
        gpu_files: Callable[[Sequence[str]], Sequence[str]] = gpu_devices,
        machine_etc: Path = _ETC,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._layout = layout
        self._facts = facts
        self._services = services
        self._sources = Sources(client, config_maps, secrets)
        self._tokens = Tokens(client, clock)
        self._images = Images(layout.images)
        self._memory = memory or MemoryFolders()
        self._gpu_files = gpu_files
        self._etc = EtcFiles(layout, facts, machine_etc)
        self._machine = MachineRoot(
            layout,
            interpreter or Interpreter.ours(),
            homes,
            has_namespaces=facts.has_namespaces,
        )
        self._volumes = Volumes(
            client,
            layout,
            facts,
            sources=self._sources,
            tokens=self._tokens,
            images=self._images,
            memory=self._memory,
            hidden=self._machine.hidden,
        )
        self._held: dict[str, _Held] = {}
        self._users: dict[Reference, set[str]] = {}
        self._listeners: list[Callable[[str], None]] = []
        config_maps.subscribe(partial(self._changed, CONFIG_MAP))
        secrets.subscribe(partial(self._changed, SECRET))

    # For a pod as a whole

    def hostname(self, pod: PodDetails) -> str:
        """The name that the pod's sandbox is given; ConfigProblem where it cannot be."""
        return kernel_hostname(pod, self._etc.hostname(pod))

    async def prepare(self, pod: PodDetails, *, address: str) -> None:
        """Makes the pod's volumes and its files in /etc; VolumeProblem where something is missing. Again is fine."""
        held = self._held.setdefault(pod.metadata.uid, _Held())
        self._note_references(pod, held)
        async with held.turn:
            with _telling_of_disk():
                self._machine.prepare()
                self._etc.write(pod, address)
            await self._volumes.set_up(pod, held.volumes)

    async def refresh(self, pod: PodDetails) -> None:
        """Brings mounted ConfigMaps, Secrets, fields and tokens up to date, and writes nothing that is so already.

        VolumeProblem says what could not be had; the rest is up to date then, and what was there before stays.
        """
        held = self._held.get(pod.metadata.uid)
        if held is None:
            return
        self._note_references(pod, held)
        async with held.turn:
            try:
                await self._volumes.refresh(pod)
            finally:
                with _telling_of_disk():
                    self._etc.write_again(pod)

    def next_refresh(self, pod: PodDetails) -> float | None:
        """In how many seconds a token of the pod is due; None where it has none."""
        return self._tokens.seconds_until_due(pod.metadata.uid)

    def storage_usage(self, pod: PodDetails) -> StorageUsage:
        """What a pod uses of the machine's storage now; it reads all of its folders, so call it in a thread."""
        uid = pod.metadata.uid
        empty = {volume.name: volume.empty_dir for volume in pod.spec.volumes if volume.empty_dir is not None}
        places = {name: volume.source for name, volume in self._volumes_of(pod).items() if name in empty}
        return StorageUsage(
            volumes={name: disk_usage(place) for name, place in places.items()},
            containers={
                container.name: disk_usage(*self._layout.own_folders(uid, container.name))
                for container in all_containers(pod)
            },
            in_memory=frozenset(name for name, source in empty.items() if source.medium == "Memory"),
        )

    async def forget(self, uid: str) -> None:
        """Removes all that is kept of a pod, also of one that an agent before this one left."""
        held = self._held.pop(uid, None)
        for reference in held.references if held is not None else ():
            self._drop_user(reference, uid)
        self._tokens.forget(uid)
        self._etc.forget(uid)
        for folder in (self._memory.of_pod(uid), self._layout.pod(uid)):
            if folder.exists():
                await asyncio.to_thread(remove_tree, folder)

    # For one container

    async def container(
        self,
        pod: PodDetails,
        container: ContainerDetails,
        *,
        attempt: int,
        address: str,
        gpus: Sequence[str] = (),
    ) -> ContainerSpec:
        """What the runtime is told about one run of a container; ConfigProblem where it cannot be run now."""
        image = self._images.image(container.image, pull_policy=container.image_pull_policy)
        try:
            # There already, but for one that only a container uses which was added later.
            await self.prepare(pod, address=address)
        except VolumeProblem as problem:
            raise ConfigProblem(CONFIG_ERROR, problem.message) from problem
        found = await self._variables(pod, container, address)
        gpus = gpus or shared_gpus(pod.metadata.labels, found)
        recipe = Recipe(
            id=token_hex(32),
            pod=pod,
            container=container,
            attempt=attempt,
            image=image,
            hostname=self.hostname(pod),
            variables=found,
            binds=volume_binds(container, self._volumes_of(pod), found),
            gpus=gpus,
            devices=self._gpu_files(gpus),
        )
        spec = container_spec(recipe, self._layout, self._facts, self._machine)
        try:
            await self._make_folders(pod.metadata.uid, spec)
        except OSError as error:
            raise ConfigProblem(CONFIG_ERROR, f"the container's folder cannot be made: {error}") from error
        return spec

    def exec_spec(
        self,
        pod: PodDetails,
        container: ContainerDetails,
        spec: ContainerSpec,
        argv: Sequence[str],
        *,
        has_tty: bool,
    ) -> ExecSpec:
        """What the runtime is told about a further command in a container that runs."""
        del pod, container  # a command finds what its container was started with, whatever they say now
        return exec_spec(spec, argv, has_tty=has_tty)

    # What changes

    def on_change(self, listener: Callable[[str], None]) -> None:
        """Calls ``listener`` with the uid of each prepared pod of which a ConfigMap or Secret has changed."""
        self._listeners.append(listener)

    def publish_names(self, names: Names) -> None:
        """Writes the cluster's names, as a namespace sees them, into the hosts files of pods in the machine's network.

        ``names`` is asked again for pods that come later.
        """
        self._etc.publish(names)

    def _changed(self, kind: str, change: Change[PartialObject]) -> None:
        metadata = change.latest.metadata
        is_gone = change.after is None
        if not is_gone and change.before is not None and change.before.metadata == metadata:
            return  # only read again
        for uid in tuple(self._users.get(Reference(kind, metadata.namespace, metadata.name), ())):
            for listener in self._listeners:
                listener(uid)

    def _note_references(self, pod: PodDetails, held: _Held) -> None:
        wanted = references_of(pod)
        for reference in held.references - wanted:
            self._drop_user(reference, pod.metadata.uid)
        for reference in wanted - held.references:
            self._users.setdefault(reference, set()).add(pod.metadata.uid)
        held.references = wanted

    def _drop_user(self, reference: Reference, uid: str) -> None:
        users = self._users.get(reference, set())
        users.discard(uid)
        if not users:
            self._users.pop(reference, None)

    # Pieces

    async def _variables(self, pod: PodDetails, container: ContainerDetails, address: str) -> dict[str, str]:
        if not self._services.has_synced:
            message = "services have not yet been read at least once, cannot construct envvars"
            raise ConfigProblem(CONFIG_ERROR, message)
        try:
            contents = await self._sources.contents(references_of_variables(pod.metadata.namespace, container))
        except (ApiError, ConnectionFault) as error:
            raise ConfigProblem(CONFIG_ERROR, error.message if isinstance(error, ApiError) else str(error)) from error
        return variables(
            Surroundings(
                pod=pod,
                container=container,
                address=address,
                facts=self._facts,
                services=service_variables(
                    self._services.items(),
                    pod.metadata.namespace,
                    has_links=pod.spec.enable_service_links,
                    api_server=self._facts.api_server if self._facts.network == "host" else None,
                ),
                contents=contents,
                file_variable=partial(self._file_variable, pod),
            )
        )

    def _file_variable(self, pod: PodDetails, chosen: FileKeySelector) -> str:
        volume = self._volumes_of(pod).get(chosen.volume_name)
        if volume is None:
            raise Missing(f'cannot find the volume "{chosen.volume_name}" referenced by FileKeyRef')
        try:
            file = inside(volume.source, chosen.path)
            return variable_in(file.read_text(), chosen.key)
        except (Missing, InvalidEnvFile, OSError, UnicodeDecodeError) as error:
            log.warning("file of variables not read", pod=pod.metadata.name, file=chosen.path, error=str(error))
            raise Missing("couldn't parse env file") from error

    def _volumes_of(self, pod: PodDetails) -> dict[str, Volume]:
        held = self._held.get(pod.metadata.uid)
        return held.volumes if held is not None else {}

    async def _make_folders(self, uid: str, spec: ContainerSpec) -> None:
        folder = self._layout.container(uid, spec.name, spec.attempt)
        message = self._layout.termination_message(uid, spec.name, spec.attempt)
        for run in folder.parent.iterdir() if folder.parent.exists() else ():
            # What an earlier run wrote for itself is of no use to anyone; its last words and its log stay. This run may
            # have begun already and been lost, with a runtime that was killed: it begins with nothing again.
            if run.name.isdigit() and int(run.name) <= spec.attempt:
                for own in (run / "scratch", run / "home"):
                    if own.exists():
                        await asyncio.to_thread(remove_tree, own)
        for made, mode in ((Path(spec.scratch), 0o755), (folder / "home", 0o777), (Path(spec.log).parent, 0o755)):
            make_folder(made, mode)
        message.write_bytes(b"")
        message.chmod(0o666)


@contextmanager
def _telling_of_disk() -> Iterator[None]:
    """Makes a problem with the node's own folder, such as a full disk, one that the pod is told of."""
    try:
        yield
    except OSError as error:
        raise VolumeProblem(f"the node's own folder cannot be written: {error}") from error
