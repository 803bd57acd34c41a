"""The visualizer's routes on a large cluster: ``python bench/visualizer.py``.

4,000 nodes and 140,000 pods; a new view every second, in which a tenth of the jobs and a twentieth of the nodes are
others than before. The routes are asked over HTTP from another process, once while nothing else goes on in the
server's, and once beside a thread of it that reckons in Python without a pause. That thread stands for a scheduling
cycle, and is no kinder: it never lets go of the interpreter's lock by itself, as a cycle does in NumPy.

Exits 1 where a budget is missed. There is no peer here: the fork whose API this is was not run.
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run as a script, it finds `bench`

from rich.console import Console

from bench.figures.machine import facts
from bench.figures.table import WIDTH, show
from bench.views import results
from bench.views.results import Plan

PACKAGES = ("shoal", "aiohttp", "msgspec", "uvloop")


def main() -> int:
    arguments, told = parse(), Console(stderr=True, soft_wrap=True, highlight=False)
    plan = Plan()
    if arguments.quick:
        plan = replace(plan, nodes=400, share=0.2, refreshing=6)
    plan = replace(plan, nodes=arguments.nodes or plan.nodes)
    measured_on = facts(PACKAGES)
    found = results.measure(plan, told.print)
    sections = results.comparisons(found, plan)
    as_json = arguments.output == "json"
    show(sections, [*results.notes(found), *measured_on], Console(stderr=as_json, width=WIDTH))
    if as_json:
        print(json.dumps({"measured on": measured_on, **results.raw(found)}, indent=2))
    missed = [f"{title}: {line}" for title, lines in sections.items() for line in lines if line.verdict == "MISSED"]
    if missed:
        told.print(f"missed: {'; '.join(missed)}")
    return 1 if missed else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures the visualizer's routes on a large cluster.")
    parser.add_argument("--quick", action="store_true", help="400 nodes: shows that it works, proves nothing")
    parser.add_argument("--nodes", type=int, help="of the cluster, each with 35 pods (default: 4000, quick 400)")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="json: the raw figures, too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
