"""Bodies as clients send them; every message was seen on a real server."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cluster.apiserver.kinds.bodies import BadBody, read_json, read_yaml, version_and_kind
from shoal.cluster.apiserver.kinds.yaml_reader import BadYaml, read_document

JSON_ERROR = "couldn't get version/kind; json parse error: "


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"a":1,"b":{"c":[true,null,"x",2.5]}}', {"a": 1, "b": {"c": [True, None, "x", 2.5]}}),
        (b'{"a" : 1}', {"a": 1}),
        (b'{"a":"\\"b\\":1"}', {"a": '"b":1'}),
        (b'{"a\\\\":1}', {"a\\": 1}),
        (b'{"a":"\xff"}', {"a": "\ufffd"}),
        (b'{"a":"\\ud800x\\ud83d\\ude00"}', {"a": "\ufffdx😀"}),
        (b"null", None),
    ],
    ids=["usual", "blanks", "quotes in a text", "backslash in a key", "no UTF-8", "lone surrogate", "null"],
)
def test_json_is_read(raw: bytes, value: Any) -> None:
    assert read_json(raw) == (value, [])


def test_objects_that_are_given_twice_are_put_together_where_their_type_is_known() -> None:
    raw = b'{"data":{"a":"1","c":{"d":1}},"data":{"b":"2","c":{"e":2}},"list":[1],"list":[2]}'
    assert read_json(raw, merges=True)[0] == {"data": {"a": "1", "b": "2", "c": {"d": 1, "e": 2}}, "list": [2]}
    assert read_json(raw)[0] == {"data": {"b": "2", "c": {"e": 2}}, "list": [2]}


def test_fields_that_are_given_twice_are_told() -> None:
    raw = (
        b'{"metadata":{"name":"a","name":"b","labels":{"x":"1","x":"2"}},'
        b'"spec":{"containers":[{"name":"a","name":"a","name":"c"}]}}'
    )
    value, duplicates = read_json(raw)
    assert value["metadata"]["name"] == "b"
    assert duplicates == [
        'duplicate field "metadata.name"',
        'duplicate field "metadata.labels.x"',
        'duplicate field "spec.containers[0].name"',
    ]


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":1,"a":2}',
        b'{"a": 1, "a": ":"}',
        b'{"a":1,"a":"\\u003a"}',
        b'{"a":1,"\\u0061":"\\u0022:"}',
        b'{"a":1,"a":1e5}',
    ],
)
def test_a_field_that_is_given_twice_is_told_however_it_is_written(raw: bytes) -> None:
    assert read_json(raw)[1] == ['duplicate field "a"']


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"", "unexpected end of JSON input"),
        (b"{x", "invalid character 'x' looking for beginning of object key string"),
        (b'{"kind":"Pod"} x', "invalid character 'x' after top-level value"),
        (b'{"spec":NaN}', "invalid character 'N' looking for beginning of value"),
        (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        (b"[1,]", "invalid character ']' looking for beginning of value"),
        (b"[1 2]", "invalid character '2' after array element"),
        (b'{"a":1 "b":2}', "invalid character '\"' after object key:value pair"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b"{'a':1}", r"invalid character '\'' looking for beginning of object key string"),
        (b'{"a":"\n"}', r"invalid character '\n' in string literal"),
        (b'"\\q"', "invalid character 'q' in string escape code"),
        (b'"\\u12g4"', r"invalid character 'g' in \u hexadecimal character escape"),
        (b"trux", "invalid character 'x' in literal true (expecting 'e')"),
        (b"-x", "invalid character 'x' in numeric literal"),
        (b"1.x", "invalid character 'x' after decimal point in numeric literal"),
        (b"1ex", "invalid character 'x' in exponent of numeric literal"),
        (b"[" * 20000 + b"]" * 20000, "invalid character '[' exceeded max depth"),
    ],
    ids=lambda value: None if isinstance(value, bytes) else value,
)
def test_what_is_no_json_is_refused_in_gos_words(raw: bytes, problem: str) -> None:
    with pytest.raises(BadBody) as refused:
        read_json(raw)
    assert refused.value.problem == JSON_ERROR + problem


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"", "<empty>"),
        (b"[", "5b"),
        (b"{x", "{x"),
        (b'{"kind":"Pod","apiVersion":"v1",', '{"kind":"Pod","apiVersion":"v1 ...'),
    ],
    ids=["empty", "no object", "short", "long"],
)
def test_a_refusal_shows_how_the_body_begins(raw: bytes, shown: str) -> None:
    with pytest.raises(BadBody) as refused:
        read_json(raw)
    message = refused.value.unrecognized("Pod")
    assert message.startswith("the object provided is unrecognized (must be of type Pod): couldn't get version/kind; ")
    assert message.endswith(f"({shown})")


def test_numbers_beyond_all_floats_are_refused() -> None:
    with pytest.raises(BadBody, match="cannot unmarshal number 1e400 into Go value of type float64"):
        read_json(b'{"a":1e400}')
    assert read_json(b'{"a":1,"a":' + b"9" * 5000 + b"e-4999}")[0]["a"] == pytest.approx(10)


def test_a_body_states_its_version_and_kind() -> None:
    assert version_and_kind({"apiVersion": "apps/v1", "kind": "Deployment"}, b"") == ("apps/v1", "Deployment")
    assert version_and_kind({"kind": None}, b"") == version_and_kind(None, b"null") == ("", "")
    for value, problem in [
        ({"kind": 3}, f"{JSON_ERROR}json: cannot unmarshal number into Go struct field .kind of type string"),
        ({"apiVersion": "a/b/c"}, "unexpected GroupVersion string: a/b/c"),
        ([], JSON_ERROR + "json: cannot unmarshal array into Go value of type struct { APIVersion string "
         r'"json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'),
    ]:  # fmt: skip
        with pytest.raises(BadBody) as refused:
            version_and_kind(value, b"{}")
        assert refused.value.problem == problem


YAML_VALUES = {
    "yes": True, "on": True, "y": True, "TRUE": True, "off": False, "n": False, "No": False, "tRUE": "tRUE",
    "~": None, "": None, "NULL": None, "nULL": "nULL",
    "017": 15, "0o17": 15, "0x1F": 31, "0b11": 3, "1_000": 1000, "1__0": 10, "+1": 1, "-0": 0, "089": 89,
    "1.50": 1.5, "1e3": 1000, "1.": 1, ".5": 0.5, "0.1e-5": 1e-06, "12e03": 12000, "685.230_15e+03": 685230.15,
    "1e400": "1e400", "99999999999999999999": 100000000000000000000, "18446744073709551615": 18446744073709551615,
    "-9223372036854775809": -9223372036854776000,
    "2001-01-01": "2001-01-01", "12:30:45": "12:30:45", "=": "=", "<<": "<<", '"yes"': "yes", "'1'": "1",
    "!!str 1": "1", "!!binary aGk=": "hi", '!!int "3"': 3, "!foo bar": "bar", "!!set {a}": {"a": None},
    "|\n  hi\n  there": "hi\nthere\n", "[1, [2, {a: b}]]": [1, [2, {"a": "b"}]],
}  # fmt: skip


@pytest.mark.parametrize(("text", "value"), YAML_VALUES.items(), ids=[repr(text) for text in YAML_VALUES])
def test_yaml_values_are_what_go_makes_of_them(text: str, value: Any) -> None:
    found, duplicates = read_yaml(f"x: {text}\n".encode())
    assert (found, duplicates) == ({"x": value}, [])
    assert type(found["x"]) is type(value)


@pytest.mark.parametrize(
    ("key", "name"),
    [("1", "1"), ("1.5", "1.5"), ("yes", "true"), ("0x10", "16"), ("1e3", "1000"), ("2001-01-01", None)],
)
def test_yaml_keys_are_texts(key: str, name: str | None) -> None:
    assert read_yaml(f"{key}: a".encode())[0] == {name or key: "a"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("---\na: b\n---\nc: [", {"a": "b"}),
        ("a: b\n...\n[", {"a": "b"}),
        ("", None),
        ("# only a remark", None),
        ('{"a": {"b": 1}}', {"a": {"b": 1}}),
        ("x: &a {b: c}\nz: {<<: *a, d: e}", {"x": {"b": "c"}, "z": {"b": "c", "d": "e"}}),
        ("x: &a {b: c}\nz: {<<: [*a, {b: q, r: s}]}", {"x": {"b": "c"}, "z": {"b": "c", "r": "s"}}),
        ("x: &a {b: c}\nz: {b: e, <<: *a}", {"x": {"b": "c"}, "z": {"b": "c"}}),
        ("x: &a [1]\nz: *a", {"x": [1], "z": [1]}),
    ],
    ids=[
        "first document",
        "end of document",
        "empty",
        "remark",
        "JSON",
        "merge",
        "merge of two",
        "late merge",
        "alias",
    ],
)
def test_yaml_documents_are_what_go_makes_of_them(text: str, value: Any) -> None:
    assert read_yaml(text.encode()) == (value, [])


def test_what_an_alias_names_is_a_copy() -> None:
    value, _ = read_yaml(b"x: &a [1]\nz: *a")
    value["x"].append(2)
    assert value["z"] == [1]


def test_yaml_keys_that_are_given_twice_are_told() -> None:
    value, duplicates = read_yaml(b"kind: Pod\nmetadata: {name: a, name: b}\nkind: Pod\n")
    assert value["metadata"] == {"name": "b"}
    assert duplicates == [
        'yaml: unmarshal errors:\n  line 2: key "name" already set in map\n  line 3: key "kind" already set in map'
    ]


LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{level}: &b{level} [{','.join(['*' + (f'b{level - 1}' if level else 'a')] * 10)}]\n" for level in range(8)
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kind: [", "yaml: line 1: did not find expected node content"),
        ("a: b: c", "yaml: mapping values are not allowed in this context"),
        ('a: "x', "yaml: found unexpected end of stream"),
        ("kind: Pod\n\tapiVersion: v1\n", "yaml: line 2: found a tab character that violates indentation"),
        ("a:\n\tb: c", "yaml: line 2: found character that cannot start any token"),
        ("a: *x", "yaml: unknown anchor 'x' referenced"),
        ("a: &a [*a]", "yaml: anchor 'a' value contains itself"),
        ('a: "\x01"', "yaml: control characters are not allowed"),
        ("? [a]\n: b", 'yaml: invalid map key: []interface {}{"a"}'),
        ("~: a", 'unsupported map key of type: %!s(<nil>), key: <nil>, value: "a"'),
        ("a: .inf", "json: unsupported value: +Inf"),
        ("a: " + "[" * 11000, "yaml: exceeded max depth of 10000"),
        (LAUGHS, "yaml: document contains excessive aliasing"),
    ],
    ids=lambda value: value[:40],
)
def test_what_is_no_yaml_is_refused_in_gos_words(text: str, problem: str) -> None:
    with pytest.raises(BadBody) as refused:
        read_yaml(text.encode())
    assert refused.value.problem == problem


@pytest.mark.parametrize("read", [read_json, read_yaml])
@given(raw=st.binary() | st.text().map(str.encode))
def test_any_bytes_are_read_or_refused(read: Any, raw: bytes) -> None:
    with suppress(BadBody):
        read(raw)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@given(value=JSON)
def test_all_json_is_read(value: Any) -> None:
    assert read_json(msgspec.json.encode(value)) == (value, [])
    assert read_json(json.dumps(value, indent=1).encode()) == (value, [])


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(max_codepoint=255), max_size=8) | st.sampled_from(["<<", "~", "1e3", "\\", '"', "a: b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4) | st.just("<<"), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@given(
    value=st.dictionaries(st.text(max_size=4), PLAIN, max_size=4),
    how=st.sampled_from([msgspec.json.encode, json.dumps]),
)
def test_json_that_is_read_as_yaml_is_what_yaml_makes_of_it(value: Any, how: Any) -> None:
    raw = how(value) if how is msgspec.json.encode else how(value).encode()
    assert attempt(read_yaml, raw) == attempt(read_document, raw)


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b'{"a":1,"a":2}', id="a field given twice"),
        pytest.param(b'{"a":{"<<":{"b":1}}}', id="a merge key, quoted"),
        pytest.param(b'{"a":1e3,"b":1.50,"c":-0}', id="numbers that are written otherwise"),
        pytest.param(b'{"a":123456789012345678901234567890}', id="a long number"),
        pytest.param(b'{"' + b"k" * 1100 + b'":1}', id="a long name"),
        pytest.param(b'{"a":' * 600 + b"1" + b"}" * 600, id="deep"),
        pytest.param(b'{"a":"\\ud83d\\ude00"}', id="half a letter"),
        pytest.param(b'{"a":"\x7f"}', id="a letter that is not printed"),
        pytest.param(b'{"a":1}\n---\n{"a":2}', id="two documents"),
        pytest.param(b'{"a":1} x', id="more behind it"),
    ],
)
def test_json_that_yaml_reads_otherwise_is_left_to_it(raw: bytes) -> None:
    assert attempt(read_yaml, raw) == attempt(read_document, raw)


def attempt(read: Any, raw: bytes) -> Any:
    try:
        value, duplicates = read(raw)
    except (BadBody, BadYaml) as error:
        return str(error)
    return repr(value), duplicates


@given(value=JSON, cut=st.integers(0, 200))
def test_a_cut_off_body_is_refused_where_json_is(value: Any, cut: int) -> None:
    raw = json.dumps(value).encode()[:cut]
    try:
        expected = json.loads(raw)
    except ValueError:
        with pytest.raises(BadBody):
            read_json(raw)
    else:
        assert read_json(raw)[0] == expected
