"""What kubeconfig files say, and how several become one.

The first file to name a cluster, a user, a context or the current context wins, and its entry is taken whole. Every
entry remembers where it stands, so that an error can say so and a relative path starts from its file's directory.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import yaml

V = TypeVar("V")


class KubeconfigError(Exception):
    """A kubeconfig cannot be used, or none was found: says which file, which entry, which field, and what to do."""


class Extension(msgspec.Struct, frozen=True):
    """What a cluster's entry says to one kind of reader."""

    name: str = ""
    extension: Any = None


class ClusterEntry(msgspec.Struct, frozen=True, rename="kebab"):
    """Where a cluster is."""

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: list[Extension] = []


class EnvironmentVariable(msgspec.Struct, frozen=True):
    """One variable for an exec plugin."""

    name: str = ""
    value: str = ""


class ExecEntry(msgspec.Struct, frozen=True, rename="camel"):
    """The program that gives credentials."""

    api_version: str = ""
    command: str = ""
    args: list[str] = []
    env: list[EnvironmentVariable] = []
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class UserEntry(msgspec.Struct, frozen=True, rename="kebab"):
    """Who we are."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    as_user: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] = []
    as_user_extra: dict[str, list[str]] = {}
    username: str = ""
    password: str = ""
    auth_provider: Any = None
    exec: ExecEntry | None = None


class ContextEntry(msgspec.Struct, frozen=True):
    """Which user at which cluster."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


@dataclass(frozen=True)
class Place:
    """Where an entry stands."""

    file: Path
    kind: str
    name: str

    def __str__(self) -> str:
        return f'{self.file}: {self.kind} "{self.name}"'

    def error(self, field: str, problem: str) -> KubeconfigError:
        """The error that one field of this entry is."""
        return KubeconfigError(f"{self}: {field}: {problem}")

    def resolve(self, path: str) -> Path:
        """A path as the file means it."""
        return self.file.parent.absolute() / path

    def read(self, field: str, path: str) -> bytes:
        """The content of a file that a field names."""
        try:
            return self.resolve(path).read_bytes()
        except OSError as error:
            raise self.error(field, f"cannot read {self.resolve(path)}: {error.strerror}") from error

    def decode(self, field: str, text: str) -> bytes:
        """The content that a ``-data`` field carries."""
        try:
            return b64decode("".join(text.split()), validate=True)
        except ValueError as error:
            raise self.error(field, f"is not base64 ({error})") from None

    def content(self, field: str, *, path: str, data: str) -> bytes | None:
        """What a field and its ``-data`` twin say between them; None where neither does."""
        if path and data:
            raise self.error(field, f"{field}-data is given as well: keep one of the two")
        if data:
            return self.decode(f"{field}-data", data)
        return self.read(field, path) if path else None


@dataclass(frozen=True)
class Entry(Generic[V]):
    """An entry and its place."""

    place: Place
    value: V


@dataclass(frozen=True, kw_only=True)
class Kubeconfig:
    """What one file says, or several merged."""

    files: tuple[Path, ...] = ()
    clusters: Mapping[str, Entry[ClusterEntry]] = field(default_factory=dict)
    users: Mapping[str, Entry[UserEntry]] = field(default_factory=dict)
    contexts: Mapping[str, Entry[ContextEntry]] = field(default_factory=dict)
    current_context: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is said at all."""
        return not (self.clusters or self.users or self.contexts or self.current_context)


def merge(configs: Iterable[Kubeconfig]) -> Kubeconfig:
    """Several files as one; the earlier wins."""
    merged = Kubeconfig()
    for later in configs:
        merged = Kubeconfig(
            files=merged.files + later.files,
            clusters={**later.clusters, **merged.clusters},
            users={**later.users, **merged.users},
            contexts={**later.contexts, **merged.contexts},
            current_context=merged.current_context or later.current_context,
        )
    return merged


def read_file(file: Path) -> Kubeconfig:
    """What a file says; raises KubeconfigError, which quotes nothing of it, for it holds secrets."""
    try:
        document = yaml.load(file.read_bytes(), Loader=_LOADER)  # noqa: S506 - both are safe loaders
    except OSError as error:
        raise KubeconfigError(f"{file}: cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise KubeconfigError(f"{file}: is not YAML: {_yaml_problem(error)}") from None
    if document is None:
        return Kubeconfig(files=(file,))
    if not isinstance(document, dict):
        raise KubeconfigError(f"{file}: is no kubeconfig: expected a mapping, got {type(document).__name__}")
    current = document.get("current-context") or ""
    if not isinstance(current, str):
        raise KubeconfigError(f"{file}: current-context: expected a string, got {type(current).__name__}")
    return Kubeconfig(
        files=(file,),
        clusters=_entries(file, document, "cluster", ClusterEntry),
        users=_entries(file, document, "user", UserEntry),
        contexts=_entries(file, document, "context", ContextEntry),
        current_context=current,
    )


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _entries(file: Path, document: Mapping[str, Any], kind: str, type_: type[V]) -> dict[str, Entry[V]]:
    listed = document.get(f"{kind}s") or []
    if not isinstance(listed, list):
        raise KubeconfigError(f"{file}: {kind}s: expected a list, got {type(listed).__name__}")
    entries: dict[str, Entry[V]] = {}
    for index, item in enumerate(listed):
        name = item.get("name") if isinstance(item, dict) else None
        if not isinstance(name, str) or not name:
            raise KubeconfigError(f"{file}: {kind}s[{index}]: name: expected a string that is not empty")
        place = Place(file, kind, name)
        if name in entries:
            raise place.error("name", f"another {kind} of this file has the same: rename one")
        try:
            value = msgspec.convert(_without_nulls(item.get(kind) or {}), type_)
        except msgspec.ValidationError as error:
            problem, _, at = str(error).partition(" - at `$")
            raise place.error(at.strip("`.") or kind, problem) from None
        entries[name] = Entry(place, value)
    return entries


def _without_nulls(value: Any) -> Any:
    """Go reads null as absent."""
    if not isinstance(value, dict):
        return value
    return {key: _without_nulls(item) for key, item in value.items() if item is not None}


def _yaml_problem(error: yaml.YAMLError) -> str:
    # The error's own text quotes the line, which may be a token.
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"{error.problem} (line {error.problem_mark.line + 1})"
    return type(error).__name__
