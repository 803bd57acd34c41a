"""Dry runs, field validation and other options of a write."""

from __future__ import annotations

from tests.conformance.objects import a_bare_pod, a_config_map, a_custom, a_definition, a_deployment, customs, defined
from tests.conformance.story import APPS, CORE, JSON, Story, delete, get, patch, post, put, status_is

MAPS = f"{CORE}/configmaps"
ONE = f"{MAPS}/one"
CUSTOM = customs("strictlings")
UNKNOWN = {**a_deployment(), "spec": {**a_deployment()["spec"], "unknown": 1, "replcas": 2}, "extra": {}}
TWICE = '{"metadata":{"name":"one","name":"one"},"data":{"a":"1","a":"2"},"data":{"b":"1"}}'


def validated(level: str) -> dict[str, str]:
    return {"fieldValidation": level, "dryRun": "All"}


STORIES = [
    Story(
        "a dry run writes nothing",
        [
            post(MAPS, a_config_map(), query={"dryRun": "All"}),
            get(ONE),
            post(MAPS, a_config_map(data={"a": "1"})),
            put(ONE, a_config_map(data={"a": "2"}), query={"dryRun": "All"}),
            patch(ONE, {"data": {"a": "3"}}, query={"dryRun": "All"}),
            delete(ONE, query={"dryRun": "All"}),
            get(ONE),
            post(MAPS, a_config_map("Bad"), query={"dryRun": "All"}),
            post(MAPS, {"metadata": {"generateName": "x-"}}, query={"dryRun": "All"}),
            post(MAPS, a_config_map("two"), query={"dryRun": "Some"}),
            post(MAPS, a_config_map("two"), query={"dryRun": ["All", "All"]}),
            post(MAPS, a_config_map("two"), query={"dryRun": ""}),
        ],
    ),
    Story(
        "a dry run of a deletion with a finalizer",
        [
            post(MAPS, a_config_map(finalizers=["example.com/hold"])),
            delete(ONE, query={"dryRun": "All"}),
            get(ONE),
        ],
    ),
    Story(
        "unknown fields of built-in kinds",
        [
            post(f"{APPS}/deployments", UNKNOWN, query=validated("Strict")),
            post(f"{APPS}/deployments", UNKNOWN, query=validated("Warn")),
            post(f"{APPS}/deployments", UNKNOWN, query={"dryRun": "All"}),
            post(f"{APPS}/deployments", UNKNOWN, query=validated("Ignore")),
            post(f"{APPS}/deployments", UNKNOWN, query=validated("Loudly")),
            post(
                f"{CORE}/pods",
                a_bare_pod(containers=[{"name": "m", "image": "i", "imagee": "x"}]),
                query=validated("Strict"),
            ),
        ],
        account=True,
    ),
    Story(
        "fields given twice",
        [
            post(MAPS, TWICE, query=validated("Strict")),
            post(MAPS, TWICE, query=validated("Warn")),
            post(MAPS, TWICE, query=validated("Ignore")),
            post(
                MAPS,
                "metadata:\n  name: one\n  name: two\ndata:\n  a: b\n",
                content_type="application/yaml",
                query=validated("Strict"),
            ),
            post(
                MAPS,
                "metadata:\n  name: one\n  name: two\ndata:\n  a: b\n",
                content_type="application/yaml",
                query=validated("Warn"),
            ),
        ],
    ),
    Story(
        "fields of another case",
        [
            post(MAPS, {"metadata": {"Name": "one"}, "Data": {"a": "1"}}, query=validated("Strict")),
            post(MAPS, {"metadata": {"name": "one"}, "DATA": {"a": "1"}}, query=validated("Warn")),
        ],
    ),
    Story(
        "unknown fields in updates and patches",
        [
            post(MAPS, a_config_map()),
            put(ONE, {**a_config_map(), "unknown": 1}, query={"fieldValidation": "Strict"}),
            put(ONE, {**a_config_map(), "unknown": 1}),
            patch(ONE, {"unknown": 1}, query={"fieldValidation": "Warn"}),
            patch(ONE, '{"data":{"a":"1","a":"2"}}', query={"fieldValidation": "Strict"}),
            patch(ONE, '{"data":{"a":"1","a":"2"}}', query={"fieldValidation": "Warn"}),
            patch(
                ONE,
                [{"op": "add", "path": "/unknown", "value": 1}],
                "application/json-patch+json",
                query={"fieldValidation": "Strict"},
            ),
        ],
    ),
    Story(
        "unknown fields of custom objects",
        [
            *defined(a_definition("strictlings")),
            post(
                CUSTOM,
                a_custom("strictlings", spec={"size": 1, "odd": 1}),
                query={"fieldValidation": "Strict"},
                until=status_is(400),
            ),
            post(CUSTOM, a_custom("strictlings", spec={"size": 1, "odd": 1}, top=1), query={"fieldValidation": "Warn"}),
            post(
                CUSTOM, a_custom("strictlings", "two", spec={"size": 1, "odd": 1}), query={"fieldValidation": "Ignore"}
            ),
            post(
                CUSTOM,
                '{"apiVersion":"example.com/v1","kind":"Strictling","metadata":{"name":"x"},"spec":{"size":1,"size":2}}',
                query={"fieldValidation": "Strict"},
            ),
            post(
                CUSTOM,
                '{"apiVersion":"example.com/v1","kind":"Strictling","metadata":{"name":"x"},"spec":{"size":1,"size":2}}',
                query={"fieldValidation": "Warn"},
            ),
            post(
                CUSTOM,
                {**a_custom("strictlings"), "metadata": {"name": "y", "odd": 1}},
                query={"fieldValidation": "Strict"},
            ),
            patch(f"{CUSTOM}/one", {"spec": {"odd": 2}}, query={"fieldValidation": "Strict"}),
            patch(f"{CUSTOM}/one", {"spec": {"odd": 2}}),
        ],
    ),
    Story(
        "options that are refused",
        [
            post(MAPS, a_config_map(), query={"fieldManager": "m" * 129}),
            post(MAPS, a_config_map(), query={"fieldManager": "tab\there"}),
            post(MAPS, a_config_map(), query={"dryRun": "no", "fieldValidation": "no", "fieldManager": "m" * 129}),
            post(MAPS, a_config_map(), query={"unknownOption": "x"}, content_type=JSON),
        ],
    ),
]
