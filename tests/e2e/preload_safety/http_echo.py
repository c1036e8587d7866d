#!/usr/bin/python3
"""A small web server: POST /digest answers with the SHA-256 of what was sent, GET /pattern sends 32 MiB."""
import hashlib
import http.server

PATTERN = bytes(range(255, -1, -1)) * 131072


class Handler(http.server.BaseHTTPRequestHandler):
    """Quiet, one answer a connection."""

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(PATTERN)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(hashlib.sha256(body).hexdigest().encode() + b"\n")

    def log_message(self, *_):
        pass


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
