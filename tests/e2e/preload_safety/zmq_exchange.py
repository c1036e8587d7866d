#!/usr/bin/python3
"""A parameter server over zmq: a child pushes gradients of many sizes, the parent adds them up and sends the sum back."""
import hashlib
import os

import zmq

SIZES = [100, 5000, 70000, 1 << 20, 6 << 20] * 4


def payload(number, size):
    return bytes([number % 251]) * size


def worker(port):
    channel = zmq.Context().socket(zmq.DEALER)
    channel.connect(f"tcp://127.0.0.1:{port}")
    digest = hashlib.sha256()
    for number, size in enumerate(SIZES):
        channel.send_multipart([str(number).encode(), payload(number, size)])
    for _ in SIZES:
        digest.update(b"".join(channel.recv_multipart()))
    channel.send(digest.hexdigest().encode())
    channel.close()


def main():
    channel = zmq.Context().socket(zmq.ROUTER)
    port = channel.bind_to_random_port("tcp://127.0.0.1")
    child = os.fork()
    if child == 0:
        worker(port)
        os._exit(0)
    digest = hashlib.sha256()
    for _ in SIZES:
        name, number, data = channel.recv_multipart()
        digest.update(number + data)
        channel.send_multipart([name, number, data[::-1]])
    _, answer = channel.recv_multipart()
    _, status = os.waitpid(child, 0)
    print(digest.hexdigest(), answer.decode(), status)


if __name__ == "__main__":
    main()
