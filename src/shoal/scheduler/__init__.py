"""One scheduler for every dialect of gangs: queues with fair shares, gangs that start together, GPUs that are shared.

``model`` is the cluster as plain values, ``session`` one cycle's working state, ``shares`` what queues are entitled to,
``actions`` what a cycle does; all of it is pure. ``watching`` keeps the model up to date and carries decisions out;
``grouper``, ``binding``, ``queues`` and ``podgroups`` are the controllers beside it.
"""
