"""The server to which training programs report how far they are, from inside their pods.

``reports`` says what a report is and what is wrong with one; ``tokens`` whose it is; ``server`` takes it over HTTPS and
writes it into the TrainJob's status.
"""

from shoal.training.progress.server import PORT, ProgressServer, add_progress

__all__ = ["PORT", "ProgressServer", "add_progress"]
