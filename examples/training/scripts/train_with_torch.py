"""A small network trained on two nodes that hold one half of the points each, with PyTorch and gloo.

torchrun reads Trainer's variables PET_* and tells each process its rank.
"""

import os

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

STEPS = int(os.environ.get("STEPS", "50"))

distributed.init_process_group("gloo")
rank = distributed.get_rank()
print(f"rank {rank} of {distributed.get_world_size()} found the others at {os.environ['MASTER_ADDR']}", flush=True)

torch.manual_seed(rank)
x = torch.randn(512, 8)
y = x @ torch.arange(1.0, 9.0)

network = DistributedDataParallel(nn.Linear(8, 1, bias=False))
descent = torch.optim.SGD(network.parameters(), lr=0.05)
for number in range(STEPS):
    descent.zero_grad()
    loss = nn.functional.mse_loss(network(x).squeeze(), y)
    loss.backward()
    descent.step()
    shared = loss.detach().clone()
    distributed.all_reduce(shared)
    if number % 10 == 0 or number == STEPS - 1:
        print(f"rank {rank} step {number} loss {shared.item() / distributed.get_world_size():.4f}", flush=True)

weights = [round(weight, 3) for weight in network.module.weight.squeeze().tolist()]
print(f"rank {rank} result {weights}", flush=True)
distributed.destroy_process_group()
