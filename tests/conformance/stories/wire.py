"""The wire: media types, encodings, and input that is broken or meant to break something."""

from __future__ import annotations

from tests.conformance.objects import a_bare_pod, a_config_map
from tests.conformance.story import CORE, PROTOBUF, YAML, Story, delete, get, patch, post, put

MAPS = f"{CORE}/configmaps"
ONE = f"{MAPS}/one"


def field(number: int, content: bytes | str) -> bytes:
    """One length-delimited field of a protobuf message."""
    raw = content.encode() if isinstance(content, str) else content
    return bytes([number << 3 | 2]) + _varint(len(raw)) + raw


def _varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low]) if not rest else bytes([low | 0x80]) + _varint(rest)


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    """An object as Kubernetes wraps it: four magic bytes, its type, and itself."""
    return b"k8s\x00" + field(1, field(1, api_version) + field(2, kind)) + field(2, raw)


MAP_IN_PROTOBUF = field(1, field(1, "proto")) + field(2, field(1, "key") + field(2, "value"))
NAMESPACE_IN_PROTOBUF = field(1, field(1, "conformance-proto")) + field(2, b"") + field(3, b"")
DEEP = '{"metadata":{"name":"deep"},"data":' + '{"a":' * 12000 + "1" + "}" * 12000 + "}"
DEEP_YAML = "metadata:\n  name: deep\nx: " + "[" * 12000 + "]" * 12000

STORIES = [
    Story(
        "yaml bodies",
        [
            post(
                MAPS, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  a: 'yes'\n", content_type=YAML
            ),
            put(ONE, "metadata: {name: one}\ndata: {a: 'on', b: '0777', c: '1e3'}\n", content_type=YAML),
            put(ONE, "metadata: {name: one}\ndata: {a: yes}\n", content_type=YAML),
            put(ONE, "metadata: {name: one}\ndata: {a: 1}\n", content_type=YAML),
            put(ONE, "metadata: {name: one}\ndata: &x {a: 'anchor'}\nbinaryData: *x\n", content_type=YAML),
            put(ONE, "metadata: {name: one}\n\tdata: tab\n", content_type=YAML),
            put(ONE, "---\nmetadata: {name: one}\n---\nmetadata: {name: two}\n", content_type=YAML),
            put(ONE, "- a\n- b\n", content_type=YAML),
            put(ONE, "just text", content_type=YAML),
            put(ONE, "!!python/object:os.system {}\n", content_type=YAML),
            get(ONE, accept=YAML),
        ],
    ),
    Story(
        "protobuf bodies",
        [
            post(MAPS, envelope("v1", "ConfigMap", MAP_IN_PROTOBUF), content_type=PROTOBUF),
            post("/api/v1/namespaces", envelope("v1", "Namespace", NAMESPACE_IN_PROTOBUF), content_type=PROTOBUF),
            post(MAPS, envelope("v1", "Secret", MAP_IN_PROTOBUF), content_type=PROTOBUF),
            post(MAPS, b"no magic", content_type=PROTOBUF),
            post(MAPS, b"k8s\x00\xff\xff\xff", content_type=PROTOBUF),
            post(MAPS, envelope("v1", "ConfigMap", b"\x0a\xff"), content_type=PROTOBUF),
            delete(f"{MAPS}/proto", envelope("v1", "DeleteOptions", b""), content_type=PROTOBUF),
            patch(ONE, MAP_IN_PROTOBUF, PROTOBUF),
        ],
    ),
    Story(
        "media types of answers",
        [
            post(MAPS, a_config_map(), content_type="application/json; charset=utf-8"),
            get(ONE, accept="text/html"),
            get(ONE, accept="text/html,application/json;q=0.9"),
            get(ONE, accept="*/*"),
            get(ONE, accept="application/*"),
            get(ONE, accept=""),
            get(ONE, accept="application/xml"),
            get(ONE, accept="application/json;q=0"),
            get(ONE, accept="application/json;as=Table;v=v1;g=other"),
            get(ONE, accept="nonsense"),
            get(f"{MAPS}/absent", accept="text/html"),
            get("/version", accept="text/html", shown=lambda _: None),
        ],
    ),
    Story(
        "media types of bodies",
        [
            post(MAPS, a_config_map(), content_type="text/plain"),
            post(MAPS, a_config_map(), content_type="application/xml"),
            post(MAPS, a_config_map("no-type"), content_type=""),
            post(MAPS, a_config_map(), content_type="application/json;bad"),
            post(MAPS, a_config_map(), content_type="nonsense"),
            delete(f"{MAPS}/no-type", "x", content_type="text/plain"),
        ],
    ),
    Story(
        "bodies that are no JSON",
        [
            post(MAPS, body)
            for body in (
                "",
                "{",
                "nonsense",
                '{"metadata":{"name":"x"}',
                '{"metadata":{"name":"x"}} trailing',
                '{"metadata":{"name":"x"}}{"metadata":{"name":"y"}}',
                "[]",
                "5",
                "null",
                '"text"',
                "{'single': 'quotes'}",
                '{"metadata":{"name":"x",}}',
                '{"metadata":{"name":NaN}}',
                '{"metadata":{"name":"x"},"data":{"a":"\\ud800"}}',
            )
        ],
    ),
    Story(
        "bodies that are no UTF-8",
        [
            post(MAPS, b'{"metadata":{"name":"x"},"data":{"a":"\xff\xfe"}}'),
            post(MAPS, b"\xef\xbb\xbf" + b'{"metadata":{"name":"bom"}}'),
            post(MAPS, b'{"metadata":{"name":"nul"},"data":{"a":"\x00"}}'),
            post(MAPS, '{"metadata":{"name":"y"},"data":{"a":"\\u0000"}}'),
        ],
    ),
    Story(
        "values of the wrong type",
        [
            post(MAPS, body)
            for body in (
                {"metadata": {"name": 5}},
                {"metadata": "text"},
                {"metadata": {"name": "x"}, "data": {"a": 1}},
                {"metadata": {"name": "x"}, "data": {"a": {"b": 1}}},
                {"metadata": {"name": "x"}, "data": []},
                {"metadata": {"name": "x"}, "immutable": "yes"},
                {"metadata": {"name": "x", "labels": "x"}},
                {"metadata": {"name": "x", "generation": 1.5}},
                {"metadata": {"name": "x", "creationTimestamp": "never"}},
                {"metadata": {"name": "x"}, "binaryData": {"a": "%%%"}},
                {"apiVersion": 5, "metadata": {"name": "x"}},
                {"kind": ["ConfigMap"], "metadata": {"name": "x"}},
                {"metadata": {"name": None}},
                {"metadata": None},
            )
        ],
    ),
    Story(
        "numbers at the edge",
        [
            post(f"{CORE}/pods", a_bare_pod(priority=2147483648), query={"dryRun": "All"}),
            post(f"{CORE}/pods", a_bare_pod(terminationGracePeriodSeconds=1e3), query={"dryRun": "All"}),
            post(f"{CORE}/pods", a_bare_pod(terminationGracePeriodSeconds=1.5), query={"dryRun": "All"}),
            post(
                f"{CORE}/pods",
                '{"metadata":{"name":"x"},"spec":{"activeDeadlineSeconds":99999999999999999999}}',
                query={"dryRun": "All"},
            ),
        ],
        account=True,
    ),
    Story(
        "bodies that are too deep",
        [post(MAPS, a_config_map()), post(MAPS, DEEP), post(MAPS, DEEP_YAML, content_type=YAML), patch(ONE, DEEP)],
    ),
    Story(
        "bodies that are too big",
        [
            post(MAPS, a_config_map("big", data={"a": "x" * (1024 * 1024 + 1)})),
            post(MAPS, a_config_map("huge", data={"a": "x" * (3 * 1024 * 1024 + 1)})),
            post(
                MAPS,
                a_config_map("full", data={"a": "x" * (1024 * 1024 - 1)}),
                shown=lambda _: None,
                query={"dryRun": "All"},
                accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            ),
            patch(f"{MAPS}/none", "x" * (3 * 1024 * 1024 + 1)),
        ],
    ),
    Story(
        "paths with tricks",
        [
            post(MAPS, a_config_map()),
            get("//api/v1/namespaces/{ns}/configmaps/one"),
            get("/api/v1/namespaces/{ns}/configmaps//one"),
            get("/api/v1/namespaces/{ns}/configmaps/one/"),
            get("/api/v1/namespaces/{ns}/secrets/../configmaps/one"),
            get("/api/v1/namespaces/{ns}/configmaps/%6fne"),
            get("/api/v1/namespaces/{ns}/configmaps/a%2Fb"),
            get("/api/v1/namespaces/{ns}/configmaps/%2e%2e"),
            get("/api/v1/namespaces/{ns}/configmaps/one%00"),
            get("/api/v1/namespaces/{ns}/configmaps/ONE"),
            get("/api/v1/namespaces/%7Bns%7D/configmaps"),
            get("/api/v1/namespaces//configmaps", shown=lambda body: body["kind"]),
            get("/API/v1/namespaces"),
            get("/api/v1/./namespaces/{ns}"),
            get("/", shown=lambda body: sorted({"/api", "/apis", "/version"} & set(body["paths"]))),
        ],
    ),
    Story(
        "method override and odd methods",
        [
            get(MAPS, headers={"X-HTTP-Method-Override": "DELETE"}),
            post(MAPS, a_config_map(), headers={"X-HTTP-Method-Override": "GET"}),
            get(MAPS, query={"labelSelector": "a=b"}, headers={"Content-Type": "text/plain"}),
        ],
    ),
]
