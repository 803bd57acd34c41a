"""Pods on this machine: started, many at once, at rest, talking to each other, and talkative."""
