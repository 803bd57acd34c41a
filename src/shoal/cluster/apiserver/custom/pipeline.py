"""What happens to an object of a custom kind between the wire and the store, compiled once for each version."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.custom.checks import compile_check, run_ratcheting
from shoal.cluster.apiserver.custom.correlation import Correlation
from shoal.cluster.apiserver.custom.defaulting import compile_default
from shoal.cluster.apiserver.custom.lists import compile_list_check
from shoal.cluster.apiserver.custom.metadata import coerce_metadata, compile_embedded, embedded_problems
from shoal.cluster.apiserver.custom.pruning import compile_prune
from shoal.cluster.apiserver.custom.rules import compile_rule_tree
from shoal.cluster.apiserver.custom.scale import scale_problems
from shoal.cluster.apiserver.custom.wording import Check, Problems, Raw
from shoal.cluster.apiserver.refusals import Unhandled
from shoal.kube.admission.fields import FieldProblem, Reason

Object = dict[str, Any]

_BLOCKING = frozenset({Reason.NOT_SUPPORTED, Reason.REQUIRED, Reason.TOO_LONG, Reason.TOO_MANY, Reason.WRONG_TYPE})
_NOT_CHECKED = FieldProblem(
    "<nil>",
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation",
    Reason.INVALID,
    None,
)


class Pipeline:
    """The schema of one version at work."""

    def __init__(
        self, raw: Raw, *, kind: str = "", version: str = "", scale: Raw | None = None, keeps_unknown: bool = False
    ) -> None:
        self.raw = raw
        self._kind, self._version = kind, version
        self._scale = scale
        self._prune = None if keeps_unknown else compile_prune(raw, is_root=True)
        self._default = compile_default(raw)
        self._embedded = compile_embedded({**raw, "x-kubernetes-embedded-resource": False})
        self._check = compile_check(raw)
        self._lists = compile_list_check(raw)
        self._rules = compile_rule_tree(raw, is_resource=True)
        status = (raw.get("properties") or {}).get("status")
        self._status_raw: Raw = status or {}
        self._status_check = compile_check(status) if status else None

    def read(self, value: Object, unknown: list[str] | None = None) -> Object:
        """Brings a body into the form in which it is kept: defaults, known fields, metadata as Go has it.

        Adds ``unknown field "spec.x"`` for each field that is dropped; raises Refused (400) for unreadable metadata.
        """
        try:
            self.default(value)
            self.coerce(value, unknown)
            self.prune(value, unknown)
        except RecursionError:
            raise Unhandled(self._kind, self._version, self._kind, "exceeded max depth") from None
        return value

    def prune(self, value: Object, unknown: list[str] | None = None) -> None:
        """Drops unknown fields; names them in the list, sorted, where there is one."""
        if self._prune is None:
            return
        found: list[str] | None = None if unknown is None else []
        self._prune(value, None, found)
        if found and unknown is not None:
            unknown.extend(sorted(found))

    def default(self, value: Object) -> None:
        """Fills in defaults, and drops nulls where a value may not be null."""
        if self._default is not None:
            self._default(value)

    def coerce(self, value: Object, unknown: list[str] | None = None) -> None:
        """Brings metadata, of the object and of those embedded in it, into Go's form; raises Refused (400)."""
        try:
            coerce_metadata(value, None, unknown)
            if self._embedded is not None:
                self._embedded(value, None, lambda found, place: coerce_metadata(found, place, unknown))
        except ValueError as error:
            raise Unhandled(self._kind, self._version, self._kind, str(error)) from None

    def validate(self, new: Object, old: Object | None = None) -> list[FieldProblem]:
        """What is wrong with an object, or with the change from the old one; its own metadata is not looked at."""
        problems = self._schema_problems(self._check, new, old, self.raw)
        if self._scale is not None:
            problems += scale_problems(new, self._scale)
        if self._embedded is not None:
            self._embedded(new, None, lambda found, place: problems.extend(embedded_problems(found, place)))
        self._list_problems(new, old, problems)
        self._rule_problems(new, old, problems)
        return problems

    def validate_status(self, new: Object, old: Object) -> list[FieldProblem]:
        """The same for a change of status alone."""
        problems: Problems = []
        if "status" in new and self._status_check is not None:
            found = self._schema_problems(self._status_check, new["status"], old.get("status"), self._status_raw)
            problems += [_below_status(each) for each in found]
        if self._scale is not None:
            problems += scale_problems(new, self._scale, is_status=True)
        self._list_problems(new, old, problems)
        self._rule_problems(new, old, problems)
        return problems

    def _schema_problems(self, check: Check | None, new: Any, old: Any, raw: Raw) -> Problems:
        problems: Problems = []
        if check is None:
            return problems
        check(new, None, problems, None)
        if problems and old is not None:
            problems = []
            run_ratcheting(check, new, None, problems, Correlation(new, old, raw))
        return problems

    def _list_problems(self, new: Object, old: Object | None, problems: Problems) -> None:
        if self._lists is None:
            return
        found: Problems = []
        self._lists(new, None, found)
        if found and old is not None:
            before: Problems = []
            self._lists(old, None, before)
            found = [] if before else found
        problems += found

    def _rule_problems(self, new: Object, old: Object | None, problems: Problems) -> None:
        if self._rules is None:
            return
        if any(each.reason in _BLOCKING for each in problems):
            problems.append(_NOT_CHECKED)
            return
        relation = None if old is None else Correlation(new, old, self.raw)
        self._rules(new, old, None, (relation, None), problems)


def _below_status(problem: FieldProblem) -> FieldProblem:
    path = "status" if problem.path in ("<nil>", "") else f"status.{problem.path}"
    return FieldProblem(path, problem.message, problem.reason, problem.value)
