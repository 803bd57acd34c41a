"""A machine as tests have it."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.cluster.node.process.machine.facts import Machine
from shoal.cluster.node.process.machine.node_object import Presence
from shoal.cluster.node.process.machine.nvml import Gpu

GIB = 1 << 30
MACHINE = Machine(
    cores=4.0,
    memory_bytes=16 * GIB,
    disk_bytes=100 * GIB,
    hostname="workstation",
    architecture="amd64",
    kernel="6.1.0",
    system="Debian GNU/Linux 12 (bookworm)",
    machine_id="0123456789abcdef0123456789abcdef",
    boot_id="8a6f3a5e-0000-4000-8000-000000000000",
)


def a_presence(**parts: Any) -> Presence:
    plain = Presence(machine=MACHINE, socket="/data/agents/local.sock", version="1.2.3")
    return msgspec.structs.replace(plain, **parts)


def some_gpus(count: int) -> list[Gpu]:
    return [
        Gpu(uuid=f"GPU-{index}", index=index, minor=index, product="NVIDIA H200", memory_bytes=143771 << 20)
        for index in range(count)
    ]
