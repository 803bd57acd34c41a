"""An HTTP server that shows what reaches it.

Any path is answered with the request as JSON. ``/stream`` sends one line, and a second one once ``/release`` was asked
for. ``/socket`` is a WebSocket that sends back every short text message.
"""

import base64
import hashlib
import http.server
import json
import sys
import threading

RELEASED = threading.Event()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        match self.path:
            case "/stream":
                self._stream()
            case "/socket":
                self._echo_messages()
            case _:
                self._show()

    def do_POST(self) -> None:
        self._show()

    def _show(self) -> None:
        if self.path == "/release":
            RELEASED.set()
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen = {"method": self.command, "path": self.path, "headers": headers, "body": sent}
        body = json.dumps(seen | {"from": self.client_address[0]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in (b"first\n", b"second\n"):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.flush()
            RELEASED.wait()
        self.wfile.write(b"0\r\n\r\n")

    def _echo_messages(self) -> None:
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        self.close_connection = True
        while head := self.rfile.read(2):
            mask, payload = self.rfile.read(4), self.rfile.read(head[1] & 0x7F)
            text = bytes(one ^ mask[place % 4] for place, one in enumerate(payload))
            self.wfile.write(bytes([head[0], len(text)]) + text)
            if head[0] & 0xF == 8:
                return

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is called there
        """Says nothing."""


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("", int(sys.argv[1])), Handler).serve_forever()
