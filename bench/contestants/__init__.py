"""The same operator, several times: every Greeting gets a ConfigMap with its words, and a status that names it.

Each contestant is a program of its own: ``python -m bench.contestants.ours KUBECONFIG NAMESPACE``. It imports and
configures what it needs, says ``ready``, begins on a line from its input, and works until SIGTERM.
"""
