"""A Kubernetes-compatible API in one asyncio process: storage, kinds, patches, apply, admission, access, discovery.

A request passes through the rooms in the order of their names in ``server``: the front reads it, access says who asks
and whether they may, ``verbs`` carries it out on plain JSON values, and storage keeps the result and tells
the watchers.
"""
