"""The rules for PodCliqueSets, one subject a module: from a set (and what it replaces) to what is wrong with it.

All are pure. What has to be looked up first (a ClusterTopologyBinding) comes in as a value.
"""
