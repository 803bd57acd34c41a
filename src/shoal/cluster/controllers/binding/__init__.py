"""Gives pods their nodes, as kube-scheduler does.

One loop over a picture of all nodes that watch events keep up to date: every pod without a node is put on the emptiest
one that it fits on, the most important first; one that fits nowhere says why.
"""

from __future__ import annotations

from collections.abc import Collection

from shoal.cluster.controllers.binding.controller import Binding
from shoal.kube import Manager

SCHEDULERS = ("default-scheduler", "kai-scheduler", "grove-scheduler", "koord-scheduler", "volcano")
"""The schedulers in whose place pods are bound."""


def add_binding(manager: Manager, *, schedulers: Collection[str] = SCHEDULERS, takes_gangs: bool = True) -> None:
    """Binds the pods that ask for one of these schedulers, each for itself.

    Those that belong to a Workload are left to somebody else where gangs are not taken.
    """
    manager.add_leader_task(Binding(manager, schedulers, takes_gangs=takes_gangs).run)


__all__ = ["SCHEDULERS", "add_binding"]
