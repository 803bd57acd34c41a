"""This machine as a node: containers are processes of it, in namespaces of their own, with no container runtime.

``runtime`` is a small program that makes namespaces and starts processes in them, and knows nothing of Kubernetes.
The agent beside it does what a kubelet does: it prepares what containers find (``contents``), leads pods through their
lives (``pods``), answers for logs and commands (``answers``) and for the machine (``machine``). ``network`` is what
kube-proxy and a cluster's DNS are elsewhere.
"""
