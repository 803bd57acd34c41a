"""Contestants do the same work on the same real API server, one after the other, and are measured from outside."""
