"""How kubeconfig files are read and merged, and how a bad one is explained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.kube.kubeconfig.files import ContextEntry, Entry, Kubeconfig, KubeconfigError, Place, merge, read_file
from tests.support.network.kubeconfigs import a_kubeconfig, write


def servers(config: Kubeconfig) -> dict[str, str]:
    return {name: entry.value.server for name, entry in config.clusters.items()}


def clusters(**named: str) -> list[dict[str, Any]]:
    return [{"name": name, "cluster": {"server": server}} for name, server in named.items()]


@pytest.mark.parametrize(
    ("files", "servers_wanted", "current"),
    [
        pytest.param([], {}, "", id="none"),
        pytest.param(
            [{"clusters": clusters(a="1")}, {"clusters": clusters(b="2")}], {"a": "1", "b": "2"}, "", id="union"
        ),
        pytest.param(
            [{"clusters": clusters(a="1")}, {"clusters": clusters(a="2", b="3")}],
            {"a": "1", "b": "3"},
            "",
            id="the-first-to-name-an-entry-wins",
        ),
        pytest.param(
            [{"clusters": [{"name": "a", "cluster": {"tls-server-name": "x"}}]}, {"clusters": clusters(a="2")}],
            {"a": ""},
            "",
            id="an-entry-is-taken-whole",
        ),
        pytest.param(
            [{"current-context": ""}, {"current-context": "x"}, {"current-context": "y"}],
            {},
            "x",
            id="the-first-current-context-that-is-set-wins",
        ),
        pytest.param([{}, {"clusters": clusters(a="1")}, {}], {"a": "1"}, "", id="empty-files-say-nothing"),
    ],
)
def test_files_are_merged_as_kubectl_does(
    tmp_path: Path, files: list[dict[str, Any]], servers_wanted: dict[str, str], current: str
) -> None:
    written = [write(tmp_path / str(number), content) for number, content in enumerate(files)]
    merged = merge(read_file(file) for file in written)
    assert servers(merged) == servers_wanted
    assert merged.current_context == current
    assert merged.files == tuple(written)


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), st.sampled_from("xyz"))))
def test_merging_files_one_by_one_or_all_at_once_is_the_same(files: list[dict[str, str]]) -> None:
    def config(number: int, contexts: dict[str, str]) -> Kubeconfig:
        file = Path(str(number))
        return Kubeconfig(
            files=(file,),
            contexts={
                name: Entry(Place(file, "context", name), ContextEntry(cluster=cluster))
                for name, cluster in contexts.items()
            },
        )

    configs = [config(number, contexts) for number, contexts in enumerate(files)]
    for cut in range(len(configs) + 1):
        assert merge([merge(configs[:cut]), merge(configs[cut:])]) == merge(configs)
    for name, entry in merge(configs).contexts.items():
        first = next(config for config in configs if name in config.contexts)
        assert entry == first.contexts[name]


def test_every_known_field_is_read(tmp_path: Path) -> None:
    file = write(
        tmp_path / "config",
        """
        apiVersion: v1
        kind: Config
        preferences: {colors: true}
        clusters:
        - name: c
          cluster:
            server: https://host
            tls-server-name: name
            insecure-skip-tls-verify: true
            certificate-authority: ca.crt
            certificate-authority-data: QQ==
            proxy-url: http://p
            disable-compression: true
            extensions: [{name: e, extension: {a: [1]}}]
        users:
        - name: u
          user:
            client-certificate: c.crt
            client-certificate-data: QQ==
            client-key: c.key
            client-key-data: QQ==
            token: t
            tokenFile: t.txt
            as: bob
            as-uid: "7"
            as-groups: [g]
            as-user-extra: {k: [v]}
            username: n
            password: p
            exec:
              apiVersion: client.authentication.k8s.io/v1
              command: run
              args: [x]
              env: [{name: A, value: B}]
              installHint: hint
              provideClusterInfo: true
              interactiveMode: Never
        contexts:
        - name: x
          context: {cluster: c, user: u, namespace: n, extensions: []}
        current-context: x
        """,
    )
    config = read_file(file)
    cluster, user = config.clusters["c"].value, config.users["u"].value
    assert all(getattr(cluster, field) for field in cluster.__struct_fields__)
    assert all(getattr(user, field) for field in user.__struct_fields__ if field != "auth_provider")
    assert user.exec is not None
    assert all(getattr(user.exec, field) for field in user.exec.__struct_fields__)
    assert config.contexts["x"].value == ContextEntry(cluster="c", user="u", namespace="n")
    assert config.current_context == "x"


def test_null_means_absent_as_in_go(tmp_path: Path) -> None:
    content = a_kubeconfig(user={"token": None, "exec": None}, cluster={"server": "https://h", "proxy-url": None})
    config = read_file(write(tmp_path / "config", content | {"contexts": None, "preferences": None}))
    assert config.users["dev"].value.token == ""
    assert config.users["dev"].value.exec is None
    assert config.contexts == {}


def test_json_is_a_kubeconfig_too(tmp_path: Path) -> None:
    file = write(tmp_path / "config", '{"clusters": [{"name": "a", "cluster": {"server": "https://h"}}]}')
    assert servers(read_file(file)) == {"a": "https://h"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param("users:\n- name: a\n  user: {token: s3cret", r"is not YAML: .*\(line \d\)", id="yaml"),
        pytest.param("a: b: s3cret", r"is not YAML: .*\(line 1\)", id="yaml-line"),
        pytest.param("- s3cret", "is no kubeconfig: expected a mapping, got list", id="list"),
        pytest.param("s3cret", "is no kubeconfig: expected a mapping, got str", id="text"),
        pytest.param({"users": {"a": 1}}, "users: expected a list, got dict", id="mapping-of-users"),
        pytest.param({"users": ["s3cret"]}, r"users\[0\]: name: expected a string", id="text-for-an-entry"),
        pytest.param({"users": [{"user": {}}]}, r"users\[0\]: name: expected", id="no-name"),
        pytest.param({"users": [{"name": 7}]}, r"users\[0\]: name: expected", id="name-is-a-number"),
        pytest.param({"clusters": clusters(a="1") * 2}, 'cluster "a": name: another cluster of this file', id="twice"),
        pytest.param(
            {"users": [{"name": "a", "user": {"token": 123}}]},
            'user "a": token: Expected `str`, got `int`',
            id="token-is-a-number",
        ),
        pytest.param(
            {"users": [{"name": "a", "user": {"exec": {"args": "s3cret"}}}]},
            'user "a": exec.args: Expected `array`, got `str`',
            id="args-are-text",
        ),
        pytest.param(
            {"clusters": [{"name": "a", "cluster": {"insecure-skip-tls-verify": "s3cret"}}]},
            'cluster "a": insecure-skip-tls-verify: Expected `bool`, got `str`',
            id="flag-is-text",
        ),
        pytest.param(
            {"contexts": [{"name": "a", "context": "s3cret"}]}, 'context "a": context: Expected', id="context"
        ),
        pytest.param({"current-context": ["a"]}, "current-context: expected a string, got list", id="current-context"),
    ],
)
def test_a_file_that_cannot_be_read_is_explained_without_quoting_it(tmp_path: Path, content: Any, says: str) -> None:
    file = write(tmp_path / "config", content)
    with pytest.raises(KubeconfigError, match=says) as caught:
        read_file(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert "s3cret" not in str(caught.value)


def test_a_directory_is_no_kubeconfig(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="cannot be read: Is a directory"):
        read_file(tmp_path)
