#!/usr/bin/env python3
"""Patterns of GPU work that show what a library between a program and the driver costs, in PyTorch.

    bench/gpu/patterns.py PATTERN [--seconds 8] [--k 8192] [--stages 3] [--ranks 2]

    launch      one addition to a few numbers after another: nothing but launches
    argmin      nearest of K centroids by one matrix product: a few large kernels
    balanced    the same with every centroid taking its own share: some 6 K tiny kernels per stage
    allreduce   six small all-reduces per step, sustained
    combined    balanced, then the all-reduces
    churn       allocations and frees by the driver, one each per block of --live live ones

The last line of the output is JSON: the median and least milliseconds per step, and the steps.
allreduce and combined start --ranks processes on one GPU, which NCCL takes for as many hosts.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import torch
import torch.distributed as dist

ROWS, WIDTH = 8192, 50


def distances(rows, centroids):
    squares = (rows * rows).sum(1, keepdim=True) + (centroids * centroids).sum(1)
    return squares - 2 * rows @ centroids.t()


def nearest(rows, centroids):
    return distances(rows, centroids).argmin(1)


def nearest_balanced(rows, centroids):
    """Centroid by centroid: each takes the closest rows that are left, as many as its share."""
    share = max(1, len(rows) // len(centroids))
    apart = distances(rows, centroids)
    taken = torch.zeros(len(rows), dtype=torch.bool, device=rows.device)
    owner = torch.full((len(rows),), -1, dtype=torch.long, device=rows.device)
    for number in range(len(centroids)):
        column = apart[:, number].masked_fill(taken, float("inf"))
        closest = torch.argsort(column)[:share]
        owner.index_fill_(0, closest, number)
        taken.index_fill_(0, closest, True)
    return owner


class Work:
    def __init__(self, options):
        torch.manual_seed(7)
        self.options = options
        self.rows = torch.randn(ROWS, WIDTH, device="cuda")
        self.codebooks = [torch.randn(options.k, WIDTH, device="cuda") for _ in range(options.stages)]
        self.few = torch.zeros(16, device="cuda")
        self.sums = torch.ones(options.k, WIDTH, device="cuda")
        self.counts = torch.ones(options.k, device="cuda")
        self.blocks = []

    def launch(self):
        for _ in range(20_000):
            self.few.add_(1)

    def quantise(self, assign):
        rest = self.rows
        for codebook in self.codebooks:
            rest = rest - codebook[assign(rest, codebook)]

    def argmin(self):
        self.quantise(nearest)

    def balanced(self):
        self.quantise(nearest_balanced)

    def allreduce(self):
        for _ in range(100 * self.options.stages):
            dist.all_reduce(self.counts)
            dist.all_reduce(self.sums)

    def combined(self):
        self.balanced()
        for _ in range(self.options.stages):
            dist.all_reduce(self.counts)
            dist.all_reduce(self.sums)

    def churn(self):
        """torch caches freed memory; its cache is off here, so that every block comes from the driver."""
        while len(self.blocks) < self.options.live:
            self.blocks.append(torch.empty(1024, dtype=torch.uint8, device="cuda"))
        for at in range(0, len(self.blocks), max(1, len(self.blocks) // 500)):
            self.blocks[at] = None
            self.blocks[at] = torch.empty(1024, dtype=torch.uint8, device="cuda")


def measure(options, rank):
    if options.ranks > 1:
        dist.init_process_group("nccl", rank=rank, world_size=options.ranks)
    step = getattr(Work(options), options.pattern)
    times = []
    begun = time.perf_counter()
    go_on = torch.ones(1, device="cuda")
    while go_on.item() > 0:
        started = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - started))
        go_on.fill_(float(len(times) < 3 or time.perf_counter() - begun < options.seconds))
        if options.ranks > 1:  # all ranks stop together
            dist.all_reduce(go_on, dist.ReduceOp.MIN)
    steady = times[1:]
    if rank == 0:
        print(json.dumps({"pattern": options.pattern, "ms_per_step": statistics.median(steady),
                          "least_ms": min(steady), "steps": len(steady)}))
    if options.ranks > 1:
        dist.destroy_process_group()


def main():
    arguments = argparse.ArgumentParser(description=__doc__,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("pattern", choices=["launch", "argmin", "balanced", "allreduce", "combined",
                                               "churn"])
    arguments.add_argument("--seconds", type=float, default=8)
    arguments.add_argument("--k", type=int, default=8192)
    arguments.add_argument("--stages", type=int, default=3)
    arguments.add_argument("--ranks", type=int, default=2)
    arguments.add_argument("--live", type=int, default=5000)
    options = arguments.parse_args()
    if options.pattern == "churn" and "PYTORCH_NO_CUDA_MEMORY_CACHING" not in os.environ:
        os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
        os.execv(sys.executable, [sys.executable] + sys.argv)
    if options.pattern not in ("allreduce", "combined"):
        options.ranks = 1
    rank = int(os.environ.get("PATTERNS_RANK", "-1"))
    if options.ranks == 1 or rank >= 0:
        return measure(options, max(rank, 0))
    # NCCL refuses two ranks on one device of one host, and takes the host id from the environment.
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(20000 + os.getpid() % 20000),
              "NCCL_SOCKET_IFNAME": "lo", "NCCL_NVLS_ENABLE": "0"}
    ranks = [subprocess.Popen([sys.executable] + sys.argv, env=os.environ | common |
                              {"PATTERNS_RANK": str(i), "NCCL_HOSTID": f"host{i}"})
             for i in range(options.ranks)]
    sys.exit(max(abs(process.wait()) for process in ranks))


if __name__ == "__main__":
    main()
