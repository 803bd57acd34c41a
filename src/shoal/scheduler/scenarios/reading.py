"""Reading case files. A file that is none is refused; a case that cannot be read fails, and the others still run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from shoal.scheduler.scenarios.cases import DivisionCase, JobCase, Scenario

_PLACE: Final = re.compile(r"^(?P<what>.*?)(?: - at `(?:key in )?\$\.?(?P<field>[^`]*)`)?$", re.DOTALL)
_NAMES: Final = frozenset({"gpu_groups", "node_affinity", "levels", "plugins"})
"""Lists of names: whoever writes ``[0]`` means ``['0']``."""


class UnreadableFileError(Exception):
    """A file that holds no cases."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path
        self.why = why


class UnreadableCaseError(Exception):
    """A case that cannot be read."""

    def __init__(self, path: str, case: str, field: str, why: str) -> None:
        super().__init__(f"{path}: case {case}: {f'{field}: ' if field else ''}{why}")
        self.path = path
        self.case = case
        self.field = field
        self.why = why


@dataclass(frozen=True, slots=True)
class CaseFile:
    """What a file holds, in its order."""

    path: str
    cases: tuple[Scenario | DivisionCase | UnreadableCaseError, ...]


def read(path: Path | str) -> CaseFile:
    """The cases of a file: scenarios under ``scenarios:``, divisions under ``cases:``."""
    name = str(path)
    try:
        written = yaml.load(Path(path).read_text(encoding="utf-8"), Loader=_LOADER)  # noqa: S506 - a safe loader
    except OSError as error:
        raise UnreadableFileError(name, error.strerror or str(error)) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UnreadableFileError(name, " ".join(f"no YAML: {error}".split())) from error
    return parse(name, written)


def parse(path: str, written: Any) -> CaseFile:
    """The same, of what YAML made of the file."""
    if isinstance(written, Mapping):
        for key, kind in (("scenarios", Scenario), ("cases", DivisionCase)):
            found = written.get(key)
            if isinstance(found, list):
                return CaseFile(path, tuple(_case(path, place, case, kind) for place, case in enumerate(found)))
    raise UnreadableFileError(path, "neither a list `scenarios` nor a list `cases` in it")


def _case(
    path: str, place: int, written: Any, kind: type[Scenario] | type[DivisionCase]
) -> Scenario | DivisionCase | UnreadableCaseError:
    name = str(written.get("id") or f"#{place}") if isinstance(written, Mapping) else f"#{place}"
    try:
        case = msgspec.convert(_plain(written), kind, strict=False)
    except msgspec.ValidationError as error:
        found = _PLACE.match(str(error))
        assert found is not None
        return UnreadableCaseError(path, name, found["field"] or "", found["what"])
    wrong = _contradiction(case) if isinstance(case, Scenario) else None
    return UnreadableCaseError(path, name, *wrong) if wrong else case


def _plain(written: Any, key: object = None) -> Any:
    """Names that YAML took for numbers are names again."""
    if isinstance(written, Mapping):
        return {str(field): _plain(value, field) for field, value in written.items()}
    if isinstance(written, list):
        return [str(value) if key in _NAMES else _plain(value) for value in written]
    if key in {"name", "node", "queue", "parent", "sub_group", "id"} and isinstance(written, int | float):
        return str(written)
    return written


def _contradiction(scenario: Scenario) -> tuple[str, str] | None:
    """The field that names something that is not there, and what is wrong with it."""
    queues = {queue.name for queue in scenario.queues}
    for place, queue in enumerate(scenario.queues):
        if queue.parent and queue.parent not in queues:
            return f"queues[{place}].parent", f"there is no queue {queue.parent!r}"
    jobs = {job.name for job in scenario.jobs}
    if len(jobs) < len(scenario.jobs):
        return "jobs", "two jobs have the same name"
    for place, job in enumerate(scenario.jobs):
        wrong = _contradiction_in_job(job, set(scenario.nodes))
        if wrong:
            return f"jobs[{place}].{wrong[0]}", wrong[1]
    for name in scenario.expect.jobs:
        if name not in jobs:
            return f"expect.jobs.{name}", "there is no such job"
    for name in scenario.expect.nodes:
        if name not in scenario.nodes:
            return f"expect.nodes.{name}", "there is no such node"
    return None


def _contradiction_in_job(job: JobCase, nodes: set[str]) -> tuple[str, str] | None:
    leaves = {leaf.name for leaf in job.tree().leaves()}
    for index, task in enumerate(job.tasks):
        if task.node and task.node not in nodes:
            return f"tasks[{index}].node", f"there is no node {task.node!r}"
        if task.sub_group and task.sub_group not in leaves:
            return f"tasks[{index}].sub_group", f"there is no such group of pods: {task.sub_group!r}"
    return None


class _LOADER(yaml.SafeLoader):
    """YAML as people write it: ``20e9`` is a number, too."""


_LOADER.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:[0-9][0-9_]*)(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)$"),
    list("-+0123456789"),
)
