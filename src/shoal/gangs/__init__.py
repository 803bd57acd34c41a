"""Gangs: PodCliqueSet → PodClique → PodGang → the objects of whichever scheduler places the pods.

``sets``, ``groups``, ``cliques`` and ``podgangs`` keep the objects of Grove's kinds as they are asked for; ``backends``
say the same to each scheduler in its own words. ``plan`` is what all agree on: what a replica is made of.
"""
