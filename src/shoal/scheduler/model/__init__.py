"""The cluster as the engine sees it: nodes as arrays, jobs as trees of pods, queues. No I/O, no Kubernetes objects.

The model is kept up to date by whoever watches the cluster; a session works on it and puts back what it changed.
"""
