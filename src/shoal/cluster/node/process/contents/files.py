"""What files a volume of configuration holds: pure rules from a volume's source to paths, bytes and modes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from shoal.api.core.pod_details import (
    ConfigMapSource,
    DownwardFile,
    KeyToPath,
    PodDetails,
    ProjectedSource,
    SecretSource,
    TokenSource,
    VolumeDetails,
)
from shoal.api.meta import QuantityString
from shoal.cluster.node.process.contents.downward import field_of, resource_of
from shoal.cluster.node.process.contents.problems import Missing, combined
from shoal.cluster.node.process.contents.references import CONFIG_MAP, SECRET, Content, Reference

DEFAULT_MODE = 0o644
PRIVATE_MODE = 0o600
_LONGEST_PATH, _LONGEST_NAME = 4096, 255


@dataclass(frozen=True, slots=True)
class File:
    """One file of a volume."""

    content: bytes
    mode: int = DEFAULT_MODE
    owner: int | None = None
    """The user whose it is to be, where that is not who wrote it."""


Files = dict[str, File]
"""By their paths in the volume."""


@dataclass(frozen=True, kw_only=True)
class Ingredients:
    """What the files of one pod's volumes are made of."""

    pod: PodDetails
    contents: Mapping[Reference, Content]
    """The ConfigMaps and Secrets that there are."""
    token: Callable[[TokenSource], str]
    """The token for a source; Missing where there is none."""
    allocatable: Mapping[str, QuantityString]
    owner: int | None = None
    """The one user of all containers, if they have one: tokens are for nobody else then."""
    has_group: bool = False
    """Whether the volume is given to a group afterwards, which is then all that may read tokens beside the owner."""

    def content(self, kind: str, name: str, *, optional: bool) -> Content:
        """A ConfigMap or Secret; empty where it may be, and is, missing."""
        named = Reference(kind, self.pod.metadata.namespace, name)
        found = self.contents.get(named)
        if found is None and not optional:
            raise Missing(named.absence)
        return found or Content()


def files_of(volume: VolumeDetails, given: Ingredients) -> Files | None:
    """The files of a volume of configuration; None for a volume of another kind."""
    if volume.config_map is not None:
        files = _of_config_map(volume.config_map, given, volume.config_map.default_mode)
    elif volume.secret is not None:
        files = _of_secret(volume.secret, volume.secret.secret_name, given, volume.secret.default_mode)
    elif volume.downward_api is not None:
        files = _of_pod(volume.downward_api.items, given, volume.downward_api.default_mode)
    elif volume.projected is not None:
        files = _of_all(volume.projected, given)
    else:
        return None
    return checked(files)


def checked(files: Files) -> Files:
    """The files by their paths in normal form; Missing where one lies outside or two are in each other's way."""
    clean: Files = {}
    for path, file in files.items():
        problem = path_problem(path)
        if problem:
            raise Missing(f"invalid path: {problem}")
        clean[os.path.normpath(path)] = file
    for path in clean:
        above = os.path.dirname(path)  # noqa: PTH120 - a path in a volume, not on this machine
        while above:
            if above in clean:
                raise Missing(f"invalid path: {path} is in {above}, which is a file")
            above = os.path.dirname(above)  # noqa: PTH120
    return clean


def path_problem(path: str) -> str:
    """Why a path cannot be one of a volume's own; empty where it can."""
    if not path:
        return 'must not be empty: ""'
    if path.startswith("/"):
        return f"must be relative path: {path}"
    if len(path) > _LONGEST_PATH:
        return f"must be less than or equal to {_LONGEST_PATH} characters"
    parts = path.split("/")
    if ".." in parts:
        return f"must not contain '..': {path}"
    if any(len(part.encode()) > _LONGEST_NAME for part in parts):
        return f"filenames must be less than or equal to {_LONGEST_NAME} characters"
    if parts[0].startswith(".."):
        return f"must not start with '..': {path}"
    if os.path.normpath(path) == "." or "\0" in path:
        return f"must name a file: {path!r}"
    return ""


def _of_config_map(source: ConfigMapSource, given: Ingredients, mode: int | None) -> Files:
    content = given.content(CONFIG_MAP, source.name, optional=source.optional)
    return _chosen(content, source.items, mode, "configmap references non-existent config key", source.optional)


def _of_secret(source: SecretSource, name: str, given: Ingredients, mode: int | None) -> Files:
    content = given.content(SECRET, name, optional=source.optional)
    return _chosen(content, source.items, mode, "references non-existent secret key", source.optional)


def _chosen(content: Content, items: Sequence[KeyToPath], mode: int | None, absence: str, optional: bool) -> Files:
    usual = DEFAULT_MODE if mode is None else mode
    if not items:
        return {key: File(value, usual) for key, value in (*content.data.items(), *content.binary.items())}
    files: Files = {}
    for item in items:
        value = content.file(item.key)
        if value is not None:
            files[item.path] = File(value, usual if item.mode is None else item.mode)
        elif not optional:
            raise Missing(f"{absence}: {item.key}")
    return files


def _of_pod(items: Sequence[DownwardFile], given: Ingredients, mode: int | None) -> Files:
    usual = DEFAULT_MODE if mode is None else mode
    files: Files = {}
    problems: list[str] = []
    for item in items:
        value = ""
        try:
            if item.field_ref is not None:
                value = field_of(given.pod, item.field_ref.field_path)
            elif item.resource_field_ref is not None:
                value = resource_of(given.pod, item.resource_field_ref, given.allocatable)
        except Missing as missing:
            problems.append(str(missing))
        files[item.path] = File(value.encode(), usual if item.mode is None else item.mode)
    if problems:
        raise Missing(combined(problems))
    return files


def _of_all(source: ProjectedSource, given: Ingredients) -> Files:
    """All sources in one folder; where two have the same path the later one counts."""
    files: Files = {}
    problems: list[str] = []
    for part in source.sources:
        try:
            if part.config_map is not None:
                files |= _of_config_map(part.config_map, given, source.default_mode)
            elif part.secret is not None:
                files |= _of_secret(part.secret, part.secret.name, given, source.default_mode)
            elif part.downward_api is not None:
                files |= _of_pod(part.downward_api.items, given, source.default_mode)
            elif part.service_account_token is not None:
                files[part.service_account_token.path] = _of_token(part.service_account_token, source, given)
            else:
                problems.append("a source is of a kind that this node does not know")
        except Missing as missing:
            problems.append(str(missing))
    if problems:
        raise Missing(combined(problems))
    return files


def _of_token(chosen: TokenSource, source: ProjectedSource, given: Ingredients) -> File:
    usual = DEFAULT_MODE if source.default_mode is None else source.default_mode
    is_private = given.owner is not None or given.has_group
    return File(given.token(chosen).encode(), PRIVATE_MODE if is_private else usual, given.owner)
