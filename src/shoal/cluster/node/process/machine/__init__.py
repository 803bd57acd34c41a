"""What the node says of the machine that it is: its Node object and heartbeats, its GPUs, and how much is used.

``facts`` and ``nvml`` read the machine, ``node_object`` turns that into what the API is told and ``keeper`` tells it,
``gpus`` is the account of who has which, and ``usage`` that of cpu time and memory.
"""

from shoal.cluster.node.process.machine.facts import Machine, read_machine
from shoal.cluster.node.process.machine.gpus import Gpus, NotEnoughGpus, gpu_environment
from shoal.cluster.node.process.machine.keeper import NodeKeeper, NodeTaken
from shoal.cluster.node.process.machine.node_object import Presence
from shoal.cluster.node.process.machine.nvml import Gpu, read_gpus
from shoal.cluster.node.process.machine.usage import Usage

__all__ = [
    "Gpu",
    "Gpus",
    "Machine",
    "NodeKeeper",
    "NodeTaken",
    "NotEnoughGpus",
    "Presence",
    "Usage",
    "gpu_environment",
    "read_gpus",
    "read_machine",
]
