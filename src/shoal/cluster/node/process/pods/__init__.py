"""The life of pods on this machine, as a kubelet leads it.

What is to be done is decided by rules over plain values (``decisions``, ``admission``, ``recovery``, ``status``); a
worker for each pod does it (``worker``, with ``launch``, ``termination``, ``probes`` and ``hooks``), and the keeper
has all workers and answers for them.
"""

from shoal.cluster.node.process.pods.keeper import PodKeeper

__all__ = ["PodKeeper"]
