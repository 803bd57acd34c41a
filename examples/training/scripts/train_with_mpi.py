"""A line through points of which each process holds its share, found with mpi4py and NumPy.

mpirun starts one process of it on every node, over ssh.
"""

import os
import socket

import numpy as np
from mpi4py import MPI

STEPS = int(os.environ.get("STEPS", "50"))

everybody = MPI.COMM_WORLD
rank = everybody.Get_rank()
print(f"rank {rank} of {everybody.Get_size()} is on {socket.gethostname()}", flush=True)

chance = np.random.default_rng(seed=rank)
x = chance.normal(size=(512, 8))
y = x @ np.arange(1.0, 9.0)

weights = np.zeros(8)
for number in range(STEPS):
    error = x @ weights - y
    share = np.concatenate([[np.mean(error**2)], 2 * x.T @ error / len(x)])
    whole = np.empty_like(share)
    everybody.Allreduce(share, whole, op=MPI.SUM)
    whole /= everybody.Get_size()
    weights -= 0.05 * whole[1:]
    if number % 10 == 0 or number == STEPS - 1:
        print(f"rank {rank} step {number} loss {whole[0]:.4f}", flush=True)

print(f"rank {rank} result {np.round(weights, 3).tolist()}", flush=True)
