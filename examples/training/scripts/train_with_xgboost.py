"""Trees grown by two nodes over points of which each holds one half, with XGBoost.

Trainer's variables DMLC_* say where the tracker is, by which the nodes find each other; the first of them runs it.
"""

import os
import socket
import time
import zlib

import numpy as np
import xgboost
from xgboost.collective import CommunicatorContext, get_rank, get_world_size
from xgboost.tracker import RabitTracker

STEPS = int(os.environ.get("STEPS", "20"))
tracker_name = os.environ["DMLC_TRACKER_URI"]
tracker_port = int(os.environ["DMLC_TRACKER_PORT"])
number_of_nodes = int(os.environ["DMLC_NUM_WORKER"])
is_first = os.environ["DMLC_TASK_ID"] == "0"


def address_of_the_tracker() -> str:
    """Nodes start in any order, so it may take a moment until there is one."""
    deadline = time.monotonic() + 120
    while True:
        try:
            return socket.gethostbyname(tracker_name)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


address = address_of_the_tracker()
if is_first:
    tracker = RabitTracker(n_workers=number_of_nodes, host_ip=address, port=tracker_port, sortby="task")
    tracker.start()

others = {
    "dmlc_tracker_uri": address,
    "dmlc_tracker_port": tracker_port,
    "dmlc_task_id": os.environ["DMLC_TASK_ID"],
    "dmlc_retry": 20,
}
with CommunicatorContext(**others):
    rank = get_rank()
    print(f"rank {rank} of {get_world_size()} found the others at {tracker_name}", flush=True)

    chance = np.random.default_rng(seed=rank)
    x = chance.normal(size=(2000, 4))
    y = x[:, 0] ** 2 + 3 * x[:, 1] * x[:, 2]
    points = xgboost.DMatrix(x, label=y)

    how = {"objective": "reg:squarederror", "max_depth": 4, "tree_method": "hist", "nthread": 1}
    trees = xgboost.Booster(how, [points])
    for number in range(STEPS):
        trees.update(points, number)
        loss = float(trees.eval(points).rpartition(":")[2])  # over the points of all nodes
        if number % 5 == 0 or number == STEPS - 1:
            print(f"rank {rank} step {number} loss {loss:.4f}", flush=True)
    print(f"rank {rank} result {zlib.crc32(''.join(trees.get_dump()).encode()):08x}", flush=True)

if is_first:
    tracker.wait_for()
