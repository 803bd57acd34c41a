"""What ``shoal up`` is made of: what serves the API, and which components run beside it."""

from __future__ import annotations

import enum
from typing import Final

import typer

GANG_SCHEDULERS: Final = ("kai-scheduler", "grove-scheduler", "koord-scheduler", "volcano")
"""Whose pods are all placed by Shoal's scheduler."""
PLAIN_SCHEDULER: Final = "default-scheduler"
"""Whose gangs are too; its other pods are placed one by one, as kube-scheduler does it."""
PROGRESS_SERVICE: Final = ("kubeflow-system", "kubeflow-trainer-controller-manager")
"""Namespace and name of the Service by which training programs find the server that they report to."""


class Engine(enum.StrEnum):
    """What serves the Kubernetes API."""

    EMBEDDED = "embedded"
    KUBE = "kube"


class PodNetwork(enum.StrEnum):
    """Where the pods of this machine's node have their addresses."""

    PRIVATE = "private"
    HOST = "host"


class Component(enum.StrEnum):
    """What can be left out by naming the others with ``--only``."""

    API = "api"
    CONTROLLERS = "controllers"
    GANGS = "gangs"
    TRAINING = "training"
    SCHEDULER = "scheduler"
    NODES = "nodes"
    PORTAL = "portal"


def chosen_components(only: str | None) -> frozenset[Component]:
    """The components of ``--only``, or all; the API is always among them, since the others are its clients."""
    if only is None:
        return frozenset(Component)
    names = [name.strip() for name in only.split(",") if name.strip()]
    unknown = [name for name in names if name not in list(Component)]
    if unknown or not names:
        what = f"there is no component {unknown[0]}" if unknown else "it names no component"
        raise typer.BadParameter(f"{what}: there are {', '.join(Component)}", param_hint="--only")
    return frozenset({Component.API, *map(Component, names)})
