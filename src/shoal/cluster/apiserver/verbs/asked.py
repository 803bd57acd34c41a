"""What a request on a kind asks for, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from shoal.cluster.apiserver.access.user import User
from shoal.cluster.apiserver.builtin.metadata import FIELD_MANAGER_LIMIT, field_manager_problems
from shoal.cluster.apiserver.calls import Call
from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.cluster.apiserver.offload import HEAVY_BYTES, Offload
from shoal.cluster.apiserver.refusals import Refused, bad_request, invalid
from shoal.cluster.apiserver.storage import Record
from shoal.kube.admission.fields import FieldProblem, forbidden, not_supported, required

T = TypeVar("T")

_YAML_PROBLEMS = "yaml: unmarshal errors:\n"
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")


@dataclass(kw_only=True, slots=True)
class WriteOptions:
    """What all writes understand."""

    dry_run: bool = False
    manager: str = ""
    validation: str = "Warn"
    force: bool | None = None


@dataclass(kw_only=True, slots=True)
class Asked:
    """One request on a kind, its user known and allowed."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    user: User
    call: Call
    options: WriteOptions = field(default_factory=WriteOptions)
    warnings: list[str] = field(default_factory=list)
    is_staged: bool = False
    """Whether the store has taken the write: it goes on, also where nobody waits for it any more."""
    offload: Offload | None = None
    """Worker threads for what takes long; None where nobody else waits, as in the server's own writes."""
    stored_size: int = 0
    """The bytes of the stored object that the request is about, where it is computed with."""

    is_costly: bool = False
    """Whether a small object of this kind may take long: the schema and the rules of a definition are compiled."""

    async def computed(self, work: Callable[[], T], *, evaluates: bool = False) -> T:
        """The result of a pure computation on the request and its object, in a worker thread where they are large.

        ``evaluates`` where it runs CEL rules, which may take long on a small object, too.
        """
        size = HEAVY_BYTES if self.is_costly else len(self.call.body) + self.stored_size
        if self.offload is None or (size < HEAVY_BYTES and not evaluates):
            return work()
        return await self.offload.compute(self.user.name, size, work)


@dataclass(kw_only=True, slots=True)
class Outcome:
    """What a write left: a stored object, or (after a dry run, or from a subresource) one that is nowhere stored."""

    kind: Kind
    record: Record | None = None
    object: Object | None = None
    status: int = 200


def write_options(call: Call, options_kind: str, *, is_apply: bool = False) -> WriteOptions:
    """The options that every write understands, from the query; raises Refused where one is wrong."""
    problems: list[FieldProblem] = []
    manager = call.value("fieldManager")
    force = _boolean(call.value("force"))
    if options_kind == "PatchOptions":
        if is_apply and not manager:
            problems.append(required("fieldManager", "is required for apply patch"))
        if not is_apply and force is not None:
            problems.append(forbidden("force", "may not be specified for non-apply patch"))
    problems += field_manager_problems(manager, "fieldManager")
    dry_run = call.query.get("dryRun", ())
    if any(value != "All" for value in dry_run):
        problems.append(not_supported("dryRun", list(dry_run), ["All"]))
    validation = call.value("fieldValidation")
    if validation not in _VALIDATIONS:
        problems.append(not_supported("fieldValidation", validation, list(_VALIDATIONS)))
    if problems:
        raise invalid(options_kind, "meta.k8s.io", "", problems)
    return WriteOptions(
        dry_run="All" in dry_run,
        manager=manager or _agent(call.headers.get("user-agent", "")),
        validation=validation or "Warn",
        force=force,
    )


def field_checks(asked: Asked, unknown: list[str], *, prefix: str = "strict decoding error: ") -> None:
    """Refuses, tells or passes over fields that are not known, as the request asks."""
    if not unknown or asked.options.validation == "Ignore":
        return
    if asked.options.validation == "Strict":
        raise strict_refusal(unknown, prefix)
    asked.warnings.extend(line.strip() for one in unknown for line in one.removeprefix(_YAML_PROBLEMS).split("\n"))


def strict_refusal(unknown: list[str], prefix: str = "strict decoding error: ") -> Refused:
    """400: fields that nobody declared, or that came twice."""
    return bad_request(prefix + ", ".join(unknown))


def _agent(header: str) -> str:
    """The manager of a client that names none: the first word of its user agent."""
    return header.partition("/")[0][:FIELD_MANAGER_LIMIT] or "unknown"


def _boolean(text: str) -> bool | None:
    return None if not text else text.lower() in ("1", "true", "t")
