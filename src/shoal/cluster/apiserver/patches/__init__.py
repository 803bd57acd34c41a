"""The three ways to say a change: JSON patch, JSON merge patch and strategic merge patch.

Each is a pure function from a document and a change to a new document that shares nothing with either.
"""

from shoal.cluster.apiserver.patches.json_patch import json_patch
from shoal.cluster.apiserver.patches.merge_patch import merge_patch
from shoal.cluster.apiserver.patches.strategic import strategic_merge

__all__ = ["json_patch", "merge_patch", "strategic_merge"]
