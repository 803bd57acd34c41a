"""Pods posted to a cluster that runs, and when each of them was bound by the scheduler beside it."""
