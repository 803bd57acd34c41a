"""Lets contestants do the same work on the same real API server, one after the other, and measures each from outside."""
