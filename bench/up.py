"""``shoal up`` against a real Kubernetes on the same machine: ``python bench/up.py``.

Cold start and memory; then simulated nodes and a burst of pods through the controllers until all of them run, with
another client asking meanwhile, and their deletion. The peer is etcd, kube-apiserver, kube-controller-manager,
kube-scheduler and kwok, with all client-side rate limits out of the way and without node leases.

Exits 1 where a budget is missed. Without the real binaries it measures ours alone and says that the peer was not run.
"""

import argparse
import json
import signal
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run as a script, it finds `bench`

from rich.console import Console

from bench.figures.machine import facts
from bench.figures.table import WIDTH, show
from bench.serving.load import WrongAnswer
from bench.starting import results
from bench.starting.clusters import Ended, StartFailed
from bench.starting.filling import Size
from bench.starting.observer import Stalled
from bench.starting.results import Plan
from shoal.cluster.kubernetes import StartFailed as RealStartFailed

PACKAGES = ("shoal", "aiohttp", "msgspec", "uvloop")
PARTS = ("start", "restart", "fill")
PODS_PER_NODE = 10


def main() -> int:
    told = Console(stderr=True, soft_wrap=True, highlight=False)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # as an error would end it, so that no cluster is left behind
    try:
        return measure(parse(), told)
    except (StartFailed, RealStartFailed, Ended, Stalled, WrongAnswer) as error:
        told.print(f"bench: {error}", markup=False)
        return 1


def measure(arguments: argparse.Namespace, told: Console) -> int:
    measured_on = facts(PACKAGES)
    runs, not_run = results.measure(plan_of(arguments), told.print)
    sections = results.comparisons(runs, not_run)
    as_json = arguments.output == "json"
    console = Console(stderr=as_json, width=WIDTH)
    show(sections, [*results.processes(runs), *measured_on], console)
    if as_json:
        print(json.dumps({"measured on": measured_on, **results.raw(runs)}, indent=2))
    missed = [str(line) for lines in sections.values() for line in lines if line.verdict == "MISSED"]
    if missed:
        told.print(f"missed: {'; '.join(missed)}")
    return 1 if missed else 0


def plan_of(arguments: argparse.Namespace) -> Plan:
    plan = Plan(bare=arguments.bare, parts=frozenset(arguments.only or PARTS), profiles=arguments.profile)
    if arguments.quick:
        plan = replace(plan, starts=1, restart=Size(nodes=100, pods=1_000))
    nodes = arguments.nodes or (500 if arguments.quick else 10_000)
    peer_nodes = nodes if arguments.peer_nodes is None else arguments.peer_nodes
    peer_pods = peer_nodes * PODS_PER_NODE if arguments.peer_pods is None else arguments.peer_pods
    return replace(
        plan,
        ours=Size(nodes=nodes, pods=arguments.pods or nodes * PODS_PER_NODE),
        peer=Size(nodes=peer_nodes, pods=peer_pods),
        starts=arguments.starts or plan.starts,
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures `shoal up` against a real Kubernetes with kwok.")
    parser.add_argument("--quick", action="store_true", help="500 nodes: shows that it works, proves nothing")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this alone; may be repeated")
    parser.add_argument("--starts", type=int, help="cold starts of each (default: 5, quick 1)")
    parser.add_argument("--nodes", type=int, help="simulated nodes (default: 10,000, quick 500)")
    parser.add_argument("--pods", type=int, help=f"pods in all (default: {PODS_PER_NODE} for each node)")
    parser.add_argument("--peer-nodes", type=int, help="the same for the real cluster (default: as ours)")
    parser.add_argument("--peer-pods", type=int, help="the same for the real cluster (default: as ours); 0: no peer")
    parser.add_argument("--bare", action="store_true", help="then also bare pods, posted over 32 connections")
    parser.add_argument("--profile", type=Path, metavar="DIR", help="put profiles of our processes there: slows them")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="json: the raw figures, too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
