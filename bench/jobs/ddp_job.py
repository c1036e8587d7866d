#!/usr/bin/env python3
"""Data-parallel training with torch DistributedDataParallel over gloo.

A stack of linear layers whose parameters add up to --grad-mb is trained with SGD: real gradient buckets, real overlap of
the backward pass with the all-reduce. The accelerator is stood in for by a sleep (--compute-ms, one third forward), so
that many ranks fit on two cores and the network is what counts. The place of a rank comes from the usual RANK,
WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Rank 0 prints a line an iteration; with --digest every rank does, and the line
holds the loss and a checksum of all parameters.
"""
import argparse
import datetime
import hashlib
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import steps


class Busy(torch.autograd.Function):
    """Identity that takes as long as an accelerator would in each direction."""

    @staticmethod
    def forward(ctx, x, forward_s, backward_s):
        ctx.backward_s = backward_s
        time.sleep(forward_s)
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        time.sleep(ctx.backward_s)
        return gradient.clone(), None, None


class Model(torch.nn.Module):
    def __init__(self, grad_mb, layers, compute_ms):
        super().__init__()
        self.width = max(1, int((grad_mb * 1e6 / 4 / layers) ** 0.5))
        self.layers = torch.nn.ModuleList(torch.nn.Linear(self.width, self.width, bias=False) for _ in range(layers))
        self.forward_s = compute_ms / 3e3 / layers
        self.backward_s = 2 * self.forward_s

    def forward(self, x):
        for layer in self.layers:
            x = Busy.apply(torch.tanh(layer(x)), self.forward_s, self.backward_s)
        return x


def digest(model):
    total = hashlib.blake2b(digest_size=16)
    for parameter in model.parameters():
        total.update(parameter.detach().numpy().tobytes())
    return total.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps.add_arguments(parser)
    parser.add_argument("--grad-mb", type=float, default=4)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--bucket-mb", type=float, default=25)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--digest", action="store_true", help="print loss and parameter checksum, on every rank")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=120))
    rank, world = dist.get_rank(), dist.get_world_size()
    model = Model(args.grad_mb, args.layers, args.compute_ms)
    grad_bytes = sum(p.numel() * 4 for p in model.parameters())
    parallel = DistributedDataParallel(model, bucket_cap_mb=args.bucket_mb)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.learning_rate)
    data = torch.Generator().manual_seed(1000 + rank)
    dist.barrier()
    steps.wait_for_start(args, rank)
    for number in steps.iterations(args):
        begun = time.monotonic()
        output = parallel(torch.randn(2, model.width, generator=data))
        loss = (output * output).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        proof = {"loss": repr(loss.item()), "digest": digest(model)} if args.digest else {}
        if rank == 0 or args.digest:
            # A ring all-reduce sends 2 (n-1)/n of the gradient out of every rank.
            steps.say(job=args.job, rank=rank, iteration=number, t=begun, ms=(time.monotonic() - begun) * 1e3,
                      link_bytes=2 * (world - 1) * grad_bytes // world, **proof)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
