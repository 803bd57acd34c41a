"""Expensive requests of one client, and how long the others wait meanwhile."""
