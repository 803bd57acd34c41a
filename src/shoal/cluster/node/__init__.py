"""Node agents of the embedded cluster: what kubelets are elsewhere. They are ordinary clients of the API server.

``simulated`` are nodes without machines; ``process`` is this machine as a node, where pods really run. What agents of
every kind share lies beside them: ``kubelet`` (the API that they serve), ``pod_status`` (how a pod is reported),
``crash_loop`` (when a container is started again), ``addresses``.
"""
