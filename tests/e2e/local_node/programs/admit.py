"""An admission webhook over HTTPS: refuses objects that are labelled ``verdict: no``, and allows all others.

The certificate and its key are in the folder that is named; each request is printed.
"""

import http.server
import json
import ssl
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = review["request"]
        labels = request["object"]["metadata"].get("labels") or {}
        response = {"uid": request["uid"], "allowed": labels.get("verdict") != "no"}
        if not response["allowed"]:
            response["status"] = {"message": "refused by a pod"}
        body = json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}).encode()
        print("asked about", request["name"], "as", self.headers["Host"], flush=True)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is called there
        """Says nothing."""


if __name__ == "__main__":
    port, folder = int(sys.argv[1]), sys.argv[2]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/tls.crt", f"{folder}/tls.key")
    server = http.server.ThreadingHTTPServer(("", port), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()
