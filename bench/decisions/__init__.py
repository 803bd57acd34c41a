"""Clusters of all sizes in the engine's model, cycles on them, and what they took."""
