"""The metrics of several components as one page, each sample with the label ``component``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_SUFFIXES = ("_total", "_created", "_bucket", "_count", "_sum", "_info")


@dataclass
class _Family:
    heading: list[str] = field(default_factory=list)
    samples: list[str] = field(default_factory=list)


def merged(pages: Mapping[str, str]) -> str:
    """Pages in Prometheus' text format as one: a family that several have is stated once, as the format demands."""
    families: dict[str, _Family] = {}
    for component, page in pages.items():
        current = ""
        for line in page.splitlines():
            if line.startswith(("# HELP ", "# TYPE ")):
                current = line.split(" ", 3)[2]
                family = families.setdefault(current, _Family())
                kind = line[:7]
                if not any(known.startswith(kind) for known in family.heading):
                    family.heading.append(line)
            elif line and not line.startswith("#"):
                name = line.partition("{")[0].partition(" ")[0]
                belongs = name == current or any(name == current + suffix for suffix in _SUFFIXES)
                family = families.setdefault(current if belongs else name, _Family())
                family.samples.append(_labelled(line, component))
    lines = [line for family in families.values() for line in (*family.heading, *family.samples)]
    return "\n".join(lines) + "\n"


def _labelled(sample: str, component: str) -> str:
    name, brace, rest = sample.partition("{")
    label = f'component="{component}"'
    if brace and " " not in name:
        return f"{name}{{{label}{rest}" if rest.startswith("}") else f"{name}{{{label},{rest}"
    name, _, value = sample.partition(" ")
    return f"{name}{{{label}}} {value}"
