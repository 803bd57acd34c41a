"""What files a volume of configuration holds."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api.core.pod_details import TokenSource, VolumeDetails
from shoal.cluster.node.process.contents.files import Files, Ingredients, files_of, path_problem
from shoal.cluster.node.process.contents.problems import Missing
from shoal.cluster.node.process.contents.references import CONFIG_MAP, SECRET, Content, Reference
from tests.cluster.node.process.builders import a_local_pod

CONTENTS = {
    Reference(CONFIG_MAP, "team", "settings"): Content({"a.yaml": b"a: 1", "b": b"2"}, {"blob": b"\xff"}),
    Reference(SECRET, "team", "keys"): Content({"key": b"\x00secret"}),
}
LABELLED = {"labels": {"app": "shop", "tier": "web"}}


def files(volume: dict[str, Any], **more: Any) -> Files:
    found = files_of(
        msgspec.convert({"name": "v", **volume}, VolumeDetails),
        Ingredients(
            pod=a_local_pod(limits={"cpu": "500m"}, metadata=LABELLED),
            contents=CONTENTS,
            token=more.pop("token", lambda source: f"token for {source.audience}"),
            allocatable={"memory": "8Gi"},
            **more,
        ),
    )
    assert found is not None
    return found


def contents(found: Files) -> dict[str, bytes]:
    return {path: file.content for path, file in found.items()}


def modes(found: Files) -> dict[str, str]:
    return {path: oct(file.mode) for path, file in found.items()}


def test_every_key_of_a_config_map_is_a_file_of_the_usual_mode() -> None:
    found = files({"configMap": {"name": "settings"}})
    assert contents(found) == {"a.yaml": b"a: 1", "b": b"2", "blob": b"\xff"}
    assert set(modes(found).values()) == {"0o644"}


def test_chosen_keys_have_paths_and_modes_of_their_own() -> None:
    items = [{"key": "b", "path": "deep/./b"}, {"key": "blob", "path": "blob", "mode": 0o400}]
    found = files({"configMap": {"name": "settings", "items": items, "defaultMode": 0o600}})
    assert modes(found) == {"deep/b": "0o600", "blob": "0o400"}


def test_a_secret_is_its_bytes() -> None:
    assert contents(files({"secret": {"secretName": "keys"}})) == {"key": b"\x00secret"}


@pytest.mark.parametrize(
    ("volume", "sentence"),
    [
        ({"configMap": {"name": "none"}}, 'configmap "none" not found'),
        ({"secret": {"secretName": "none"}}, 'secret "none" not found'),
        (
            {"configMap": {"name": "settings", "items": [{"key": "x", "path": "x"}]}},
            "configmap references non-existent config key: x",
        ),
        (
            {"secret": {"secretName": "keys", "items": [{"key": "x", "path": "x"}]}},
            "references non-existent secret key: x",
        ),
        (
            {"projected": {"sources": [{"secret": {"name": "none"}}, {"configMap": {"name": "gone"}}]}},
            '[secret "none" not found, configmap "gone" not found]',
        ),
        ({"projected": {"sources": [{}]}}, "a source is of a kind that this node does not know"),
        (
            {"configMap": {"name": "settings", "items": [{"key": "b", "path": "../b"}]}},
            "invalid path: must not contain '..': ../b",
        ),
        (
            {"configMap": {"name": "settings", "items": [{"key": "b", "path": "x"}, {"key": "b", "path": "x/y"}]}},
            "invalid path: x/y is in x, which is a file",
        ),
        (
            {"downwardAPI": {"items": [{"path": "f", "fieldRef": {"fieldPath": "status.podIP"}}]}},
            "unsupported fieldPath: status.podIP",
        ),
    ],
    ids=lambda value: str(value)[:50],
)
def test_what_is_missing_is_said_in_a_kubelets_words(volume: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Missing) as caught:
        files(volume)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    "volume",
    [
        {"configMap": {"name": "none", "optional": True}},
        {"secret": {"secretName": "none", "optional": True}},
        {"configMap": {"name": "settings", "optional": True, "items": [{"key": "x", "path": "x"}]}},
        {"projected": {"sources": [{"secret": {"name": "none", "optional": True}}]}},
    ],
)
def test_what_may_be_missing_leaves_an_empty_volume(volume: dict[str, Any]) -> None:
    assert files(volume) == {}


def test_fields_and_resources_of_the_pod_are_files() -> None:
    found = files(
        {
            "downwardAPI": {
                "items": [
                    {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
                    {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu"}},
                    {"path": "ram", "resourceFieldRef": {"containerName": "main", "resource": "limits.memory"}},
                ]
            }
        }
    )
    assert contents(found) == {"labels": b'app="shop"\ntier="web"', "cpu": b"1", "ram": str(8 << 30).encode()}


ALL = {
    "projected": {
        "defaultMode": 0o440,
        "sources": [
            {"configMap": {"name": "settings", "items": [{"key": "b", "path": "one"}]}},
            {"secret": {"name": "keys", "items": [{"key": "key", "path": "one", "mode": 0o400}]}},
            {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {"serviceAccountToken": {"path": "token", "audience": "vault"}},
        ],
    }
}


def test_several_sources_share_a_folder_and_the_later_one_wins() -> None:
    found = files(ALL)
    assert contents(found) == {"one": b"\x00secret", "name": b"web", "token": b"token for vault"}
    assert modes(found) == {"one": "0o400", "name": "0o440", "token": "0o440"}


@pytest.mark.parametrize("more", [{"owner": 1000}, {"has_group": True}], ids=["one user", "a group"])
def test_a_token_is_private_where_it_is_known_whose_it_is(more: dict[str, Any]) -> None:
    token = files(ALL, **more)["token"]
    assert (token.mode, token.owner) == (0o600, more.get("owner"))


def test_a_token_that_is_refused_is_told_with_the_rest() -> None:
    def refuse(source: TokenSource) -> str:
        raise Missing("failed to fetch token: no")

    with pytest.raises(Missing, match="failed to fetch token: no"):
        files(ALL, token=refuse)


@pytest.mark.parametrize(
    "path", ["", "/a", "../a", "a/../b", "..a", "a/" + "b" * 256, "x/" * 3000, ".", "a\0b"], ids=lambda path: path[:9]
)
def test_a_path_that_leaves_the_volume_or_means_nothing_is_refused(path: str) -> None:
    assert path_problem(path)


@pytest.mark.parametrize("path", ["a", "a/b", "a..b", "a/..b", ".hidden"])
def test_other_paths_are_fine(path: str) -> None:
    assert not path_problem(path)
