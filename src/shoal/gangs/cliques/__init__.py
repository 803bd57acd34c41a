"""PodCliques: keeps the pods of each as many and as new as asked for, lifts their gates, and tells how they are.

``plan``, ``gates``, ``rolling`` and ``status`` are the rules; ``pods`` says what a pod is made of; ``pod_writes`` and
``shared_claims`` do the writing, and ``controller`` is the reconcile.
"""

from shoal.gangs.cliques.controller import add_cliques

__all__ = ["add_cliques"]
