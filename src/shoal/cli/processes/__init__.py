"""What runs in each process of ``shoal up``: the API server, controllers with nodes, the portal, a real Kubernetes.

Each module has one function that makes the process's ``main``, given what it needs; the supervisor forks it.
"""
