"""Sequences of steps about one or two objects of a kind."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.conformance.fuzz.breakages import BREAKAGES, DIRECTIVES, Breakage
from tests.conformance.fuzz.contents import Strategy, maps, metadata, one_of_these, small, some, words
from tests.conformance.fuzz.kinds import Subject
from tests.conformance.fuzz.steps import Operation, Step

_LONGEST = 8

_names = one_of_these("one", "one", "one", "two")
_managers = one_of_these("ann", "ben", "kubectl")
_breakages = st.one_of(
    st.just(()),
    st.just(()),
    st.lists(st.builds(Breakage, st.integers(0, 200), one_of_these(*BREAKAGES)), min_size=1, max_size=1).map(tuple),
)
_directives = st.lists(st.builds(Breakage, st.integers(0, 60), one_of_these(*DIRECTIVES)), max_size=2).map(tuple)
_values = st.one_of(
    words, small, maps, one_of_these(None, [], {}, "", "1500m", -1, True, 1.5, [{}], "25%", {"name": "a"}, "7", "x=y")
)
_operations = st.lists(
    st.builds(
        Operation,
        one_of_these("add", "replace", "replace", "remove", "test", "copy", "move"),
        st.integers(0, 120),
        st.integers(0, 120),
        _values,
        one_of_these("", "", "", "/-", "/0", "/new", "/1"),
    ),
    min_size=1,
    max_size=3,
)
_options = st.fixed_dictionaries(
    {},
    optional={
        "dryRun": one_of_these("All"),
        "fieldManager": _managers,
        "fieldValidation": one_of_these("Strict", "Warn", "Ignore", "Strict"),
    },
)
_sparse_options = st.one_of(st.just({}), st.fixed_dictionaries({"fieldManager": _managers}), _options)
_apply_options = st.builds(
    lambda manager, more: {**more, "fieldManager": manager},
    _managers,
    st.one_of(
        one_of_these({}, {"force": "true"}, {"force": "true"}),
        st.fixed_dictionaries(
            {},
            optional={
                "force": one_of_these("true", "false"),
                "dryRun": st.just("All"),
                "fieldValidation": one_of_these("Strict", "Warn", "Ignore"),
            },
        ),
    ),
)
_delete_options = st.one_of(
    st.none(),
    some(
        gracePeriodSeconds=one_of_these(0, 1, 5, -1),
        propagationPolicy=one_of_these("Foreground", "Background", "Orphan", "Nope"),
        dryRun=one_of_these(["All"]),
    ).map(lambda fields: {"kind": "DeleteOptions", "apiVersion": "v1", **fields}),
)
_scales = some(spec=some(replicas=one_of_these(0, 1, 5, -1, 60, 101)), metadata=some(labels=maps))
_marks = st.builds(lambda fields: {"metadata": fields}, metadata)


def sequences(subject: Subject) -> Strategy:
    """Lists of steps that begin, mostly, with an object."""
    first = _first(subject)
    return st.builds(
        lambda start, rest: [start, *rest] if start else rest,
        st.one_of(first, first, first, st.none()),
        st.lists(_steps(subject), min_size=1, max_size=_LONGEST),
    )


def _steps(subject: Subject) -> Strategy:
    kind = subject.kind
    versions = st.integers(0, len(subject.bodies) - 1)

    def step(verb: str, content: Strategy, query: Strategy = _sparse_options, **more: Strategy) -> Strategy:
        chosen = {"breakages": _breakages, "name": _names, "version": versions, **more}
        return st.builds(Step, verb=st.just(verb), content=content, query=query, **chosen)

    def of_bodies(verb: str, query: Strategy = _sparse_options, how: Strategy = st.just("")) -> Strategy:
        return st.one_of(
            *[step(verb, body, query, version=st.just(number), how=how) for number, body in enumerate(subject.bodies)]
        )

    def partial(verb: str, query: Strategy = _sparse_options, **more: Strategy) -> Strategy:
        return st.one_of(
            *[
                step(verb, _partial(body), query, version=st.just(number), **more)
                for number, body in enumerate(subject.bodies)
            ]
        )

    options = [
        of_bodies("create", how=one_of_these("", "", "", "generate")),
        step("get", st.none(), query=st.just({}), breakages=st.just(())),
        of_bodies("put", how=one_of_these("live", "live", "none", "stale")),
        of_bodies("edit"),
        partial("edit"),
        step("edit", _marks),
        step("json-patch", _operations, breakages=st.just(())),
        partial("merge"),
        partial("merge"),
        step("merge", _marks),
        of_bodies("apply", _apply_options),
        of_bodies("apply", _apply_options),
        of_bodies("apply", _apply_options),
        partial("apply", _apply_options),
        step(
            "delete",
            _delete_options,
            query=one_of_these(
                {}, {}, {"dryRun": "All"}, {"gracePeriodSeconds": "0"}, {"propagationPolicy": "Foreground"}
            ),
            how=one_of_these("", "", "", "uid", "version", "wrong-uid", "wrong-version"),
            breakages=st.just(()),
        ),
    ]
    if not kind.is_custom:
        directed = st.builds(lambda one, two: one + two, _breakages, _directives)
        options += [partial("strategic", breakages=directed), partial("strategic", breakages=_directives)]
    else:
        options += [partial("strategic")]
    if subject.statuses is not None:
        statuses = subject.statuses.map(lambda status: {"status": status})
        on_status = {"subresource": st.just("status")}
        options += [
            step("edit", statuses, **on_status),
            step("merge", statuses, **on_status),
            step("apply", statuses, _apply_options, **on_status),
            step("json-patch", _operations, breakages=st.just(()), **on_status),
            step("get", st.none(), query=st.just({}), breakages=st.just(()), **on_status),
        ]
        if not kind.is_custom:
            options.append(step("strategic", statuses, **on_status))
    if kind.has_scale:
        on_scale = {"subresource": st.just("scale")}
        options += [
            step("get", st.none(), query=st.just({}), breakages=st.just(()), **on_scale),
            step("put", _scales, how=one_of_these("live", "none", "stale"), **on_scale),
            step("merge", _scales, **on_scale),
            step("apply", _scales, _apply_options, **on_scale),
        ]
    return st.one_of(*options)


def _first(subject: Subject) -> Strategy:
    lasting = st.one_of(st.just({}), st.fixed_dictionaries({"fieldManager": _managers}))
    return st.one_of(
        *[
            st.builds(Step, verb=st.just("create"), content=body, version=st.just(number), query=lasting)
            for number, body in enumerate(subject.bodies)
        ]
    )


def _partial(bodies: Strategy) -> Strategy:
    """Bodies with some of their fields only, at the first two levels."""
    return st.builds(_kept, bodies, st.integers(0, 1 << 16))


def _kept(body: dict[str, Any], mask: int) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for number, (key, item) in enumerate(sorted(body.items())):
        if mask >> (number % 4) & 1 and key != "spec":
            continue
        if key == "spec" and isinstance(item, dict):
            out[key] = {
                name: inner for place, (name, inner) in enumerate(sorted(item.items())) if mask >> (4 + place % 8) & 1
            }
        else:
            out[key] = item
    return out
