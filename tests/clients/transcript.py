"""Plays a script of kubectl and helm commands against a server and writes down what they said, less what differs by
run.

A script is a text file: commands first, one a line, as a shell would take them; then files, each after a line with its
name between dashes. ``@ns`` stands for the script's own namespace, and names what the script makes outside of it.

    kubectl create -f pod.yaml
    KUBE_EDITOR='sed -i s/one/two/' kubectl edit pod a
    -- pod.yaml --
    kind: Pod
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_FILE = re.compile(r"^-- (\S+) --\n", re.MULTILINE)
_VARIABLE = re.compile(r"[A-Z_]+=")


@dataclass(frozen=True)
class Script:
    """Commands, and the files that they read."""

    commands: tuple[str, ...]
    files: dict[str, str]

    @classmethod
    def read(cls, path: Path, namespace: str) -> Script:
        head, *parts = _FILE.split(path.read_text().replace("@ns", namespace))
        lines = (line.strip() for line in head.replace("\\\n", " ").splitlines())
        commands = tuple(" ".join(line.split()) for line in lines if line and not line.startswith("#"))
        return cls(commands, dict(zip(parts[::2], parts[1::2], strict=True)))


@dataclass(frozen=True)
class Place:
    """Where a script is played: which kubectl and helm, signed in where, in which folder of its own."""

    binary: Path
    kubeconfig: Path
    folder: Path
    namespace: str
    helm: Path | None = None

    def play(self, script: Script) -> str:
        """The transcript."""
        for name, content in script.files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        said = "\n".join(self._said(command) for command in script.commands)
        return normalised(said)

    def _said(self, command: str) -> str:
        words = shlex.split(command)
        variables = {}
        while _VARIABLE.match(words[0]):
            name, _, value = words.pop(0).partition("=")
            variables[name] = value
        assert words[0] in ("kubectl", "helm"), f"a script runs kubectl and helm alone: {command}"
        stdin = ""
        if "<" in words:
            stdin = (self.folder / words.pop()).read_text()
            words.pop()
        binary = self.helm if words[0] == "helm" else self.binary
        done = self.run(*words[1:], stdin=stdin, variables=variables, binary=binary)
        text = f"$ {command}\n{_readable(words, done.stdout)}"
        if done.stderr:
            text += f"stderr: {done.stderr}"
        return text if done.returncode == 0 else f"{text}exit code {done.returncode}\n"

    def run(
        self, *words: str, stdin: str = "", variables: dict[str, str] | None = None, binary: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words, binary=binary),
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=self.environment(variables or {}),
        )

    def command(self, *words: str, binary: Path | None = None) -> list[str]:
        return [str(binary or self.binary), f"--namespace={self.namespace}", *words]

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """What kubectl sees of the machine: nothing of the user's own settings."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.folder.parent / "cache"),
            "KUBECTL_KUBERC": "false",
            "TMPDIR": str(self.folder),
            **variables,
        }


# Groups and kinds that one of the two servers has alone.
_OTHERS_KINDS = re.compile(
    r"apiregistration\.k8s\.io|flowcontrol\.apiserver\.k8s\.io|metrics\.k8s\.io|scheduling\.k8s\.io/v1alpha1|"
    r"admissionpolic(y|ies)"
)


# How pods name their Workload in 1.35, of which ours has the Workloads; the fields below it are indented further.
_OTHERS_FIELDS = re.compile(r"^( *)workloadRef\t<WorkloadReference>.*\n(?:\1 +.*\n)*", re.MULTILINE)


def _readable(words: list[str], stdout: str) -> str:
    """What a command printed, less what means nothing or is none of ours."""
    if words[1] == "explain":
        # Built-in kinds are described in Kubernetes' own prose, which we do not have.
        told = _OTHERS_FIELDS.sub("", stdout)
        lines = [line for line in told.splitlines() if not line.startswith("    ") or "\t<" in line]
        return "\n".join(line for line in lines if line.strip()) + "\n"
    if words[1] in ("api-resources", "api-versions"):
        return "".join(line for line in stdout.splitlines(keepends=True) if not _OTHERS_KINDS.search(line))
    if "--raw" in words and stdout.startswith("{"):
        return json.dumps(_with_sorted_managers(json.loads(stdout)), sort_keys=True, indent=1) + "\n"
    if "--show-managed-fields" in words and stdout:
        return yaml.safe_dump(_with_sorted_managers(yaml.safe_load(stdout)))
    return stdout


def _with_sorted_managers(value: Any) -> Any:
    """Managers stand in the order of their seconds, which is one of chance for two within a second."""
    for each in value.get("items", [value]):
        each.get("metadata", {}).get("managedFields", []).sort(
            key=lambda entry: [entry.get(key, "") for key in ("operation", "manager", "subresource")]
        )
    return value


def _sorted_problems(found: re.Match[str]) -> str:
    """The problems of a custom object come in any order."""
    return "".join(sorted(found.group(0).splitlines(keepends=True)))


_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_RULES: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uid>"),
    (r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", "<time>"),
    (rf"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d ({_MONTHS}) 20\d\d \d\d:\d\d:\d\d [+-]\d{{4}}", "<time>"),
    (r"\bey[\w-]+\.ey[\w-]+\.[\w-]+", "<token>"),
    (r"""(resourceVersion"?: *["'])\d+""", r"\1<version>"),
    (r'(resourceVersion"?: *)[1-9]\d*', r"\1<version>"),
    (r"\b10\.96\.\d+\.\d+\b", "<address>"),
    (r"\b127\.0\.0\.1:\d{4,5}", "<server>"),
    (r'("serverAddress": ")[^"]+', r"\1<server>"),
    (r"\b20\d\d-\d\d-\d\d \d\d:\d\d:\d\d \+0000 UTC", "<time>"),
    (r"(jwks_uri\": \"https://)[^/]+", r"\1<server>"),
    (r"\b20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \+0000", "<time>"),
    (r"(Expected resource version to be 1, was )\d+", r"\1<version>"),
    (r'(resourceVersion\\": *\\")\d+', r"\1<version>"),
    (r"(Resource Version:\s+)\d+", r"\1<version>"),
    (r"(v\d+\.\d+\.\d+)\+shoal\b", r"\1"),
    (r"(?m)^(  (buildDate|compiler|gitCommit|goVersion|platform):) .*", r"\1 <build>"),
    (r"(?m)^(\s+targetPort: )\d{4,5}$", r"\1<port>"),
    (r"\b3[0-2]\d{3}\b", "<node port>"),
    (r"\bkube-api-access-[a-z0-9]{5}\b", "kube-api-access-<random>"),
    (r"(/tmp/|\S*/)(kubectl|LIVE|MERGED)[\w.-]*-\d+", r"\2-<random>"),
    (r"\b(LIVE|MERGED)-\d+", r"\1-<random>"),
    (r'("?continue"?: *")[^"]+', r"\1<continue>"),
    (r"(?m)(?<=\s)(\d+[smhdy])+( \(x\d+ over (\d+[smhdy])+\))?(?=\s|$)", "<age>"),
    (r"(?m)^(stderr: )?I\d{4} [\d:.]+ .*\n", r"\1"),  # the client's own log, of a race with its own deadline
    (r"(?m)(^\* .*\n)+", _sorted_problems),
    (r'(patch: Invalid value: )"\{.*\}(?=": json: )', r'\1"{...}'),
    # The difference is told in the names of Go's internal fields.
    (r"(?s)(may not (?:be changed|change fields)[^\n]*\n)@@ .*?(?=exit code)", r"\1"),
    (r"(?<=\S) {2,}", "  "),  # the width of a column follows what is in it
    (r"(?m) +$", ""),
)
_COMPILED = tuple((re.compile(pattern), by) for pattern, by in _RULES)


def normalised(text: str) -> str:
    """The text with a name for everything that differs from run to run."""
    for pattern, by in _COMPILED:
        text = pattern.sub(by, text)
    return text
