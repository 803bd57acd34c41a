"""From a kubeconfig's user to credentials.

What kubectl prefers is preferred: a token, a password or a client certificate that is written down comes before an
exec plugin, and a certificate goes together with a token or a password.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shoal.kube.connection import Impersonation
from shoal.kube.credentials import (
    Both,
    Credentials,
    anonymous,
    basic,
    bearer_token,
    certificate_files,
    client_certificate,
    token_file,
)
from shoal.kube.exec_plugin import API_VERSIONS, ExecCommand, ExecPlugin, InteractiveMode, resolve_command
from shoal.kube.kubeconfig.files import Entry, ExecEntry, Place, UserEntry
from shoal.kube.tls import ClientCertificate, TlsError, check_certificate

_INTERACTIVE_MODES: Mapping[str, InteractiveMode] = {
    "Never": "Never",
    "IfAvailable": "IfAvailable",
    "Always": "Always",
}


def user_credentials(entry: Entry[UserEntry], cluster: Callable[[], Mapping[str, Any]]) -> Credentials:
    """The credentials that a user entry describes; ``cluster`` is what an exec plugin is told of it if it asks."""
    place, user = entry.place, entry.value
    if (user.token or user.token_file) and (user.username or user.password):
        raise place.error("token", "a username or password is given as well: keep one of the two")
    header = _header_credentials(place, user)
    certificate = _certificate_credentials(place, user)
    if header is not None and certificate is not None:
        return Both(header, certificate)
    if (written := header or certificate) is not None:
        return written
    if user.exec is not None:
        return ExecPlugin(_exec_command(place, user.exec, cluster))
    if user.auth_provider is not None:
        raise place.error("auth-provider", "is not supported, nor is it by kubectl since 1.26: use an exec plugin")
    return anonymous()


def user_impersonation(entry: Entry[UserEntry]) -> Impersonation | None:
    """Whom the user entry wants to act as."""
    user = entry.value
    if not user.as_user:
        if user.as_uid or user.as_groups or user.as_user_extra:
            raise entry.place.error("as", "must name a user where as-uid, as-groups or as-user-extra are given")
        return None
    return Impersonation(
        user=user.as_user,
        uid=user.as_uid,
        groups=tuple(user.as_groups),
        extra={key: tuple(values) for key, values in user.as_user_extra.items()},
    )


def _header_credentials(place: Place, user: UserEntry) -> Credentials | None:
    try:
        if user.token_file:
            if not user.token:
                place.read("tokenFile", user.token_file)
            return token_file(place.resolve(user.token_file), initial=user.token)
        if user.token:
            return bearer_token(user.token)
    except ValueError as error:
        raise place.error("token", str(error)) from None
    if user.username or user.password:
        return basic(user.username, user.password)
    return None


def _certificate_credentials(place: Place, user: UserEntry) -> Credentials | None:
    chain = place.content("client-certificate", path=user.client_certificate, data=user.client_certificate_data)
    if chain is None:
        return None
    key = place.content("client-key", path=user.client_key, data=user.client_key_data)
    if key is None:
        raise place.error("client-key", "must be given (or client-key-data) with a client certificate")
    try:
        check_certificate(ClientCertificate(chain, key))
    except TlsError as error:
        raise place.error("client-certificate", str(error)) from error
    if user.client_certificate and user.client_key:
        return certificate_files(place.resolve(user.client_certificate), place.resolve(user.client_key))
    return client_certificate(ClientCertificate(chain, key))


def _exec_command(place: Place, plugin: ExecEntry, cluster: Callable[[], Mapping[str, Any]]) -> ExecCommand:
    if not plugin.command:
        raise place.error("exec.command", "must be given")
    if plugin.api_version not in API_VERSIONS:
        raise place.error("exec.apiVersion", f'is "{plugin.api_version}", must be one of {", ".join(API_VERSIONS)}')
    mode = plugin.interactive_mode
    if not mode and plugin.api_version.endswith("/v1beta1"):
        mode = "IfAvailable"
    if mode not in _INTERACTIVE_MODES:
        raise place.error("exec.interactiveMode", f'is "{mode}", must be one of {", ".join(_INTERACTIVE_MODES)}')
    if not all(variable.name for variable in plugin.env):
        raise place.error("exec.env", "every variable must have a name")
    return ExecCommand(
        api_version=plugin.api_version,
        command=resolve_command(plugin.command, place.file.parent.absolute()),
        args=tuple(plugin.args),
        env=tuple((variable.name, variable.value) for variable in plugin.env),
        interactive=_INTERACTIVE_MODES[mode],
        install_hint=_printable(plugin.install_hint),
        cluster=cluster() if plugin.provide_cluster_info else None,
    )


def _printable(text: str) -> str:
    """Without what could play with a terminal."""
    return "".join(char if char.isprintable() or char in "\n\t" else f"U+{ord(char):04X}" for char in text)
