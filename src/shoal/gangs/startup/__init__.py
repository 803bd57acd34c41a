"""Start-up order: the init container that keeps a pod waiting for those that start first, and the program in it.

``container`` is what the PodClique controller puts into pods; ``python -m shoal.gangs.startup`` (or ``grove-initc``) is
what runs there. Every waiting pod starts the program, so nothing is imported here that it does not need.
"""
