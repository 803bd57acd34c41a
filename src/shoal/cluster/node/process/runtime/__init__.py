"""A small program that runs containers: it makes namespaces and starts processes in them.

It is to the agent what a container runtime is to a kubelet. All of it loads nothing but the standard library and
msgspec, since it is copied for every container, and it has a single thread, since it forks.
"""
