"""The scheduler: what a decision takes, and how many pods a second are bound: ``python bench/scheduler.py``.

Decisions alone need no API server and no pods: clusters are made as plain values, and every cycle has to decide exactly
what its workload is for. Sizes are those of KAI's own benchmarks, and larger ones that have budgets. KAI's benchmarks
are built from its source and run beside ours, where Go is there and its source too (``--kai-source``, see
bench/peers/kai). End to end, pods are posted to a cluster of simulated nodes that runs, with ``shoal scheduler`` beside
it, until the last of them is bound. What KAI has published stands there as not run here.

Exits 1 where a budget is missed.
"""

import argparse
import json
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run as a script, it finds `bench`

from rich.console import Console

from bench.binding import results as binding
from bench.decisions import results as decisions
from bench.decisions.cycles import DecidedOtherwise
from bench.decisions.kai import SOURCE
from bench.figures.comparison import Comparison
from bench.figures.machine import facts
from bench.figures.table import WIDTH, show
from bench.serving.load import WrongAnswer
from bench.starting.clusters import Ended, StartFailed
from bench.starting.observer import Stalled

PACKAGES = ("shoal", "numpy", "aiohttp", "msgspec", "uvloop")
PARTS = (*decisions.PARTS, *binding.PARTS)


def main() -> int:
    told = Console(stderr=True, soft_wrap=True, highlight=False)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # as an error would end it, so that no cluster is left behind
    try:
        return measure(parse(), told)
    except (DecidedOtherwise, StartFailed, Ended, Stalled, WrongAnswer) as error:
        told.print(f"bench: {error}", markup=False)
        return 1


def measure(arguments: argparse.Namespace, told: Console) -> int:
    measured_on = facts(PACKAGES)
    parts = frozenset(arguments.only or PARTS)
    sections: dict[str, list[Comparison]] = {}
    notes: list[str] = []
    raw: dict[str, Any] = {}
    if parts & frozenset(decisions.PARTS):
        plan = decision_plan(arguments)
        found = decisions.run(plan, told.print)
        sections |= decisions.comparisons(found, plan)
        notes += decisions.notes(found, plan)
        raw["decisions"] = decisions.raw(found)
    if parts & frozenset(binding.PARTS):
        ends = binding_plan(arguments)
        rounds = binding.run(ends, told.print)
        sections |= binding.comparisons(rounds, ends)
        notes += binding.notes(rounds)
        raw["end to end"] = binding.raw(rounds)
    as_json = arguments.output == "json"
    show(sections, [*notes, *measured_on], Console(stderr=as_json, width=WIDTH))
    if as_json:
        print(json.dumps({"measured on": measured_on, **raw}, indent=2))
    missed = [str(line) for lines in sections.values() for line in lines if line.verdict == "MISSED"]
    if missed:
        told.print(f"missed: {'; '.join(missed)}")
    return 1 if missed else 0


def decision_plan(arguments: argparse.Namespace) -> decisions.Plan:
    plan = decisions.Plan(
        parts=frozenset(arguments.only or PARTS) & frozenset(decisions.PARTS),
        with_kai=not arguments.no_kai,
        kai_source=arguments.kai_source,
        kai_limit=arguments.kai_limit,
    )
    if arguments.quick:
        # To build KAI takes longer than all that is quick: only where somebody says where it is.
        with_kai = plan.with_kai and plan.kai_source is not None
        plan = replace(plan, rounds=1, quick=True, nodes=200, with_kai=with_kai)
    return replace(plan, rounds=arguments.rounds or plan.rounds)


def binding_plan(arguments: argparse.Namespace) -> binding.Plan:
    plan = binding.Plan(parts=frozenset(arguments.only or PARTS) & frozenset(binding.PARTS), profiles=arguments.profile)
    if arguments.quick:
        plan = replace(plan, nodes=10, singles=10, rounds=1, quick=True)
    return replace(plan, nodes=arguments.nodes or plan.nodes, rounds=arguments.rounds or plan.rounds)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures the scheduler's decisions, and pods bound end to end.")
    parser.add_argument(
        "--quick", action="store_true", help="small clusters, once: shows that it works, proves nothing"
    )
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this alone; may be repeated")
    parser.add_argument("--rounds", type=int, help="of each workload (default: 3, quick 1)")
    parser.add_argument("--nodes", type=int, help="of the cluster end to end, eight pods each (default: 500, quick 10)")
    parser.add_argument(
        "--kai-source", type=Path, metavar="DIR", help=f"a checkout of KAI, whose own benchmarks are run (or ${SOURCE})"
    )
    parser.add_argument("--no-kai", action="store_true", help="leave KAI's own benchmarks out")
    parser.add_argument("--kai-limit", type=float, default=600, help="seconds that one of them may take (default: 600)")
    parser.add_argument("--profile", type=Path, metavar="DIR", help="put profiles of our processes there: slows them")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="json: the raw figures, too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
