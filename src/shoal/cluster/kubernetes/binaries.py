"""Which executables a real Kubernetes is made of, and where they are found.

The folders given are searched first; without any, ``PATH``, and then the cache that ``make kube-binaries`` fills.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Binaries:
    """The executables to run; the last two are needed only where their part is asked for."""

    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path | None = None
    kube_scheduler: Path | None = None


class MissingBinaries(FileNotFoundError):
    """An executable that is needed was not found."""

    def __init__(self, names: Sequence[str], searched: Sequence[Path]) -> None:
        self.names = tuple(names)
        self.searched = tuple(searched)
        places = ", ".join(str(place) for place in searched) or "no folder at all"
        super().__init__(
            f"{' and '.join(names)} not found in {places}: "
            "build them with `make kube-binaries` in a clone of Shoal, or name their folder with --kube-binaries"
        )


def find_binaries(folders: Sequence[Path] = (), *, environment: Mapping[str, str] = os.environ) -> Binaries:
    """The executables in ``folders``, or in ``PATH`` and the cache; raises MissingBinaries without the first two."""
    places = list(folders) if folders else list(_usual_places(environment))
    found = {name: _first(name, places) for name in _NAMES}
    etcd, api_server = found["etcd"], found["kube-apiserver"]
    if etcd is None or api_server is None:
        raise MissingBinaries([name for name in ("etcd", "kube-apiserver") if found[name] is None], places)
    return Binaries(
        etcd=etcd,
        kube_apiserver=api_server,
        kube_controller_manager=found["kube-controller-manager"],
        kube_scheduler=found["kube-scheduler"],
    )


def minor_version(kube_apiserver: Path, *, within: float = 2.0) -> int | None:
    """The minor version that an API server says it is of; nothing where it says none."""
    try:
        said = subprocess.run(  # noqa: S603 - a program that is about to be run anyway
            [str(kube_apiserver), "--version"], capture_output=True, text=True, timeout=within, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\bv1\.(\d+)", said)
    return int(found[1]) if found else None


_NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


def _usual_places(environment: Mapping[str, str]) -> Iterator[Path]:
    yield from (Path(part) for part in environment.get("PATH", "").split(os.pathsep) if part)
    built = _cache(environment) / "kube"
    if built.is_dir():
        # The one built last is the one that the tree at hand has asked for last.
        yield from sorted(_folders(built), key=lambda folder: folder.stat().st_mtime, reverse=True)


def _cache(environment: Mapping[str, str]) -> Path:
    """The cache that tests/support/programs/kube_binaries.py fills."""
    if chosen := environment.get("SHOAL_CACHE"):
        return Path(chosen)
    return Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shoal"


def _folders(parent: Path) -> Iterable[Path]:
    return (path for path in parent.iterdir() if path.is_dir() and not path.name.endswith(".building"))


def _first(name: str, places: Iterable[Path]) -> Path | None:
    candidates = (place / name for place in places)
    return next((path.absolute() for path in candidates if os.access(path, os.X_OK) and path.is_file()), None)
