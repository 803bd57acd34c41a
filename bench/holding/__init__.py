"""What it costs to read pods and hold them: each client in a process of its own, on the same answers of one server."""
