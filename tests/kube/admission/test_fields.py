from __future__ import annotations

import pytest

from shoal.kube.admission import (
    FieldProblem,
    Reason,
    duplicate,
    forbidden,
    immutable,
    invalid,
    not_found,
    not_supported,
    required,
    too_long,
    too_many,
)
from shoal.kube.admission.fields import invalid_status


@pytest.mark.parametrize(
    ("problem", "said", "reason"),
    [
        pytest.param(
            invalid("spec.priority", -3, "must be at least 0"),
            "spec.priority: Invalid value: -3: must be at least 0",
            "FieldValueInvalid",
            id="invalid number",
        ),
        pytest.param(
            invalid("spec.parent", 'a"b', "no quotes"),
            r'spec.parent: Invalid value: "a\"b": no quotes',
            "FieldValueInvalid",
            id="invalid text is quoted",
        ),
        pytest.param(
            invalid("spec.limits", {"gpu": [1]}, "too odd"),
            'spec.limits: Invalid value: {"gpu":[1]}: too odd',
            "FieldValueInvalid",
            id="invalid structure is shown as JSON",
        ),
        pytest.param(
            invalid("spec.on", True, "off"), "spec.on: Invalid value: true: off", "FieldValueInvalid", id="invalid bool"
        ),
        pytest.param(
            invalid("spec.x", None, "y"), "spec.x: Invalid value: null: y", "FieldValueInvalid", id="invalid null"
        ),
        pytest.param(required("spec.resources"), "spec.resources: Required value", "FieldValueRequired", id="required"),
        pytest.param(
            required("spec.resources", "a queue needs a quota"),
            "spec.resources: Required value: a queue needs a quota",
            "FieldValueRequired",
            id="required, and why",
        ),
        pytest.param(
            forbidden("spec.x", "may not be set"),
            "spec.x: Forbidden: may not be set",
            "FieldValueForbidden",
            id="forbidden",
        ),
        pytest.param(
            immutable("spec.parent", "b"),
            'spec.parent: Invalid value: "b": field is immutable',
            "FieldValueInvalid",
            id="immutable",
        ),
        pytest.param(
            duplicate("spec.limits[1].name", "gpu"),
            'spec.limits[1].name: Duplicate value: "gpu"',
            "FieldValueDuplicate",
            id="duplicate",
        ),
        pytest.param(
            not_supported("spec.kind", "c", ["a", "b"]),
            'spec.kind: Unsupported value: "c": supported values: "a", "b"',
            "FieldValueNotSupported",
            id="not supported",
        ),
        pytest.param(
            not_found("spec.parent", "root"), 'spec.parent: Not found: "root"', "FieldValueNotFound", id="not found"
        ),
        pytest.param(
            too_long("metadata.name", 63),
            "metadata.name: Too long: may not be more than 63 bytes",
            "FieldValueTooLong",
            id="too long",
        ),
        pytest.param(
            too_many("spec.limits", 9, 8),
            "spec.limits: Too many: 9: must have at most 8 items",
            "FieldValueTooMany",
            id="too many",
        ),
        pytest.param(
            FieldProblem("spec.x", "no value is shown where none was given"),
            "spec.x: Invalid value: no value is shown where none was given",
            "FieldValueInvalid",
            id="value left out",
        ),
        pytest.param(
            FieldProblem("spec.x", "Expected `int`", Reason.WRONG_TYPE),
            "spec.x: Invalid value: Expected `int`",
            "FieldValueTypeInvalid",
            id="wrong type",
        ),
    ],
)
def test_a_problem_is_worded_as_kubernetes_words_its_own(problem: FieldProblem, said: str, reason: str) -> None:
    assert str(problem) == said
    (cause,) = invalid_status("g", "K", "n", [problem]).details.causes
    assert (cause.field, cause.reason, f"{cause.field}: {cause.message}") == (problem.path, reason, said)


def test_one_problem_is_told_in_one_sentence() -> None:
    status = invalid_status("scheduling.run.ai", "Queue", "team-a", [required("spec.resources")])
    assert status.message == 'Queue.scheduling.run.ai "team-a" is invalid: spec.resources: Required value'
    assert (status.code, status.reason, status.status) == (422, "Invalid", "Failure")
    assert (status.details.name, status.details.group, status.details.kind) == ("team-a", "scheduling.run.ai", "Queue")


def test_several_problems_are_listed_and_the_same_one_is_told_once() -> None:
    status = invalid_status("", "Pod", "p", [required("a"), invalid("b", [1], "c"), required("a")])
    assert status.message == 'Pod "p" is invalid: [a: Required value, b: Invalid value: [1]: c]'
    assert [cause.field for cause in status.details.causes] == ["a", "b"]


def test_of_very_many_problems_the_first_are_named_and_the_others_counted() -> None:
    long = ["x" * 1000] * 1000
    status = invalid_status("", "ConfigMap", "wide", [invalid(f"data[{n}]", long, "is wrong") for n in range(10_000)])
    assert len(status.message) < 2_000_000
    assert status.message.endswith(", and 9999 more]")
    assert len(status.details.causes) == 1
