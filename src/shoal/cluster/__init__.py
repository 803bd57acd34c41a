"""The cluster that ``shoal up`` starts on one machine.

``apiserver`` is the Kubernetes API, ``controllers`` what kube-controller-manager does, ``node`` the agents of nodes; in
``kubernetes`` the real thing is run from its own binaries instead. What controllers and nodes both need lies beside.
"""
