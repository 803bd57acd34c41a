"""A line through points that two nodes hold one half of each, found with JAX.

Trainer's variables JAX_* say where the others are and which of them this is.
"""

import os

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

STEPS = int(os.environ.get("STEPS", "50"))

jax.distributed.initialize(
    coordinator_address=os.environ["JAX_COORDINATOR_ADDRESS"],
    num_processes=int(os.environ["JAX_NUM_PROCESSES"]),
    process_id=int(os.environ["JAX_PROCESS_ID"]),
)
rank = jax.process_index()
print(f"rank {rank} of {jax.process_count()} found the others at {os.environ['JAX_COORDINATOR_ADDRESS']}", flush=True)

chance = np.random.default_rng(seed=rank)
own_x = chance.normal(size=(512, 8)).astype(np.float32)
own_y = own_x @ np.arange(1, 9, dtype=np.float32)

mesh = Mesh(np.array(jax.devices()), ("nodes",))
split = NamedSharding(mesh, PartitionSpec("nodes"))
x = jax.make_array_from_process_local_data(split, own_x)
y = jax.make_array_from_process_local_data(split, own_y)


def step(weights: jax.Array, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """One step down the slope of all points; where they lie on several nodes JAX has these talk."""
    loss, slope = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(weights)
    return loss, weights - 0.05 * slope


weights = jax.device_put(np.zeros(8, dtype=np.float32), NamedSharding(mesh, PartitionSpec()))
quick_step = jax.jit(step)
for number in range(STEPS):
    loss, weights = quick_step(weights, x, y)
    if number % 10 == 0 or number == STEPS - 1:
        print(f"rank {rank} step {number} loss {float(loss):.4f}", flush=True)

print(f"rank {rank} result {[round(weight, 3) for weight in np.asarray(weights).tolist()]}", flush=True)
jax.distributed.shutdown()
