from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.meta.selector import (
    SELECT_EVERYTHING,
    SELECT_NOTHING,
    InvalidSelector,
    LabelOperator,
    LabelRequirement,
    LabelSelector,
    LabelSelectorRequirement,
    Selector,
    selector_problems,
)

Op = LabelOperator


def needs(key: str, operator: str, *values: str) -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key=key, operator=operator, values=list(values))


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("", {}),
        ("", {"x": "y"}),
        ("x=y", {"x": "y"}),
        ("x==y", {"x": "y"}),
        ("x=y,z=w", {"x": "y", "z": "w"}),
        ("x!=y,z!=w", {"x": "z", "z": "a"}),
        ("x!=y", {}),
        ("notin=in", {"notin": "in"}),
        ("in in (in,notin)", {"in": "notin"}),
        ("x", {"x": ""}),
        ("!x", {"y": "z"}),
        ("x=", {"x": ""}),
        ("x in ()", {"x": ""}),
        ("x in (a,b)", {"x": "b"}),
        ("x notin (a,b)", {"x": "c"}),
        ("x notin (a,b)", {}),
        ("x>1", {"x": "2"}),
        ("x<1", {"x": "0"}),
        ("x<1", {"x": "-5"}),
        ("x>1,x<3", {"x": "2"}),
        ("foo=bar,baz=blah", {"foo": "bar", "baz": "blah", "more": "of it"}),
    ],
)
def test_a_text_selects(text: str, labels: dict[str, str]) -> None:
    assert Selector.parse(text).matches(labels)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("x=z", {}),
        ("x=", {}),
        ("x=y", {"x": "z"}),
        ("x=y,z=w", {"x": "w", "z": "w"}),
        ("x!=y,z!=w", {"x": "z", "z": "w"}),
        ("x", {"y": "z"}),
        ("!x", {"x": ""}),
        ("x in ()", {}),
        ("x in (a,b)", {"x": "c"}),
        ("x notin (a,b)", {"x": "a"}),
        ("x>1", {"x": "1"}),
        ("x>1", {"x": "0"}),
        ("x>1", {}),
        ("x>1", {"x": "v2"}),
        ("x>1", {"x": "2.5"}),
        ("x>1", {"x": "9223372036854775808"}),
        ("x<1", {"x": "2"}),
        ("x<1", {"x": ""}),
        ("x=a,x=b", {"x": "a"}),
        ("foo=bar,foobar=bar,baz=blah", {"foo": "bar", "baz": "blah"}),
    ],
)
def test_a_text_does_not_select(text: str, labels: dict[str, str]) -> None:
    assert not Selector.parse(text).matches(labels)


@pytest.mark.parametrize(
    ("text", "requirements"),
    [
        ("", []),
        (" \t", []),
        ("\rx", [("x", Op.EXISTS)]),
        ("a ", [("a", Op.EXISTS)]),
        ("this-is-a-dns.domain.com/key-with-dash", [("this-is-a-dns.domain.com/key-with-dash", Op.EXISTS)]),
        ("0.1.2.domain/99 notin (10.10.100.1, t.t)", [("0.1.2.domain/99", Op.NOT_IN, "10.10.100.1", "t.t")]),
        ("foo  in\t (abc)", [("foo", Op.IN, "abc")]),
        ("x notin\n (abc)", [("x", Op.NOT_IN, "abc")]),
        ("x in(def,abc)", [("x", Op.IN, "abc", "def")]),
        ("x in (abc,)", [("x", Op.IN, "", "abc")]),
        ("x in (abc,abc)", [("x", Op.IN, "abc")]),
        ("x in ()", [("x", Op.IN, "")]),
        ("x in (,)", [("x", Op.IN, "")]),
        ("x in (a,,a,,a,,)", [("x", Op.IN, "", "a")]),
        ("x notin ( )", [("x", Op.NOT_IN, "")]),
        ("x notin (, a)", [("x", Op.NOT_IN, "", "a")]),
        ("a in (x,y,notin, z,in)", [("a", Op.IN, "in", "notin", "x", "y", "z")]),
        (
            "x notin (abc,,def),bar,z in (),w",
            [("bar", Op.EXISTS), ("w", Op.EXISTS), ("x", Op.NOT_IN, "", "abc", "def"), ("z", Op.IN, "")],
        ),
        ("x= ,z= ", [("x", Op.EQUALS, ""), ("z", Op.EQUALS, "")]),
        ("x==a", [("x", Op.EQUALS, "a")]),
        ("a=b,c!=d,e in (x,y),!f,g, h==i, x>1, y<2", [
            ("a", Op.EQUALS, "b"),
            ("c", Op.NOT_EQUALS, "d"),
            ("e", Op.IN, "x", "y"),
            ("f", Op.DOES_NOT_EXIST),
            ("g", Op.EXISTS),
            ("h", Op.EQUALS, "i"),
            ("x", Op.GREATER_THAN, "1"),
            ("y", Op.LESS_THAN, "2"),
        ]),
    ],
)  # fmt: skip
def test_a_text_reads_as_requirements_sorted_by_key(text: str, requirements: list[Any]) -> None:
    expected = tuple(LabelRequirement(key, operator, tuple(values)) for key, operator, *values in requirements)
    assert Selector.parse(text).requirements == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x=a||y=b", "found '=' where ',' belongs"),
        ("x==a==b", "found '==' where ',' belongs"),
        ("!x=a", "found '=' where ',' belongs"),
        ("!", "found the end where a label key belongs"),
        ("!!x", "found '!' where a label key belongs"),
        ("x<a", "'x' needs a whole number with <"),
        ("x>", "'x' needs a whole number with >"),
        ("x>99999999999999999999", "'x' needs a whole number with >"),
        ("x,,y", "found ',' where a label key belongs"),
        (",x,y", "found ',' where a label key belongs"),
        ("x,", "found the end where a label key belongs"),
        ("x nott in (y)", "found 'nott' where one of = == != in notin > <"),
        ("a in (xyz)b notin ()", "found 'b' where ',' belongs"),
        ("a in (xyz abc)", "found 'abc' where ',' belongs"),
        ("a in xyz", "found 'xyz' where '(' belongs"),
        ("a notin(", "found the end where a value or ')' belongs"),
        ("a in (b", "found the end where ',' belongs"),
        ("a in (b,(", "found '(' where a value or ')' belongs"),
        ("a (", "found '(' where one of = == != in notin > <"),
        ("(", "found '(' where a label key belongs"),
        ("=a", "found '=' where a label key belongs"),
        ("x=)", "found ')' where a value belongs"),
        ("-x=a", "label key '-x' name part must consist of"),
        ("a/b/c", "label key 'a/b/c' must have at most one '/'"),
        ("x=-a", "value '-a' of 'x' must consist of"),
        ("x in (ok," + "a" * 64 + ")", "must be no more than 63 characters, and has 64"),
        (str(SELECT_NOTHING), "found '<' where a label key belongs"),
    ],
)
def test_a_wrong_text_is_refused_with_what_is_wrong_and_where(text: str, problem: str) -> None:
    with pytest.raises(InvalidSelector) as refusal:
        Selector.parse(text)
    assert f"label selector {text!r} is not valid: " in str(refusal.value)
    assert problem in str(refusal.value)


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        (LabelSelector(), ""),
        (LabelSelector(match_labels={"foo": "bar"}), "foo=bar"),
        (LabelSelector(match_labels={"foo": "bar", "app": ""}), "app=,foo=bar"),
        (LabelSelector(match_expressions=[needs("baz", "In", "qux", "norf")]), "baz in (norf,qux)"),
        (LabelSelector(match_expressions=[needs("baz", "In", "one")]), "baz in (one)"),
        (
            LabelSelector(match_labels={"foo": "bar"}, match_expressions=[needs("baz", "NotIn", "qux")]),
            "baz notin (qux),foo=bar",
        ),
        (LabelSelector(match_expressions=[needs("z", "Exists"), needs("y", "DoesNotExist")]), "!y,z"),
        (LabelSelector(match_expressions=[needs("z", "NotIn", "")]), "z notin ()"),
    ],
)
def test_the_object_form_is_written_as_text(selector: LabelSelector, text: str) -> None:
    assert str(Selector.of(selector)) == text
    assert Selector.parse(text) == Selector.of(selector)


def test_an_absent_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert Selector.of(None) == SELECT_NOTHING
    assert not SELECT_NOTHING.matches({})
    assert not SELECT_NOTHING.matches({"a": "b"})
    assert not SELECT_NOTHING.is_everything
    assert Selector.of(LabelSelector()) == SELECT_EVERYTHING
    assert SELECT_EVERYTHING.matches({})
    assert SELECT_EVERYTHING.matches({"a": "b"})
    assert SELECT_EVERYTHING.is_everything


@pytest.mark.parametrize(
    ("labels", "selected"),
    [
        ({"app": "train", "tier": "gpu"}, True),
        ({"app": "train"}, True),
        ({"app": "train", "tier": "cpu"}, False),
        ({"app": "train", "retired": ""}, False),
        ({"app": "serve"}, False),
        ({}, False),
    ],
)
def test_all_requirements_of_the_object_form_must_hold(labels: dict[str, str], selected: bool) -> None:
    data = b"""{"matchLabels": {"app": "train"}, "matchExpressions": [
        {"key": "tier", "operator": "NotIn", "values": ["cpu"]}, {"key": "retired", "operator": "DoesNotExist"}]}"""
    assert Selector.of(msgspec.json.decode(data, type=LabelSelector)).matches(labels) is selected


@pytest.mark.parametrize(
    ("selector", "problem"),
    [
        (LabelSelector(match_labels={"-a": "b"}), "matchLabels: label key '-a' name part must consist of"),
        (LabelSelector(match_labels={"a": "b c"}), "matchLabels: value 'b c' of 'a' must consist of"),
        (
            LabelSelector(match_expressions=[needs("a", "Exists"), needs("b", "In")]),
            "matchExpressions[1]: 'b' needs at least one value with In and NotIn",
        ),
        (
            LabelSelector(match_expressions=[needs("a", "Exists", "b")]),
            "matchExpressions[0]: 'a' takes no values with Exists and DoesNotExist",
        ),
        (
            LabelSelector(match_expressions=[needs("a", "Equals", "b")]),
            "matchExpressions[0]: operator 'Equals' is unknown: use one of In, NotIn, Exists, DoesNotExist",
        ),
        (
            LabelSelector(match_expressions=[needs("", "Exists")]),
            "matchExpressions[0]: label key '' name part must not be",
        ),
    ],
)
def test_a_wrong_object_form_is_refused_with_the_field_that_is_wrong(selector: LabelSelector, problem: str) -> None:
    assert len(selector_problems(selector)) == 1
    assert selector_problems(selector)[0].startswith(problem)
    with pytest.raises(InvalidSelector, match="label selector is not valid") as refusal:
        Selector.of(selector)
    assert refusal.value.problems == selector_problems(selector)


def test_all_problems_of_a_selector_are_told_at_once() -> None:
    selector = LabelSelector(match_labels={"a b": "c d"}, match_expressions=[needs("x", "Like", "y")])
    assert len(selector_problems(selector)) == 3


def test_a_selector_is_a_key_for_what_it_selects() -> None:
    assert len({Selector.parse("a=b,c"), Selector.parse("c, a==b"), Selector.parse("a")}) == 2
    assert Selector.of_labels({"c": "d", "a": "b"}) == Selector.parse("a=b,c=d")


words = st.text("abz019", min_size=1, max_size=4)
keys = st.one_of(words, st.builds("{}.io/{}".format, words, words), st.sampled_from(["in", "notin", "exists"]))
values = st.one_of(words, st.sampled_from(["", "in", "notin", "a-b_c.d"]))
selectors = st.lists(
    st.one_of(
        st.builds(LabelRequirement, keys, st.sampled_from([Op.EXISTS, Op.DOES_NOT_EXIST])),
        st.builds(LabelRequirement, keys, st.sampled_from([Op.EQUALS, Op.NOT_EQUALS]), st.tuples(values)),
        st.builds(
            LabelRequirement,
            keys,
            st.sampled_from([Op.GREATER_THAN, Op.LESS_THAN]),
            st.tuples(st.integers(0, 99).map(str)),
        ),
        st.builds(
            LabelRequirement,
            keys,
            st.sampled_from([Op.IN, Op.NOT_IN]),
            st.sets(values, min_size=1).map(lambda found: tuple(sorted(found))),
        ),
    ),
    max_size=4,
).map(lambda requirements: Selector(tuple(sorted(requirements, key=lambda requirement: requirement.key))))
labels = st.dictionaries(keys, values, max_size=4)


@given(selectors, labels)
def test_a_selector_survives_its_text(selector: Selector, labels: dict[str, str]) -> None:
    again = Selector.parse(str(selector))
    assert again == selector
    assert again.matches(labels) == selector.matches(labels)


@given(keys, st.sets(values, min_size=1), labels)
def test_a_requirement_and_its_negation_divide_all_objects(key: str, wanted: set[str], labels: dict[str, str]) -> None:
    inside = LabelSelector(match_expressions=[needs(key, "In", *wanted)])
    outside = LabelSelector(match_expressions=[needs(key, "NotIn", *wanted)])
    assert Selector.of(inside).matches(labels) != Selector.of(outside).matches(labels)
    assert Selector.parse(key).matches(labels) != Selector.parse(f"!{key}").matches(labels)


@given(labels, labels)
def test_labels_select_exactly_their_supersets(wanted: dict[str, str], labels: dict[str, str]) -> None:
    assert Selector.of_labels(wanted).matches(labels) == (wanted.items() <= labels.items())
    assert Selector.of_labels(wanted).matches(wanted)


@given(st.text("ab=!(),<> inot", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        selector = Selector.parse(text)
    except InvalidSelector:
        return
    assert Selector.parse(str(selector)) == selector
