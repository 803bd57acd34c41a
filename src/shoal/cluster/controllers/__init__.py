"""What kube-controller-manager does, for the embedded cluster: one room for each of its controllers.

Each room exports ``add_…(manager)``, which adds its controllers to a manager; ``everything.py`` adds them all. They are
ordinary clients, and work on any API server. What several rooms need lies beside them: ``claims`` (whose children are
whose), ``templates`` (a pod from its template), ``batches`` (creating many), ``ranking`` (which pod to give up first).
"""
