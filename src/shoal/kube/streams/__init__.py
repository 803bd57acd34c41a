"""Into pods: their logs, commands run in them, their main process, and their ports.

Logs are a streamed answer; the rest are WebSockets whose messages begin with the number of a channel."""

from shoal.kube.streams.commands import Completed, ExecSession, Output, StdinStaysOpen, attach, exec_in_pod, run_in_pod
from shoal.kube.streams.logs import follow_logs, log_chunks
from shoal.kube.streams.ports import PortConnection, forward_port, port_forward

__all__ = [
    "Completed",
    "ExecSession",
    "Output",
    "PortConnection",
    "StdinStaysOpen",
    "attach",
    "exec_in_pod",
    "follow_logs",
    "forward_port",
    "log_chunks",
    "port_forward",
    "run_in_pod",
]
