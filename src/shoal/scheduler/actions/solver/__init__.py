"""Whom to end or move so that a job finds room: batches of victims, and what would become of everybody."""
