"""Sequences of steps about one or two objects of a kind."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

from tests.conformance.fuzz.breakages import BREAKAGES, DIRECTIVES, Breakage
from tests.conformance.fuzz.contents import Strategy, maps, metadata, one_of_these, small, some, words
from tests.conformance.fuzz.kinds import Subject
from tests.conformance.fuzz.steps import Operation, Step

_LONGEST = 8

_names = one_of_these(*["one"] * 6, "two")
_managers = one_of_these("ann", "ben", "kubectl")
_breakages = st.builds(
    lambda is_broken, breakage: (breakage,) if is_broken else (),
    # A choice among strategies knows no weights, one among values does.
    one_of_these(False, False, False, True),
    st.builds(Breakage, st.integers(0, 200), one_of_these(*BREAKAGES)),
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
    return st.one_of(*[_of_version(subject, number) for number in range(len(subject.bodies))])


def _of_version(subject: Subject, version: int) -> Strategy:
    """Sequences that write through one API version; they read through all."""
    body = _few(subject.bodies[version], subject.least(version))
    lasting = st.one_of(st.just({}), st.fixed_dictionaries({"fieldManager": _managers}))
    first = st.builds(Step, verb=st.just("create"), content=body, version=st.just(version), query=lasting)
    # Where what is made up is refused, there is something nevertheless: without an object the rest would say little.
    least = Step("create", content=subject.least(version), version=version)
    return st.builds(
        lambda has_start, start, rest: [start, least, *rest] if has_start else rest,
        one_of_these(*[True] * 9, False),
        first,
        st.lists(_steps(subject, version), min_size=1, max_size=_LONGEST),
    )


def _steps(subject: Subject, version: int) -> Strategy:
    kind, whole = subject.kind, subject.bodies[version]
    body, some_of = _few(whole, subject.least(version)), _few(whole, {})
    versions = st.integers(0, len(subject.bodies) - 1)

    def step(verb: str, content: Strategy, query: Strategy = _sparse_options, **more: Strategy) -> Strategy:
        chosen = {"breakages": _breakages, "name": _names, "version": st.just(version), **more}
        return st.builds(Step, verb=st.just(verb), content=content, query=query, **chosen)

    def get(**more: Strategy) -> Strategy:
        return step("get", st.none(), st.just({}), breakages=st.just(()), version=versions, **more)

    options = [
        step("create", body, how=one_of_these("", "", "", "generate")),
        get(),
        step("put", body, how=one_of_these("live", "live", "none", "stale")),
        step("create", whole),
        step("edit", some_of),
        step("edit", some_of),
        step("edit", _marks),
        step("json-patch", _operations, breakages=st.just(())),
        step("merge", some_of),
        step("merge", some_of),
        step("merge", _marks),
        step("apply", body, _apply_options),
        step("apply", body, _apply_options),
        step("apply", body, _apply_options),
        step("apply", some_of, _apply_options),
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
        options += [step("strategic", some_of, breakages=directed), step("strategic", some_of, breakages=_directives)]
    else:
        options += [step("strategic", some_of)]
    if subject.statuses is not None:
        statuses = subject.statuses.map(lambda status: {"status": status})
        on_status = {"subresource": st.just("status")}
        options += [
            step("edit", statuses, **on_status),
            step("merge", statuses, **on_status),
            step("apply", statuses, _apply_options, **on_status),
            step("json-patch", _operations, breakages=st.just(()), **on_status),
            get(**on_status),
        ]
        if not kind.is_custom:
            options.append(step("strategic", statuses, **on_status))
    if kind.has_scale:
        on_scale = {"subresource": st.just("scale")}
        options += [
            get(**on_scale),
            step("put", _scales, how=one_of_these("live", "none", "stale"), **on_scale),
            step("merge", _scales, **on_scale),
            step("apply", _scales, _apply_options, **on_scale),
        ]
    return st.one_of(*options)


def _few(bodies: Strategy, least: dict[str, Any]) -> Strategy:
    """Bodies of what an object needs, and a few more fields: most of them are valid."""
    return st.builds(_picked, bodies, st.just(least), st.integers(0, 1 << 16))


def _picked(body: dict[str, Any], least: dict[str, Any], pick: int) -> dict[str, Any]:
    out = copy.deepcopy(least)
    if "metadata" in body and pick & 1:
        out["metadata"] = body["metadata"]
    nested = [key for key in ("spec", "status") if key in body]
    for key in nested:
        chosen = _chosen(body[key], pick)
        if chosen or pick & 2:
            out[key] = {**out.get(key, {}), **chosen}
    if not nested:
        out |= _chosen({key: item for key, item in body.items() if key != "metadata"}, pick)
    return out


def _chosen(fields: dict[str, Any], pick: int) -> dict[str, Any]:
    names = sorted(fields)
    kept = {names[(pick >> place) % len(names)] for place in (2, 5, 8)[: pick % 4]} if names else set()
    return {name: fields[name] for name in names if name in kept}
