"""PodGangs: what of a PodCliqueSet must start together, said in one object to whichever scheduler places the pods.

``membership`` says which gang is meant and which pods are in it, ``contents`` what the PodGang says, ``status`` how far
it is, ``patience`` when half a gang is worth writing; ``controller`` is the reconcile.
"""

from shoal.gangs.podgangs.controller import add_podgangs

__all__ = ["add_podgangs"]
