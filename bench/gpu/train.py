"""A nanochat-d12-sized model trained in plain PyTorch, as the subject of bench/gpu/overhead.

It does what training scripts do to the file system: imports a few thousand modules, maps token
shards, reads some of them by hand, appends a metrics file, writes checkpoints. One line of JSON at
the end says how long the loop took.
"""

import argparse
import json
import pathlib
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

DEPTH, WIDTH, HEADS, VOCABULARY, SEQUENCE = 12, 768, 6, 32768, 2048


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(F.rms_norm(x, (WIDTH,))).chunk(3, dim=-1)
        heads = [t.view(batch, length, HEADS, -1).transpose(1, 2) for t in (q, k, v)]
        attended = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.down(F.relu(self.up(F.rms_norm(x, (WIDTH,)))).square())


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens, targets):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        logits = self.head(F.rms_norm(x, (WIDTH,)))
        return F.cross_entropy(logits.view(-1, VOCABULARY), targets.view(-1))


def make_shards(folder, count=8, tokens=4_000_000):
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(1)
    for i in range(count):
        path = folder / f"shard{i}.bin"
        if not path.exists():
            random.integers(0, VOCABULARY, tokens, dtype=np.uint16).tofile(path)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--data", type=pathlib.Path, required=True)
    arguments.add_argument("--out", type=pathlib.Path, required=True)
    arguments.add_argument("--steps", type=int, default=400)
    arguments.add_argument("--batch", type=int, default=32)
    arguments.add_argument("--checkpoint-every", type=int, default=200)
    arguments.add_argument("--make-data", action="store_true")
    options = arguments.parse_args()
    if options.make_data:
        make_shards(options.data)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    shards = [np.memmap(p, dtype=np.uint16) for p in sorted(options.data.glob("*.bin"))]
    span = options.batch * SEQUENCE + 1
    metrics = open(options.out / "metrics.jsonl", "w")
    begun = None
    for step in range(options.steps):
        if step == 20:  # past the allocator's and cuBLAS's first steps
            torch.cuda.synchronize()
            begun = time.perf_counter()
        shard = shards[step % len(shards)]
        at = (step * span) % (len(shard) - span)
        batch = torch.from_numpy(shard[at : at + span].astype(np.int64)).cuda(non_blocking=True)
        tokens, targets = batch[:-1].view(-1, SEQUENCE), batch[1:].view(-1, SEQUENCE)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(tokens, targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 10 == 0:
            metrics.write(json.dumps({"step": step, "loss": loss.item()}) + "\n")
            metrics.flush()
        if (step + 1) % options.checkpoint_every == 0:
            torch.save(model.state_dict(), options.out / f"step{step + 1}.pt")
    torch.cuda.synchronize()
    loop = time.perf_counter() - begun
    print(json.dumps({"loop_s": loop, "steps": options.steps - 20, "loss": loss.item()}))


if __name__ == "__main__":
    main()
