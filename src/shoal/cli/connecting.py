"""Which cluster a command works on, and where it answers: options that commands share, and what their values mean."""

from __future__ import annotations

import enum
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.exits import CommandError, ExitCode

if TYPE_CHECKING:
    from shoal.gangs.configuration import OperatorConfiguration, Server
    from shoal.gangs.settings import GangSettings

KubeconfigOption = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="The cluster; otherwise that of KUBECONFIG, ~/.kube/config, or the one this runs in.",
    ),
]
ContextOption = Annotated[
    str | None, typer.Option("--context", metavar="NAME", help="The context of the kubeconfig; otherwise its current.")
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Grove's OperatorConfiguration; flags given beside it win."),
]

AllowedHostOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allowed-host",
        metavar="NAME",
        help="A further host name that ports without credentials answer for; may be repeated.",
    ),
]

_UNIFIED = "USE_UNIFIED_PODGANG"
_START_IMAGE = "GROVE_INIT_CONTAINER_IMAGE"
_ACCOUNT = "GROVE_OPERATOR_SERVICE_ACCOUNT_NAME"
_NOWHERE = "0"


class LogLevel(enum.StrEnum):
    """From where on events are logged."""

    DEBUG = "debug"
    INFO = "info"
    ERROR = "error"


LogLevelOption = Annotated[
    LogLevel | None,
    typer.Option("--log-level", metavar="LEVEL", help="debug, info or error.", show_default=LogLevel.INFO.value),
]
HealthOption = Annotated[
    str | None,
    typer.Option(
        "--health-probe-bind-address",
        metavar="ADDRESS",
        help="Where /healthz and /readyz are; 0: nowhere.",
        show_default=":8081",
    ),
]


def operator_configuration(file: Path | None) -> OperatorConfiguration | None:
    """The configuration of a file, if one is given; what is wrong with it is told by its name and field."""
    if file is None:
        return None
    from shoal.gangs.configuration import ConfigurationError, read_configuration  # noqa: PLC0415 - not every command

    try:
        return read_configuration(file.read_bytes())
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise CommandError(f"--config {file}: {why}: name a file that can be read", code=ExitCode.USAGE) from error
    except ConfigurationError as error:
        raise CommandError(f"--config {file}: {error}", code=ExitCode.USAGE) from error


def set_up_logs(configuration: OperatorConfiguration | None, level: LogLevel | None) -> None:
    """Logs as the configuration says; a level that was given on the command line wins."""
    from shoal.kube import configure_logs  # noqa: PLC0415 - not every command

    if configuration is None:
        configure_logs(level=level or LogLevel.INFO)
    else:
        configure_logs(level=level or configuration.log_level, as_json=configuration.log_format == "json")


def address_of(given: str | None, configured: Server | None, *, default: str, option: str) -> str | None:
    """Where something is served: as was given, else as configured, else as usual; None where it was given as 0."""
    if given is None:
        return f"{configured.bind_address}:{configured.port}" if configured else default
    if given == _NOWHERE:
        return None
    if not re.fullmatch(r".*:[0-9]{1,5}", given):
        raise typer.BadParameter(f"{given} is no address, try :8080, 127.0.0.1:8080, or 0 for none", param_hint=option)
    return given


def checked_hosts(names: list[str] | None) -> tuple[str, ...]:
    """Host names that were allowed, where they are names: no URL, no port, no pattern."""
    for name in names or ():
        if not re.fullmatch(r"[0-9A-Za-z]([0-9A-Za-z._-]*[0-9A-Za-z])?\.?", name):
            raise typer.BadParameter(f"{name} is no host name, try gpu-box.example.com", param_hint="--allowed-host")
    return tuple(names or ())


def gang_settings(
    configuration: OperatorConfiguration | None, *, namespace: str, pod_selector: str = ""
) -> GangSettings:
    """How gangs are run, by the configuration and the environment variables of Grove's operator.

    ``namespace`` is where the operator's account lives.
    """
    import structlog  # noqa: PLC0415 - other commands do without

    from shoal.gangs.configuration import API_VERSION, KIND, OperatorConfiguration  # noqa: PLC0415

    if _UNIFIED in os.environ:
        structlog.get_logger("shoal.cli").info(
            "a PodGang is made for every PodCliqueSet, whatever this variable says", variable=_UNIFIED
        )
    account = os.environ.get(_ACCOUNT) or "grove-operator"
    found = configuration or OperatorConfiguration(api_version=API_VERSION, kind=KIND)
    return found.settings(
        operator_user=f"system:serviceaccount:{namespace}:{account}",
        start_image=_with_tag(os.environ.get(_START_IMAGE, "")),
        pod_selector=pod_selector,
    )


def _with_tag(image: str) -> str:
    """The image of this version, unless its name says which."""
    from shoal import __version__  # noqa: PLC0415

    is_exact = ":" in image.rpartition("/")[2]
    return image if is_exact or not image else f"{image}:v{__version__}"
