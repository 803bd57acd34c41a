"""The cluster that ``shoal up`` starts on one machine.

``kubernetes`` runs the real thing from its own binaries.
"""
