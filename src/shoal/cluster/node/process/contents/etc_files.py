"""The files of pods in /etc, on disk: written for the whole pod, and bound by each of its containers."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import structlog

from shoal.api.core.pod_details import PodDetails
from shoal.cluster.node.process.contents.etc import Hostname, hostname_of, hosts, resolv_conf
from shoal.cluster.node.process.contents.facts import NodeFacts
from shoal.cluster.node.process.layout import Layout

log = structlog.get_logger("shoal.cluster.node.process")

Names = Callable[[str], Iterable[tuple[str, Sequence[str]]]]
"""Addresses with their names, as they are seen in a namespace."""


class _Written(NamedTuple):
    pod: PodDetails
    address: str


class EtcFiles:
    """Writes them, and again where what they are made of has changed."""

    def __init__(self, layout: Layout, facts: NodeFacts, machine: Path) -> None:
        self._layout = layout
        self._facts = facts
        self._machine = machine
        self._names: Names = lambda namespace: ()
        self._written: dict[str, _Written] = {}

    def hostname(self, pod: PodDetails) -> Hostname:
        """The name of a pod."""
        return hostname_of(pod, self._facts, machine_name=socket.gethostname())

    def write(self, pod: PodDetails, address: str) -> None:
        """Writes the files of a pod that has this address.

        Its hosts are left alone while the address stays: containers may have added some of their own.
        """
        uid = pod.metadata.uid
        resolver = resolv_conf(pod, self._facts, machine_resolv_conf=self._of_machine("resolv.conf"))
        _write(self._layout.etc(uid, "hostname"), f"{self.hostname(pod).short}\n")
        _write(self._layout.etc(uid, "resolv.conf"), resolver)
        before = self._written.get(uid)
        if before is None or before.address != address:
            self._write_hosts(pod, address)
            self._written[uid] = _Written(pod, address)

    def write_again(self, pod: PodDetails) -> None:
        """Writes the files of a pod that were written before, as they should be now."""
        before = self._written.get(pod.metadata.uid)
        if before is not None:
            self.write(pod, before.address)

    def publish(self, names: Names) -> None:
        """Writes these names into the hosts files of all pods, where those have the machine's network."""
        self._names = names
        if self._facts.network == "host":
            for pod, address in self._written.values():
                try:
                    self._write_hosts(pod, address)
                except OSError as error:  # one pod's; the others do not go without for it
                    log.warning("names not written", pod=str(pod.metadata.name), error=str(error))

    def forget(self, uid: str) -> None:
        """Forgets a pod whose files are to be removed."""
        self._written.pop(uid, None)

    def _write_hosts(self, pod: PodDetails, address: str) -> None:
        text = hosts(
            pod,
            self._facts,
            self.hostname(pod),
            address=address,
            machine_hosts=self._of_machine("hosts"),
            others=self._names(pod.metadata.namespace),
        )
        _write(self._layout.etc(pod.metadata.uid, "hosts"), text)

    def _of_machine(self, name: str) -> str:
        try:
            return (self._machine / name).read_text(errors="replace")
        except OSError:
            return ""


def _write(path: Path, text: str) -> None:
    """Writes a file of which containers have the very one: it is changed, not replaced, and only where it differs."""
    content = text.encode()
    if path.exists():
        if path.read_bytes() == content:
            return
        with path.open("r+b") as file:
            file.write(content)
            file.truncate()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o644)
