"""Shoal: a GPU cluster's control plane in Python."""

__version__ = "0.1.0.dev0"
