#!/usr/bin/python3
"""Runs weir-coordinator as an operator would, right and wrong. Usage: program_test.py PATH"""
import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

PROGRAM = sys.argv.pop(1)
FABRIC = '[[site]]\nname = "a"\n[[host]]\nname = "h"\nsite = "a"\naddresses = ["10.0.0.1"]\nnic = "1 Gbit/s"\n'


class Coordinator(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.topology = self.write("fabric.toml", FABRIC)

    def write(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "w") as out:
            out.write(text)
        return path

    def fails(self, *arguments):
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=20)
        return done.returncode, done.stderr

    def start(self, descriptors=None):
        def limit():
            if descriptors:
                resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

        process = subprocess.Popen([PROGRAM, "--topology", self.topology, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=limit)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        words = dict(word.split("=", 1) for word in process.stdout.readline().split()[1:])
        return process, words["agents"], "http://" + words["http"]

    def test_serves_status_and_ends_in_good_order(self):
        process, _, http = self.start()
        with urllib.request.urlopen(http + "/v1/status", timeout=5) as answer:
            status = json.load(answer)
        self.assertEqual([link["name"] for link in status["links"]], ["h:out", "h:in"])
        for path in ("/livez", "/readyz", "/v1/timeline"):
            with urllib.request.urlopen(http + path, timeout=5) as answer:
                json.load(answer)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=10), 0)

    def test_answers_wrong_requests_as_json(self):
        _, _, http = self.start()
        for request, code in ((http + "/nowhere", 404), (urllib.request.Request(http + "/v1/status", method="POST"), 405)):
            with self.assertRaises(urllib.error.HTTPError) as error:
                urllib.request.urlopen(request, timeout=5)
            self.assertEqual(error.exception.code, code)
            self.assertIn("error", json.load(error.exception))
            error.exception.close()

    def test_garbage_on_the_agent_port_hurts_only_its_sender(self):
        _, agents, http = self.start()
        host, port = agents.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=5) as peer:
            peer.sendall(b"GET / HTTP/1.0\r\n\r\n" * 100)
            try:
                while peer.recv(4096):
                    pass
            except ConnectionResetError:
                pass
        with urllib.request.urlopen(http + "/livez", timeout=5) as answer:
            self.assertEqual(answer.status, 200)

    def test_comes_back_after_running_out_of_descriptors(self):
        process, _, http = self.start(descriptors=24)
        host, port = http.removeprefix("http://").rsplit(":", 1)
        peers = [socket.create_connection((host, int(port)), timeout=5) for _ in range(40)]
        self.assertTrue(any("accept_failed" in line for line in process.stderr))
        for peer in peers:
            peer.close()
        with urllib.request.urlopen(http + "/livez", timeout=5) as answer:
            self.assertEqual(answer.status, 200)

    def test_closes_status_connections_beyond_the_limit(self):
        _, _, http = self.start()
        host, port = http.removeprefix("http://").rsplit(":", 1)
        with contextlib.ExitStack() as stack:
            peers = [stack.enter_context(socket.create_connection((host, int(port)), timeout=5)) for _ in range(65)]
            self.assertEqual(peers[-1].recv(1), b"")
            peers[0].sendall(b"GET /livez HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            self.assertIn(b" 200 ", peers[0].recv(4096))

    def test_port_in_use_is_said(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            code, text = self.fails("--topology", self.topology, "--listen", address)
        self.assertEqual(code, 1)
        self.assertIn(address, text)

    def test_other_hosts_only_with_plaintext(self):
        code, text = self.fails("--topology", self.topology, "--listen", "0.0.0.0:0")
        self.assertEqual(code, 2)
        self.assertIn("--plaintext", text)

    def test_wrong_use_says_what_to_do(self):
        broken = self.write("broken.toml", FABRIC + "speed = 1\n")
        for arguments, words in (((), "--topology FILE is required"),
                                 (("--topology", "/nonexistent"), "/nonexistent"),
                                 (("--topology", broken), "broken.toml:8"),
                                 (("--topology", self.topology, "--policy", "sjf"), "turns, fifo, max-min or none"),
                                 (("--topology", self.topology, "--listen", "here"), "127.0.0.1:7070"),
                                 (("--topology", self.topology, "--log", "loud"), "debug, info"),
                                 (("--topology", self.topology, "extra"), "extra")):
            code, text = self.fails(*arguments)
            self.assertEqual(code, 2, text)
            self.assertIn(words, text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
