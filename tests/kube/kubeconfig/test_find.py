"""Which cluster is found, where, and what is said when none is."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from shoal.kube.connection import Connection, Impersonation
from shoal.kube.kubeconfig import KubeconfigError, load_connection
from shoal.kube.tls import Tls
from tests.support.network.kubeconfigs import a_kubeconfig, write
from tests.support.network.tls import Authority

AUTHORITY = Authority()


def encoded(data: bytes) -> str:
    return b64encode(data).decode()


def load(file: Path, context: str | None = None) -> Connection:
    return load_connection(file, context, environ={})


# Where it is looked for


def test_a_named_file_is_used_whatever_the_environment_says(tmp_path: Path) -> None:
    named = write(tmp_path / "named", a_kubeconfig(cluster={"server": "https://named"}))
    other = write(tmp_path / "other", a_kubeconfig(cluster={"server": "https://other"}))
    connection = load_connection(str(named), environ={"KUBECONFIG": str(other)})
    assert connection.server == "https://named"
    assert connection.origin == f"context dev of {named}"


def test_the_files_of_the_environment_are_merged_and_missing_ones_skipped(tmp_path: Path) -> None:
    one = write(tmp_path / "one", a_kubeconfig(name="one", cluster={"server": "https://one"}))
    two = write(tmp_path / "two", a_kubeconfig(name="two", cluster={"server": "https://two"}))
    environ = {"KUBECONFIG": f"{tmp_path}/missing::{one}:{one}:{two}"}
    assert load_connection(environ=environ).server == "https://one"
    assert load_connection(context="two", environ=environ).server == "https://two"


def test_a_context_may_join_a_cluster_and_a_user_of_different_files(tmp_path: Path) -> None:
    whole = a_kubeconfig(
        user={"tokenFile": "token"}, cluster={"server": "https://h", "certificate-authority": "ca.crt"}
    )
    (tmp_path / "u").mkdir()
    (tmp_path / "c").mkdir()
    (tmp_path / "u" / "token").write_text("t")
    (tmp_path / "c" / "ca.crt").write_bytes(AUTHORITY.pem)
    users = write(tmp_path / "u" / "config", {"users": whole["users"]})
    rest = write(tmp_path / "c" / "config", whole | {"users": []})
    connection = load_connection(environ={"KUBECONFIG": f"{users}:{rest}"})
    assert connection.tls == Tls(authorities=AUTHORITY.pem)
    assert repr(connection.credentials) == f"<the token in {tmp_path}/u/token>"


def test_without_other_word_it_is_the_file_in_the_home_directory(tmp_path: Path) -> None:
    write(tmp_path / ".kube" / "config", a_kubeconfig())
    assert load_connection(environ={"HOME": str(tmp_path)}).server == "https://host:6443"


def test_relative_paths_start_from_the_file_and_not_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    issued = AUTHORITY.issue("admin")
    issued.write(tmp_path, "admin")
    write(tmp_path / "config", a_kubeconfig(user={"client-certificate": "admin.crt", "client-key": "admin.key"}))
    monkeypatch.chdir(tmp_path.parent)
    connection = load(Path(tmp_path.name) / "config")
    assert repr(connection.credentials) == f"<the client certificate in {tmp_path}/admin.crt>"


def in_cluster(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "account").mkdir()
    (tmp_path / "account" / "token").write_text("t")
    return {
        "environ": {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443", "HOME": str(tmp_path)},
        "service_account": tmp_path / "account",
    }


@pytest.mark.parametrize("content", [pytest.param(None, id="no-file"), pytest.param("", id="empty-file")])
def test_where_no_file_says_anything_it_is_the_pods_account(tmp_path: Path, content: str | None) -> None:
    found = in_cluster(tmp_path)
    if content is not None:
        write(tmp_path / ".kube" / "config", content)
    assert load_connection(**found).server == "https://10.0.0.1:443"


def test_a_file_comes_before_the_pods_account(tmp_path: Path) -> None:
    found = in_cluster(tmp_path)
    write(tmp_path / ".kube" / "config", a_kubeconfig())
    assert load_connection(**found).server == "https://host:6443"


def test_a_context_that_is_asked_for_is_never_replaced_by_the_pods_account(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match='found no context "prod"'):
        load_connection(context="prod", **in_cluster(tmp_path))


def test_a_file_that_is_asked_for_is_never_replaced_by_the_pods_account(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match=f"{tmp_path}/missing does not exist"):
        load_connection(tmp_path / "missing", **in_cluster(tmp_path))


def test_when_there_is_nothing_the_error_says_what_was_tried_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError) as caught:
        load_connection(environ={"HOME": str(tmp_path)}, service_account=tmp_path)
    assert str(caught.value) == (
        f"found no cluster (KUBECONFIG is not set; {tmp_path}/.kube/config does not exist; "
        "this is no pod with a service account: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set): "
        "name a kubeconfig, set KUBECONFIG, or run in a pod with a service account"
    )


# Which context


def test_a_context_can_be_chosen(tmp_path: Path) -> None:
    content = a_kubeconfig()
    content["contexts"].append({"name": "other", "context": {"cluster": "dev", "namespace": "team"}})
    file = write(tmp_path / "config", content)
    assert load(file).namespace == "default"
    assert load(file, "other").namespace == "team"


@pytest.mark.parametrize(
    ("change", "context", "says"),
    [
        pytest.param(
            {"current-context": ""},
            None,
            r"current-context is not set: name a context \(there are: dev\)",
            id="none-set",
        ),
        pytest.param({"contexts": []}, None, r'no context "dev" \(there are: none\)', id="current-missing"),
        pytest.param({}, "prod", r'there is no context "prod" \(there are: dev\)', id="chosen-missing"),
        pytest.param(
            {"clusters": [{"name": "x"}]},
            None,
            r'context "dev": cluster: there is no cluster "dev" \(there are: x\)',
            id="cluster-missing",
        ),
        pytest.param({"users": []}, None, r'context "dev": user: there is no user "dev"', id="user-missing"),
        pytest.param(
            {"contexts": [{"name": "dev", "context": {}}]},
            None,
            'context "dev": cluster: must be given',
            id="no-cluster",
        ),
    ],
)
def test_a_context_that_leads_nowhere_is_explained(
    tmp_path: Path, change: dict[str, Any], context: str | None, says: str
) -> None:
    file = write(tmp_path / "config", a_kubeconfig() | change)
    with pytest.raises(KubeconfigError, match=says) as caught:
        load(file, context)
    assert str(file) in str(caught.value)


# The cluster


@pytest.mark.parametrize(
    ("cluster", "server"),
    [
        pytest.param({"server": "https://h:6443"}, "https://h:6443", id="whole"),
        pytest.param({"server": "https://h:6443/"}, "https://h:6443", id="trailing-slash"),
        pytest.param({"server": "https://h/k8s/c-1?x=1#y"}, "https://h/k8s/c-1", id="path"),
        pytest.param({"server": "https://[fd00::1]:6443"}, "https://[fd00::1]:6443", id="ipv6"),
        pytest.param({"server": "localhost:8080"}, "http://localhost:8080", id="no-scheme"),
        pytest.param(
            {"server": "h:6443", "insecure-skip-tls-verify": True}, "https://h:6443", id="no-scheme-but-tls-settings"
        ),
        pytest.param({"server": "unix:///run/shoal/api.sock"}, "unix:///run/shoal/api.sock", id="unix-socket"),
    ],
)
def test_a_server_is_found_in_every_way_of_writing_it(tmp_path: Path, cluster: dict[str, Any], server: str) -> None:
    assert load(write(tmp_path / "config", a_kubeconfig(cluster=cluster))).server == server


def test_a_cluster_says_how_it_is_trusted_and_reached(tmp_path: Path) -> None:
    cluster = {
        "server": "https://h",
        "certificate-authority-data": encoded(AUTHORITY.pem),
        "tls-server-name": "kubernetes.default",
        "proxy-url": "socks5://localhost:1080",
        "disable-compression": True,
    }
    connection = load(write(tmp_path / "config", a_kubeconfig(cluster=cluster)))
    assert connection.tls == Tls(authorities=AUTHORITY.pem, server_name="kubernetes.default")
    assert connection.proxy == "socks5://localhost:1080"
    assert not connection.compression


def test_data_may_be_broken_into_lines(tmp_path: Path) -> None:
    text = encoded(AUTHORITY.pem)
    broken = "\n".join(text[start : start + 64] for start in range(0, len(text), 64))
    cluster = {"server": "https://h", "certificate-authority-data": broken}
    assert load(write(tmp_path / "config", a_kubeconfig(cluster=cluster))).tls.authorities == AUTHORITY.pem


@pytest.mark.parametrize(
    ("cluster", "says"),
    [
        pytest.param({}, "server: must be given", id="no-server"),
        pytest.param({"server": "ftp://h"}, 'server: is "ftp://h", must be https://', id="scheme"),
        pytest.param({"server": "https://"}, "server: is", id="no-host"),
        pytest.param({"server": "https://h:port"}, "server: is", id="port-is-no-number"),
        pytest.param({"server": "unix://run/socket"}, "server: is", id="socket-path-is-relative"),
        pytest.param(
            {"certificate-authority": "gone.crt"},
            "certificate-authority: cannot read .*/gone.crt: No such file",
            id="authority-missing",
        ),
        pytest.param(
            {"certificate-authority-data": "$$"}, "certificate-authority-data: is not base64", id="not-base64"
        ),
        pytest.param(
            {"certificate-authority-data": encoded(b"hello")},
            "certificate-authority: the certificate authority is not PEM",
            id="not-pem",
        ),
        pytest.param(
            {"certificate-authority-data": "QQ==", "certificate-authority": "ca.crt"},
            "certificate-authority: certificate-authority-data is given as well",
            id="authority-twice",
        ),
        pytest.param(
            {"certificate-authority-data": encoded(AUTHORITY.pem), "insecure-skip-tls-verify": True},
            "insecure-skip-tls-verify: makes certificate-authority void",
            id="authority-and-insecure",
        ),
        pytest.param({"proxy-url": "ftp://p"}, 'proxy-url: its scheme is "ftp"', id="proxy-scheme"),
    ],
)
def test_a_cluster_that_cannot_be_used_is_explained(tmp_path: Path, cluster: dict[str, Any], says: str) -> None:
    whole = cluster if "server" in cluster or not cluster else {"server": "https://h"} | cluster
    file = write(tmp_path / "config", a_kubeconfig(cluster=whole))
    with pytest.raises(KubeconfigError, match=says) as caught:
        load(file)
    assert str(caught.value).startswith(f'{file}: cluster "dev": ')


# The user


async def headers(connection: Connection) -> dict[str, str]:
    return dict((await connection.credentials.sign()).headers)


async def test_a_user_without_anything_is_nobody(tmp_path: Path) -> None:
    connection = load(write(tmp_path / "config", a_kubeconfig(context={"user": ""})))
    assert await headers(connection) == {}


async def test_a_token_a_password_and_a_file_each_sign(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("from-file\n")
    for user, header in (
        ({"token": "written"}, "Bearer written"),
        ({"tokenFile": "t"}, "Bearer from-file"),
        ({"token": "written", "tokenFile": "t"}, "Bearer from-file"),
        ({"token": "written", "tokenFile": "gone"}, "Bearer written"),
        ({"username": "ann", "password": "pw"}, "Basic YW5uOnB3"),
    ):
        connection = load(write(tmp_path / "config", a_kubeconfig(user=user)))
        assert await headers(connection) == {"Authorization": header}


@pytest.mark.parametrize("inline", [(True, True), (False, False), (True, False), (False, True)])
async def test_a_client_certificate_is_found_inline_and_in_files(tmp_path: Path, inline: tuple[bool, bool]) -> None:
    issued = AUTHORITY.issue("admin")
    issued.write(tmp_path, "admin")
    user = {
        "client-certificate-data" if inline[0] else "client-certificate": (
            encoded(issued.chain) if inline[0] else "admin.crt"
        ),
        "client-key-data" if inline[1] else "client-key": encoded(issued.key) if inline[1] else "admin.key",
        "token": "t",
    }
    connection = load(write(tmp_path / "config", a_kubeconfig(user=user)))
    signature = await connection.credentials.sign()
    assert signature.certificate is not None
    assert (signature.certificate.chain, signature.certificate.key) == (issued.chain, issued.key)
    assert signature.headers == {"Authorization": "Bearer t"}


async def test_no_credentials_are_sent_to_a_server_without_tls(tmp_path: Path) -> None:
    for server, sent in (("http://h", {}), ("unix:///s", {"Authorization": "Bearer t"})):
        content = a_kubeconfig(cluster={"server": server}, user={"token": "t"})
        assert await headers(load(write(tmp_path / "config", content))) == sent


def test_impersonation_is_read(tmp_path: Path) -> None:
    user = {"as": "bob", "as-uid": "7", "as-groups": ["dev"], "as-user-extra": {"scope": ["a"]}}
    connection = load(write(tmp_path / "config", a_kubeconfig(user=user)))
    assert connection.impersonation == Impersonation(user="bob", uid="7", groups=("dev",), extra={"scope": ("a",)})


EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "get-token", "interactiveMode": "Never"}


async def test_an_exec_plugin_beside_the_file_is_run_and_told_of_the_cluster(tmp_path: Path) -> None:
    plugin = tmp_path / "bin" / "get-token"
    write(
        plugin,
        "#!/bin/sh\n"
        f'echo "$KUBERNETES_EXEC_INFO" > {tmp_path}/told\n'
        """echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"x"}}'\n""",
    )
    plugin.chmod(0o755)
    (tmp_path / "ca.crt").write_bytes(AUTHORITY.pem)
    cluster = {
        "server": "https://h",
        "certificate-authority": "ca.crt",
        "tls-server-name": "name",
        "proxy-url": "http://p:1",
        "extensions": [
            {"name": "other", "extension": 1},
            {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}},
        ],
    }
    user = {"exec": EXEC | {"command": "bin/get-token", "provideClusterInfo": True}}
    connection = load(write(tmp_path / "config", a_kubeconfig(cluster=cluster, user=user)))
    assert await headers(connection) == {"Authorization": "Bearer x"}
    assert json.loads((tmp_path / "told").read_text())["spec"]["cluster"] == {
        "server": "https://h",
        "tls-server-name": "name",
        "certificate-authority-data": encoded(AUTHORITY.pem),
        "proxy-url": "http://p:1",
        "config": {"audience": "a"},
    }


def test_an_exec_plugin_without_a_slash_is_left_to_the_path(tmp_path: Path) -> None:
    connection = load(write(tmp_path / "config", a_kubeconfig(user={"exec": EXEC})))
    assert repr(connection.credentials) == "<exec plugin get-token>"


async def test_what_is_written_down_comes_before_an_exec_plugin(tmp_path: Path) -> None:
    connection = load(write(tmp_path / "config", a_kubeconfig(user={"token": "t", "exec": EXEC})))
    assert await headers(connection) == {"Authorization": "Bearer t"}


def test_only_the_older_version_of_exec_plugins_may_leave_out_the_mode(tmp_path: Path) -> None:
    older = EXEC | {"apiVersion": "client.authentication.k8s.io/v1beta1", "interactiveMode": None}
    connection = load(write(tmp_path / "config", a_kubeconfig(user={"exec": older})))
    assert repr(connection.credentials) == "<exec plugin get-token>"


@pytest.mark.parametrize(
    ("user", "says"),
    [
        pytest.param({"token": "t", "username": "n"}, "token: a username or password is given as well", id="two-ways"),
        pytest.param({"token": "a\nb"}, "token: .*characters that no header can carry", id="token-of-two-lines"),
        pytest.param({"tokenFile": "gone"}, "tokenFile: cannot read .*/gone: No such file", id="token-file-missing"),
        pytest.param({"client-certificate-data": "QQ=="}, "client-key: must be given", id="no-key"),
        pytest.param(
            {"client-certificate": "gone", "client-key": "gone"},
            "client-certificate: cannot read .*/gone",
            id="no-file",
        ),
        pytest.param(
            {"client-certificate-data": "QQ==", "client-key-data": "QQ=="},
            "client-certificate: the client certificate and its key cannot be used",
            id="no-certificate",
        ),
        pytest.param(
            {"client-certificate-data": "QQ==", "client-key-data": "*"}, "client-key-data: is not base64", id="base64"
        ),
        pytest.param(
            {"client-certificate-data": "QQ==", "client-certificate": "x"},
            "client-certificate: client-certificate-data is given as well",
            id="certificate-twice",
        ),
        pytest.param({"auth-provider": {"name": "gcp"}}, "auth-provider: is not supported", id="auth-provider"),
        pytest.param({"as-groups": ["g"]}, "as: must name a user", id="groups-of-nobody"),
        pytest.param({"exec": EXEC | {"command": ""}}, "exec.command: must be given", id="exec-command"),
        pytest.param(
            {"exec": EXEC | {"apiVersion": "client.authentication.k8s.io/v1alpha1"}},
            'exec.apiVersion: is "client.authentication.k8s.io/v1alpha1", must be one of',
            id="exec-version",
        ),
        pytest.param(
            {"exec": EXEC | {"interactiveMode": None}}, 'exec.interactiveMode: is "", must be one of', id="exec-mode"
        ),
        pytest.param({"exec": EXEC | {"env": [{"value": "x"}]}}, "exec.env: every variable must have", id="exec-env"),
    ],
)
def test_a_user_that_cannot_be_used_is_explained(tmp_path: Path, user: dict[str, Any], says: str) -> None:
    file = write(tmp_path / "config", a_kubeconfig(user=user))
    with pytest.raises(KubeconfigError, match=says) as caught:
        load(file)
    assert str(caught.value).startswith(f'{file}: user "dev": ')


def test_no_text_of_a_connection_shows_a_secret(tmp_path: Path) -> None:
    issued = AUTHORITY.issue("admin")
    user = {
        "token": "s3cret",
        "client-certificate-data": encoded(issued.chain),
        "client-key-data": encoded(issued.key),
    }
    cluster = {"server": "https://h", "proxy-url": "http://ann:s3cret@p"}
    text = repr(load(write(tmp_path / "config", a_kubeconfig(user=user, cluster=cluster))))
    assert "s3cret" not in text
    assert issued.key.decode().split("\n")[1] not in text
