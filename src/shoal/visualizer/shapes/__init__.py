"""What the visualizer's JSON looks like: a pure function from the scheduler's view for each kind of object."""
