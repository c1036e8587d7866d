#!/usr/bin/env python3
"""Synchronous training with a parameter server, over torch RPC (TensorPipe).

Rank 0 is the server and holds --grad-mb of parameters. Every other rank is a worker: it pulls the parameters, computes
(a sleep), and pushes a gradient of the same size; a push returns when all workers of the iteration have pushed. The
place of a rank comes from RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Worker 1 prints a line an iteration.
"""
import argparse
import os
import threading
import time

import torch
import torch.distributed.rpc as rpc

import steps


class Server:
    """The parameters and the gradients of the current iteration. Called from many RPC threads."""

    def __init__(self, elements, workers):
        self.lock = threading.Lock()
        self.parameters = torch.zeros(elements)
        self.workers = workers
        self.pushed, self.complete = 0, torch.futures.Future()

    def add(self, gradient):
        with self.lock:
            self.parameters.add_(gradient, alpha=-1e-4)
            self.pushed += 1
            complete = self.complete
            if self.pushed < self.workers:
                return complete
            self.pushed, self.complete = 0, torch.futures.Future()
        complete.set_result(None)
        return complete


server = None


def pull():
    return server.parameters


@rpc.functions.async_execution
def push(gradient):
    return server.add(gradient)


def work(args, rank, world):
    elements = int(args.grad_mb * 1e6 / 4)
    gradient = torch.ones(elements)
    steps.wait_for_start(args, rank)
    for number in steps.iterations(args):
        begun = time.monotonic()
        rpc.rpc_sync("rank0", pull)
        time.sleep(args.compute_ms / 1e3)
        rpc.rpc_sync("rank0", push, args=(gradient,))
        if rank == 1:
            steps.say(job=args.job, rank=rank, iteration=number, t=begun, ms=(time.monotonic() - begun) * 1e3,
                      link_bytes=elements * 4 * (world - 1))


def main():
    global server
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps.add_arguments(parser)
    parser.add_argument("--grad-mb", type=float, default=2)
    args = parser.parse_args()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    if rank == 0:
        server = Server(int(args.grad_mb * 1e6 / 4), world - 1)
    # Plain TCP: shared memory would carry nothing over the network when ranks share a machine.
    options = rpc.TensorPipeRpcBackendOptions(init_method="env://", num_worker_threads=8, rpc_timeout=120,
                                              _transports=["uv"], _channels=["basic"])
    rpc.init_rpc(f"rank{rank}", rank=rank, world_size=world, rpc_backend_options=options)
    if rank > 0:
        work(args, rank, world)
    else:
        steps.say(event="ready", job=args.job, rank=rank)
    rpc.shutdown(timeout=0)


if __name__ == "__main__":
    main()
