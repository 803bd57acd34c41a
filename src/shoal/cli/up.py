"""``shoal up``: a cluster on this machine, in the foreground or detached from the terminal."""

from __future__ import annotations

import enum
import ipaddress
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.data_dir import DataDir
from shoal.cli.exits import CommandError, ExitCode
from shoal.cli.output import write

EXAMPLES = {
    "shoal up": "Start, and stop with Ctrl-C",
    "shoal up --detach && shoal status": "Start in the background",
    "kubectl --kubeconfig .shoal/kubeconfig get queues": "Use it from another terminal",
    "shoal up --data-dir /tmp/try --api-port 0": "Start a second one, on any free port",
}

DATA_DIR = Path(".shoal")
DataDirOption = Annotated[
    Path, typer.Option("--data-dir", metavar="DIR", help="The folder that holds everything Shoal keeps.")
]


class Engine(enum.StrEnum):
    """What serves the Kubernetes API."""

    EMBEDDED = "embedded"
    KUBE = "kube"


def up(
    engine: Annotated[
        Engine, typer.Option("--engine", help="kube runs a real kube-apiserver and etcd; embedded is to come.")
    ] = Engine.KUBE,
    data_dir: DataDirOption = DATA_DIR,
    bind: Annotated[
        str, typer.Option("--bind", metavar="ADDRESS", help="The IP address that servers listen on.")
    ] = "127.0.0.1",
    api_port: Annotated[
        int, typer.Option("--api-port", min=0, max=65535, help="The Kubernetes API's port; 0 means any free one.")
    ] = 7443,
    kube_binaries: Annotated[
        list[Path] | None,
        typer.Option(
            "--kube-binaries",
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="A folder with etcd and kube-apiserver, may be repeated; otherwise PATH and then the cache that "
            "make kube-binaries fills are searched.",
        ),
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Return once it is ready; shoal down stops it.")
    ] = False,
    ready_descriptor: Annotated[int | None, typer.Option("--ready-descriptor", hidden=True)] = None,
) -> None:
    """Start Shoal on this machine: a Kubernetes API with Shoal's kinds.

    Says "Shoal is ready" when all of it is. Ctrl-C or SIGTERM stops it.
    What it holds stays in the data dir, also after a crash.
    """
    if engine is Engine.EMBEDDED:
        raise typer.BadParameter("embedded is not available yet: use --engine kube", param_hint="--engine")
    checked_address(bind)
    if data_dir == Path():
        raise typer.BadParameter("name a folder of its own, such as .shoal", param_hint="--data-dir")
    place = DataDir(data_dir)
    if detach:
        folders = [f"--kube-binaries={folder.absolute()}" for folder in kube_binaries or ()]
        _detached(place, [f"--engine={engine}", f"--bind={bind}", f"--api-port={api_port}", *folders])
    else:
        _foreground(place, bind=bind, api_port=api_port, kube_binaries=kube_binaries or [], ready=ready_descriptor)


def checked_address(bind: str) -> str:
    """The address that servers shall listen on, where it is one."""
    try:
        ipaddress.ip_address(bind)
    except ValueError:
        raise typer.BadParameter(f"{bind} is no IP address, try 127.0.0.1 or 0.0.0.0", param_hint="--bind") from None
    return bind


def _foreground(place: DataDir, *, bind: str, api_port: int, kube_binaries: list[Path], ready: int | None) -> None:
    from shoal.cli.supervisor import stopping_on_signals, supervise  # noqa: PLC0415 - other commands do without

    is_ready = False
    with stopping_on_signals():
        from shoal.api.definitions import ALL  # noqa: PLC0415
        from shoal.cluster.kubernetes import RealKubernetes, StartFailed, find_binaries  # noqa: PLC0415

        binaries = find_binaries(kube_binaries)
        if binaries.kube_controller_manager is None:
            sys.stderr.write(
                "shoal: no kube-controller-manager was found: Jobs, Deployments and deletion will not work\n"
            )
        cluster = RealKubernetes(
            binaries,
            place.path,
            bind=bind,
            port=api_port,
            controller_manager=binaries.kube_controller_manager is not None,
            definitions=[definition.manifest() for definition in ALL],
        )

        def announce() -> None:
            nonlocal is_ready
            is_ready = True
            line = f"Shoal is ready: api {cluster.server}, kubeconfig {shortest(cluster.kubeconfig)}\n"
            write(line)
            if ready is not None:
                os.write(ready, line.encode())
                os.close(ready)

        try:
            supervise(cluster, place, announce=announce)
        except StartFailed as error:
            sys.stderr.write(f"{error.tail}\n")
            raise CommandError(f"{error.part} {error.what}: the end of its log {error.log} is above") from error
    if not is_ready:
        raise typer.Exit(ExitCode.CANCELLED)
    write("Shoal is stopped\n")


def _detached(place: DataDir, options: list[str]) -> None:
    """Starts this command again in a session of its own, and waits until it says that it is ready."""
    place.make()
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as said, place.log.open("ab") as log:
        log_start = log.tell()
        program = "import sys; from shoal.cli import main; sys.exit(main())"
        command = ["up", f"--data-dir={place.path}", f"--ready-descriptor={writing}", *options]
        child = subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, "-c", program, *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[writing],
            start_new_session=True,
        )
        os.close(writing)
        try:
            line = said.readline().decode()
        except KeyboardInterrupt:
            child.send_signal(signal.SIGTERM)
            child.wait()
            raise
    if not line:
        code = child.wait()
        with place.log.open("rb") as log:
            log.seek(log_start)
            sys.stderr.write(log.read().decode(errors="replace"))
        raise typer.Exit(code if code > 0 else 1)
    child.returncode = 0  # it goes on without us, which is no leak to warn about
    write(line)


def shortest(path: Path) -> Path:
    """As a person in this folder would write it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
