"""Starting a container: what it finds, what it is called, and the words in which its pod is told of it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import msgspec

from shoal.api.core.pod_details import ContainerDetails, PodDetails
from shoal.api.meta import parse_quantity
from shoal.cluster.node.process.client import RuntimeFault
from shoal.cluster.node.process.contents import ConfigProblem
from shoal.cluster.node.process.layout import Layout
from shoal.cluster.node.process.machine.gpus import NotEnoughGpus
from shoal.cluster.node.process.pods.collaborators import DISCONNECTED, Collaborators
from shoal.cluster.node.process.pods.course import container_id
from shoal.cluster.node.process.pods.status import last_words
from shoal.cluster.node.process.runtime.protocol import ContainerSpec, ContainerState

_CREATE_ERROR = "CreateContainerError"
_GPU = "nvidia.com/gpu"


class StartFailed(Exception):
    """The program of a container could not be executed: this run is over before it began."""


async def prepared(
    means: Collaborators,
    pod: PodDetails,
    container: ContainerDetails,
    *,
    attempt: int,
    address: str,
    ended: Collection[str] = (),
    joins: str = "",
) -> ContainerSpec:
    """All that the runtime needs to know about a run; raises ConfigProblem.

    ``ended`` are containers of the pod that will not run again; ``joins`` is the id of the one whose processes it sees.
    """
    uid = pod.metadata.uid
    count = parse_quantity(container.resources.limits.get(_GPU, 0)).value()
    try:
        gpus = means.gpus.allot(uid, container.name, count, reusing=ended)
    except NotEnoughGpus as error:
        raise ConfigProblem(_CREATE_ERROR, str(error)) from error
    spec = await means.contents.container(pod, container, attempt=attempt, address=address, gpus=gpus)
    spec = msgspec.structs.replace(spec, id=container_id(uid, container.name, attempt), joins_processes_of=joins)
    # Who finds the container running, and has not started it, has to know how a command in it is run.
    _spec_file(means.layout, uid, container.name, attempt).write_bytes(msgspec.json.encode(spec))
    return spec


async def started(
    means: Collaborators, pod: PodDetails, container: ContainerDetails, spec: ContainerSpec
) -> ContainerState:
    """Has the runtime start a container; raises StartFailed, and ConfigProblem where it did not come to that."""
    present = f'Container image "{container.image}" already present on machine and can be accessed by the pod'
    means.tell(pod, "Pulled", present)
    means.tell(pod, "Created", f"Created container: {container.name}")
    try:
        state = await means.runtime.start(spec)
    except RuntimeFault as fault:
        if fault.reason == DISCONNECTED:
            raise
        means.warn(pod, "Failed", f"Error: {fault.message}")
        if fault.reason == "StartError":
            raise StartFailed(fault.message) from fault
        raise ConfigProblem(_CREATE_ERROR, fault.message) from fault
    means.tell(pod, "Started", f"Started container {container.name}")
    return state


def spec_of(layout: Layout, uid: str, container: str, attempt: int) -> ContainerSpec | None:
    """How a run was started, as it was written down then."""
    try:
        return msgspec.json.decode(_spec_file(layout, uid, container, attempt).read_bytes(), type=ContainerSpec)
    except (OSError, msgspec.MsgspecError):
        return None


def logged_attempts(layout: Layout, uid: str, container: str) -> list[int]:
    """The runs of which there are logs."""
    try:
        names = [file.name for file in layout.log(uid, container, 0).parent.iterdir()]
    except OSError:
        return []
    numbers = (name.partition(".log")[0] for name in names)
    return sorted({int(number) for number in numbers if number.isdigit()})


def words_of_run(layout: Layout, uid: str, container: ContainerDetails, state: ContainerState) -> str:
    """What a run that ended had to say about it."""
    place = (uid, container.name, state.attempt)
    return last_words(container, state.exit_code or 0, file=layout.termination_message(*place), log=layout.log(*place))


def _spec_file(layout: Layout, uid: str, container: str, attempt: int) -> Path:
    return layout.container(uid, container, attempt) / "spec.json"
