"""All that a container finds, put together: from a pod's spec to what the runtime is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from shoal.api.core.pod_details import ContainerDetails, PodDetails
from shoal.cluster.node.process.contents.accounts import Account, account_in
from shoal.cluster.node.process.contents.environment import command_line
from shoal.cluster.node.process.contents.facts import NodeFacts
from shoal.cluster.node.process.contents.gpus import gpu_variables
from shoal.cluster.node.process.contents.identity import (
    capabilities_of,
    has_filter,
    ids_of,
    may_gain_privileges,
    user_asked_for,
)
from shoal.cluster.node.process.contents.images import Image
from shoal.cluster.node.process.contents.limits import limits_of
from shoal.cluster.node.process.contents.machine_root import STANDARD_PATH, MachineRoot
from shoal.cluster.node.process.contents.mounts import in_order
from shoal.cluster.node.process.contents.problems import CREATE_ERROR, ConfigProblem
from shoal.cluster.node.process.layout import Layout
from shoal.cluster.node.process.runtime.protocol import Bind, ContainerSpec, ExecSpec

_TERMINAL = "xterm"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What one run of a container is made of."""

    id: str
    pod: PodDetails
    container: ContainerDetails
    attempt: int
    image: Image
    hostname: str
    variables: Mapping[str, str]
    """What the pod's author sees to: those of its spec, and of services."""
    binds: Sequence[Bind]
    """The volumes."""
    gpus: Sequence[str] = ()
    devices: Sequence[str] = ()
    """The device files that lead to them."""


def container_spec(
    recipe: Recipe,
    layout: Layout,
    facts: NodeFacts,
    machine: MachineRoot,
    *,
    account: Callable[[str, int], Account | None] = account_in,
) -> ContainerSpec:
    """What the runtime is told about a container; ConfigProblem where it cannot be run as it is."""
    pod, container, image = recipe.pod, recipe.container, recipe.image
    uid = pod.metadata.uid
    user = user_asked_for(pod, container)
    known = account(image.root, user if user is not None else image.user or 0)
    ids = ids_of(
        pod,
        container,
        image_user=image.user,
        group_of_user=image.group if user is None and image.group is not None else known.group if known else None,
        has_all_ids=facts.has_all_ids,
    )
    own_folder = layout.container(uid, container.name, recipe.attempt) / "home"
    home = (known.home if known else "/") if image.root else machine.home(own_folder)
    variables = {
        "PATH": ":".join(STANDARD_PATH) if image.root else machine.path(image.directory),
        "HOSTNAME": recipe.hostname,
        "HOME": home,
        **({"TERM": _TERMINAL} if container.tty else {}),
        **({} if image.root else machine.variables()),
        **image.env,
        **recipe.variables,
        **gpu_variables(recipe.gpus, has_gpus=facts.has_gpus),
        **({} if facts.has_namespaces else volume_variables(recipe)),
    }
    binds = [*_etc_binds(recipe, layout), *recipe.binds]
    if not image.root:
        binds = [*machine.binds(own_folder), *binds]
    return ContainerSpec(
        id=recipe.id,
        sandbox=uid,
        name=container.name,
        attempt=recipe.attempt,
        argv=_argv(recipe, layout),
        env=[f"{name}={value}" for name, value in variables.items()],
        directory=container.working_dir or image.working_dir or image.directory or ("/" if image.root else home),
        root=image.root,
        shown=[] if image.root else machine.shown(image),
        scratch=str(layout.scratch(uid, container.name, recipe.attempt)),
        is_root_read_only=container.security_context.read_only_root_filesystem,
        binds=in_order(binds),
        hidden=machine.hidden(),
        devices=list(recipe.devices),
        ids=ids,
        capabilities=capabilities_of(container),
        may_gain_privileges=may_gain_privileges(container),
        has_filter=has_filter(pod, container),
        limits=limits_of(pod, container),
        log=str(layout.log(uid, container.name, recipe.attempt)),
        has_stdin=container.stdin,
        closes_stdin=container.stdin_once,
        has_tty=container.tty,
    )


def volume_variables(recipe: Recipe) -> dict[str, str]:
    """Where the volumes are, for a container that does not find them at their paths: ``SHOAL_VOLUME_`` and the name."""
    mounts = zip(recipe.container.volume_mounts, recipe.binds, strict=True)
    return {f"SHOAL_VOLUME_{mount.name.upper().replace('-', '_')}": bind.source for mount, bind in mounts}


def exec_spec(spec: ContainerSpec, argv: Sequence[str], *, has_tty: bool) -> ExecSpec:
    """What the runtime is told about a further command in a container: it finds what the container found."""
    env = list(spec.env)
    if has_tty and not any(variable.startswith("TERM=") for variable in env):
        env.append(f"TERM={_TERMINAL}")
    return ExecSpec(
        container=spec.id,
        argv=list(argv),
        env=env,
        directory=spec.directory,
        ids=spec.ids,
        capabilities=spec.capabilities,
        has_tty=has_tty,
    )


def _argv(recipe: Recipe, layout: Layout) -> list[str]:
    """The command line: what the pod says, and what the image does where the pod says nothing."""
    container, image = recipe.container, recipe.image
    command, arguments = command_line(container, recipe.variables)
    if not command:
        command = list(image.entrypoint)
        arguments = arguments or list(image.command)
    argv = [*command, *arguments]
    if not argv:
        raise ConfigProblem(
            CREATE_ERROR,
            f'no command specified: give container "{container.name}" a command, or write one for the image '
            f'"{image.name}" in {layout.images}',
        )
    if any("\0" in part for part in argv):
        raise ConfigProblem(CREATE_ERROR, f'the command of container "{container.name}" holds a NUL byte')
    return argv


def _etc_binds(recipe: Recipe, layout: Layout) -> list[Bind]:
    """The files of the pod in /etc and the one for last words, but for those that a volume takes the place of."""
    uid, container = recipe.pod.metadata.uid, recipe.container
    is_read_only = container.security_context.read_only_root_filesystem
    taken = {bind.target for bind in recipe.binds}
    binds = [
        Bind(source=str(layout.etc(uid, "hosts")), target="/etc/hosts"),
        Bind(source=str(layout.etc(uid, "resolv.conf")), target="/etc/resolv.conf", is_read_only=is_read_only),
        Bind(source=str(layout.etc(uid, "hostname")), target="/etc/hostname", is_read_only=is_read_only),
    ]
    if container.termination_message_path:
        message = layout.termination_message(uid, container.name, recipe.attempt)
        binds.append(Bind(source=str(message), target="/" + container.termination_message_path.lstrip("/")))
    return [bind for bind in binds if bind.target not in taken]
