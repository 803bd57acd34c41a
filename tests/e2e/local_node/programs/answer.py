"""Answers on a port with the name of the machine it runs on: HTTP by TCP, and whatever is sent by UDP.

``/ready`` is refused while there is a file /tmp/unready.
"""

import http.server
import pathlib
import socket
import sys
import threading

NAME = socket.gethostname().encode()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_refused = self.path == "/ready" and pathlib.Path("/tmp/unready").exists()
        self.send_response(503 if is_refused else 200)
        self.send_header("Content-Length", str(len(NAME)))
        self.end_headers()
        self.wfile.write(NAME)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is called there
        """Says nothing."""


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128


def answer_datagrams(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bound:
        bound.bind(("", port))
        while True:
            _, sender = bound.recvfrom(2048)
            bound.sendto(NAME, sender)


if __name__ == "__main__":
    port = int(sys.argv[1])
    threading.Thread(target=answer_datagrams, args=[port], daemon=True).start()
    Server(("", port), Handler).serve_forever()
