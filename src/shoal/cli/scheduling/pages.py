"""What people read: explanations, replays and differences, in 80 columns."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from shoal.cli.output import Table, to_table

if TYPE_CHECKING:
    from shoal.scheduler.replaying import Difference, Eviction, Placement, Replay, Waiting

_WIDTH: Final = 80
_MOST: Final = 50
"""Rows of a list before the rest is only counted."""


def replay_page(found: Replay) -> str:
    """Everything that a cycle decides."""
    promised = sum(one.promised for one in found.placements)
    head = (
        f"{found.nodes} nodes, {found.jobs} jobs at {found.at:%Y-%m-%dT%H:%M:%SZ}: "
        f"{len(found.placements) - promised} pods placed, {promised} promised a place, "
        f"{len(found.evictions)} evicted, {len(found.waiting)} jobs wait"
    )
    parts = [_wrapped(head, "")]
    parts += _section("Places", _placements(found.placements))
    parts += _section("Evictions", _evictions(found.evictions))
    parts += _section("Waiting", _waiting(found.waiting))
    parts += [_wrapped(f"remark: {remark}", "") for remark in found.remarks]
    return "\n".join(parts)


def difference_page(changes: Difference, after: Replay) -> str:
    """What a what-if changes."""
    if changes.is_nothing and not changes.restated:
        return "nothing changes: the same decisions, and the same reasons to wait\n"
    parts: list[str] = []
    parts += _section("Placed now", _placements(changes.placed))
    parts += _section("Not placed any more", _placements(changes.not_placed))
    moved = [(f"{one.namespace}/{one.pod}", one.before, one.after) for one in changes.moved]
    parts += _section("Placed elsewhere", _rows(("pod", "before", "now"), moved))
    parts += _section("Evicted now", _evictions(changes.evicted))
    parts += _section("Not evicted any more", _evictions(changes.not_evicted))
    parts += _section("Wait now", _waiting(changes.waiting))
    parts += _section("Wait no longer", _waiting(changes.not_waiting))
    restated = [_wrapped(f"{one.namespace}/{one.job} (queue {one.queue})", "") for one in changes.restated[:_MOST]]
    told = [head + _wrapped(one.after, "    ") for head, one in zip(restated, changes.restated, strict=False)]
    parts += _section("Wait for another reason", "".join(told) + _rest(len(changes.restated)))
    waiting = "1 job waits" if len(after.waiting) == 1 else f"{len(after.waiting)} jobs wait"
    parts.append(f"{waiting} in the end\n")
    return "\n".join(parts)


def answer_page(answer: Mapping[str, Any]) -> str:
    """An explanation, as it came over HTTP."""
    pages = [_job_page(job) for job in answer["jobs"]]
    return "\n".join([*pages, f"as of cycle {answer['cycle']} at {answer['at']}\n"])


def _job_page(job: Mapping[str, Any]) -> str:
    pods = job["pods"]
    counts = [f"{pods['needed']} needed", f"{pods['existing']} there"]
    counts += [f"{pods[name]} {name}" for name in ("gated", "waiting", "promised", "placed") if pods[name]]
    facts: list[tuple[str, str]] = [
        ("state", job["state"] + (f" ({job['reason']})" if job["reason"] else "")),
        ("queue", job["queue"] or "none"),
        ("priority", f"{job['priority']}, {'preemptible' if job['preemptible'] else 'not preemptible'}"),
        ("pods", ", ".join(counts)),
    ]
    if any(job["requested"].values()):
        facts.append(("asks for", _figures(job["requested"])))
    if place := job["position"]:
        overall = f", {place['overall']} of {place['ofAll']} in all" if place["overall"] else ""
        facts.append(("place", f"{place['inQueue']} of {place['ofQueue']} in its queue{overall}"))
    parts = [f"PodGroup {job['namespace']}/{job['name']}\n{to_table(Table(rows=facts))}", _wrapped(job["message"], "")]
    parts += _section("What would let it start", _listed(one["message"] for one in job["remedies"]))
    if room := job.get("kept"):
        parts += _section("Room that is kept", _wrapped(_kept(room), "  "))
    parts += _section("Nodes", "".join(map(_shortage, job["shortages"])))
    parts += _section(
        "Topology", _listed(line for one in job["topology"] for line in (one["message"], *one["domains"]))
    )
    parts += _section("Who holds it", "".join(map(_holder, job["holders"])))
    parts += _section("Queues, in GPUs", _queues(job["queues"]))
    return "\n".join(parts)


def _kept(room: Mapping[str, Any]) -> str:
    """Where room is kept for a large gang: this one, or one that keeps it out."""
    more = room["nodeCount"] - len(room["nodes"])
    where = f"{', '.join(room['nodes'])}{f' and {more} more' if more else ''}"
    whose = "for it" if room["own"] else f"for {room['job']}, and not for it"
    until = f"; it can start by {room['until']}" if room.get("until") and room["own"] else ""
    return f"kept {whose} on {where}, where {_figures(room['free']) or 'nothing'} are free or become so{until}"


def _shortage(one: Mapping[str, Any]) -> str:
    units = {"memory": "GB of memory"}
    asked = ", ".join(f"{_number(amount)} {units.get(words, words)}" for words, amount in one["requests"].items())
    asked = re.sub(r"\b1 (GPU|CPU core)s\b", r"1 \1", asked)
    head = f"{one['pods']} such as {one['example']}, each with {asked or 'nothing'}; room for {one['room']}"
    reasons = [(reason["nodes"], reason["reason"]) for reason in one["reasons"]]
    table = "".join(_wrapped(f"{nodes:>6} of {one['nodes']} nodes: {reason}", " " * 8) for nodes, reason in reasons)
    return _wrapped(head, "  ") + table


def _holder(one: Mapping[str, Any]) -> str:
    gpus = [one[name]["gpus"] for name in ("allocated", "entitled", "beyond")]
    holds, entitled, beyond = (_number(amount) for amount in gpus)
    head = f"queue {one['queue']} holds {holds} GPUs, is entitled to {entitled}, so has {beyond} beyond that"
    return _wrapped(head, "  ") + "".join(_wrapped(_holding(kept), "      ") for kept in one["jobs"])


def _holding(kept: Mapping[str, Any]) -> str:
    why = {
        "NonPreemptible": "are not preemptible",
        "MinRuntime": f"are protected, the first until {kept['until']}",
        "PriorityNotLower": "are not less important",
        "NoPlan": "could go, but no choice of them is fair and leaves enough room",
    }[kept["why"]]
    examples = f" ({', '.join(kept['examples'])}{' …' if kept['jobs'] > len(kept['examples']) else ''})"
    jobs = "1 job" if kept["jobs"] == 1 else f"{kept['jobs']} jobs"
    who = f"{jobs}{examples}" if kept["jobs"] else "jobs"
    return f"{who} with {_figures(kept['holds'])} {why}"


def _queues(queues: Sequence[Mapping[str, Any]]) -> str:
    names = ("quota", "limit", "fairShare", "allocated", "requested")
    rows = [(one["name"], *(_number(one[name]["gpus"]) for name in names)) for one in queues]
    return _rows(("queue", "quota", "limit", "fair share", "allocated", "requested"), rows)


def _placements(placements: Sequence[Placement]) -> str:
    rows = [
        (
            f"{one.namespace}/{one.pod}",
            one.node,
            _number(one.gpus),
            "when others have ended" if one.promised else "now",
        )
        for one in placements
    ]
    return _rows(("pod", "node", "gpus", "when"), rows)


def _evictions(evictions: Sequence[Eviction]) -> str:
    told = [
        f"{one.namespace}/{one.pod} from {one.node}\n{_wrapped(f'{one.action}: {one.message}', '    ')}"
        for one in evictions[:_MOST]
    ]
    return "".join(told) + _rest(len(evictions))


def _waiting(waiting: Sequence[Waiting]) -> str:
    told = []
    for one in waiting[:_MOST]:
        place = "" if one.position is None else f", place {one.position}"
        head = f"{one.namespace}/{one.job} (queue {one.queue or 'none'}{place}): {one.state.value}"
        told.append(_wrapped(head, "") + _wrapped(one.message, "    "))
    return "".join(told) + _rest(len(waiting))


def _rows(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return to_table(Table(rows=rows[:_MOST], heading=heading)) + _rest(len(rows)) if rows else ""


def _rest(count: int) -> str:
    return f"… and {count - _MOST} more: -o json shows all\n" if count > _MOST else ""


def _section(title: str, text: str) -> list[str]:
    return [f"{title}\n{text}"] if text else []


def _listed(lines: Iterable[str]) -> str:
    return "".join(_wrapped(f"- {line}", "  ") for line in lines)


def _wrapped(text: str, indent: str) -> str:
    """A paragraph; names that are longer than a line are left whole."""
    lines = textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=indent if not text.startswith("-") else "",
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "".join(f"{line}\n" for line in lines)


def _figures(figures: Mapping[str, Any]) -> str:
    parts = []
    for name, words, unit in (("gpus", "GPUs", 1.0), ("cpuCores", "CPU cores", 1.0), ("memoryBytes", "GB", 1e9)):
        amount = figures[name]
        if amount:
            parts.append(f"{_number(amount / unit)} {words}")
    return ", ".join(parts) or "nothing"


def _number(amount: float | None) -> str:
    return "unlimited" if amount is None else f"{amount:.3f}".rstrip("0").rstrip(".")
