"""A Kubernetes-compatible API in one asyncio process: storage, kinds, patches, apply, admission, access, discovery.

A request passes through the rooms in this order: the front reads it, access says who asks and whether they may, verbs
carry it out on plain JSON values, and storage keeps the result and tells the watchers. ``server.serving`` runs it
with its sockets, ``in_process.serve_in_process`` without them, for tests.
"""
