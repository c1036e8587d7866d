#!/usr/bin/env python3
"""Pipeline-parallel training: stages that pass activations on and gradients back, torch send and recv over gloo.

Each iteration runs --micro-batches in GPipe order, all forward and then all backward. Between neighbouring stages
--activation-kb go one way for each micro-batch, and as many come back. Compute is a sleep, one third of it forward. The
place of a stage comes from RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. The last stage prints a line an iteration.
"""
import argparse
import datetime
import time

import torch
import torch.distributed as dist

import steps


class Stage:
    def __init__(self, rank, world, args):
        self.before = rank - 1 if rank > 0 else None
        self.after = rank + 1 if rank < world - 1 else None
        elements = max(1, int(args.activation_kb * 1e3 / 4))
        self.activations = [torch.ones(elements) for _ in range(args.micro_batches)]
        self.forward_s = args.compute_ms / 3e3 / args.micro_batches
        self.backward_s = 2 * self.forward_s

    def iterate(self):
        forward_sends, backward_sends = [], []
        for activation in self.activations:
            if self.before is not None:
                dist.recv(activation, self.before)
            time.sleep(self.forward_s)
            if self.after is not None:
                forward_sends.append(dist.isend(activation, self.after))
        for activation in reversed(self.activations):
            if self.after is not None:
                forward_sends.pop().wait()  # the buffer is about to be written to; gloo allows one wait a send
                dist.recv(activation, self.after)
            time.sleep(self.backward_s)
            if self.before is not None:
                backward_sends.append(dist.isend(activation, self.before))
        for send in backward_sends:
            send.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps.add_arguments(parser)
    parser.add_argument("--activation-kb", type=float, default=500)
    parser.add_argument("--micro-batches", type=int, default=4)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=120))
    rank, world = dist.get_rank(), dist.get_world_size()
    stage = Stage(rank, world, args)
    dist.barrier()
    steps.wait_for_start(args, rank)
    for number in steps.iterations(args):
        begun = time.monotonic()
        stage.iterate()
        if rank == world - 1:
            steps.say(job=args.job, rank=rank, iteration=number, t=begun, ms=(time.monotonic() - begun) * 1e3,
                      link_bytes=int(args.activation_kb * 1e3) * args.micro_batches)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
