"""The runtime as a program: ``python -m shoal.cluster.node.process.runtime --socket PATH --root PATH``."""

from __future__ import annotations

import argparse
import gc
import os
import resource
import sys
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import msgspec

from shoal.cluster.node.process.runtime.cgroups import NO_CGROUPS, Cgroups, forbid_other_views
from shoal.cluster.node.process.runtime.journal import note
from shoal.cluster.node.process.runtime.networks import Addresses
from shoal.cluster.node.process.runtime.node import Node, enter
from shoal.cluster.node.process.runtime.protocol import Facts
from shoal.cluster.node.process.runtime.server import Server
from shoal.cluster.node.process.runtime.syscalls import (
    PR_SET_CHILD_SUBREAPER,
    end_with_parent,
    leave_keyring,
    prctl,
)

_FAILED = 1


def main(arguments: Sequence[str]) -> None:
    """Enters the node and serves until told to stop."""
    options = _options(arguments)
    try:
        if options.end_with_parent:
            end_with_parent()
            if os.getppid() != options.end_with_parent:
                raise SystemExit("the parent is gone")  # it ended before we asked for the signal
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        with suppress(OSError):  # a kernel without keys, or one that keeps them to itself
            leave_keyring()
        _allow_many_files()
        path, root = options.socket.absolute(), options.root.absolute()
        for folder in (root, path.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        node = enter(root, _addresses(options))
        cgroups = Cgroups.detect()
        if cgroups is not None:
            cgroups.remove_stale()
        node = _with_cgroups(node, cgroups)
        if node.facts.has_all_ids and node.facts.has_namespaces and node.facts.cgroups != "v2":
            forbid_other_views()
        node = node.with_zygote()
        server = Server(path, node, cgroups, grace=options.grace)
    except OSError as error:
        _report(options, {"failed": f"the runtime of containers cannot start: {error}", "code": _FAILED, "tail": ""})
        raise
    note("serving", socket=str(path), facts=node.facts)
    _report(options, {"ready": True})
    # Nothing that exists by now is looked at by a collection again, so copies of this process keep sharing it.
    gc.collect()
    gc.freeze()
    server.serve()
    if cgroups is not None:
        cgroups.close()
    note("stopped")


def _report(options: argparse.Namespace, report: dict[str, object]) -> None:
    """Tells whoever started this how it is, in the way of all parts of ``shoal up``."""
    if options.ready_fd is not None:
        with suppress(OSError):
            os.write(options.ready_fd, msgspec.json.encode(report) + b"\n")


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="shoal-runtime", description="Runs containers for a node's agent.")
    parser.add_argument("--socket", type=Path, required=True, help="where it is asked")
    parser.add_argument("--root", type=Path, required=True, help="an empty folder, on which roots are built")
    parser.add_argument("--pod-network", choices=("private", "host"), default="private")
    parser.add_argument("--address", type=IPv4Address, default="10.88.0.1", help="the node's own address")
    parser.add_argument("--network", type=IPv4Network, default="10.88.0.0/16", help="holds the addresses of pods")
    parser.add_argument("--services", type=IPv4Network, default="10.96.0.0/12", help="holds those of services")
    parser.add_argument("--grace", type=float, default=5.0, help="seconds that containers have to end when this stops")
    parser.add_argument("--ready-fd", type=int, help="a descriptor that is told when this serves")
    parser.add_argument("--end-with-parent", type=int, metavar="PID", help="ends when this process, its parent, does")
    return parser.parse_args(arguments)


def _addresses(options: argparse.Namespace) -> Addresses | None:
    if options.pod_network == "host":
        return None
    return Addresses(node=options.address, pods=options.network, services=options.services)


def _with_cgroups(node: Node, cgroups: Cgroups | None) -> Node:
    facts: Facts = msgspec.structs.replace(
        node.facts,
        cgroups="" if cgroups is None else cgroups.kind,
        shortfalls=[*node.facts.shortfalls, *([NO_CGROUPS] if cgroups is None else cgroups.shortfalls())],
    )
    return msgspec.structs.replace(node, facts=facts)


def _allow_many_files() -> None:
    """Every container takes a few descriptors of this process."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    main(sys.argv[1:])
