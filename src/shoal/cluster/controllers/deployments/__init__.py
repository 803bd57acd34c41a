"""Deployments: a template that changes over time, rolled out through one ReplicaSet for each of its versions.

``controller`` watches and writes; ``revisions`` (which ReplicaSet is which version), ``sizes`` (who grows and who
shrinks by how much) and ``status`` (how far the rollout has come) are pure rules.
"""

from shoal.cluster.controllers.deployments.controller import add_deployments

__all__ = ["add_deployments"]
