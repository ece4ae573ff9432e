#!/usr/bin/env python3
"""Counts the device memory of a training step of PyTorch's FSDP2, without a GPU: an oracle for docs/plan-model.md, 5.

    fsdp_memory.py MODEL [--sequence S] [--micro-batch B] [--micros M] [--no-sync] [--fsdp N] [--tp N] [--keep-logits]
                   [--recompute none|full|selective] [--wrap root|ends] [--json FILE]

MODEL is a name below or "layers,width,ffn,heads,key heads,vocabulary". An eager Llama in plain PyTorch runs two whole
steps on fake tensors and a fake process group of fsdp x tp ranks. Each block and the root are FSDP's units (with
"--wrap ends" embedding and head are units, too); weights are in fp32, gathered in bf16, gradients reduced in fp32;
--tp cuts it by DTensor, with sequence parallelism and a parallel loss. "selective" keeps every second mm and the
results of attention and reduce-scatters. Prints for each moment of the second step's last micro-batch the most bytes
that storages had at once, and what they were; * is the largest. Logits are freed before the backward pass unless
--keep-logits. --no-sync accumulates gradients of --micros micro-batches unsharded; these count as temporary.

CUDA's autograd needs a GPU even for fake tensors, so they are on the CPU, and what would differ is replaced:
attention is CUDA's flash operator, called by its name; the fused RMSNorm, which the CPU takes apart, is a function that
keeps what CUDA's does. FSDP2 frees by reference counts on every device. Sizes are rounded as CUDA's allocator
does; not counted are its fragmentation, the context, NCCL, cuBLAS's workspace, and memory inside of kernels except
flash attention's backward pass. Needs torch; written for 2.15, whose internals it patches.
"""
import argparse
import collections
import contextlib
import functools
import json
import weakref

import torch
import torch.distributed as dist
import torch.distributed.fsdp._fully_shard._fsdp_param_group as param_group
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor._sharding_prop import ShardingPropagator
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
                                               loss_parallel, parallelize_module)
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

MODELS = {  # layers, width, ffn, heads, key heads, vocabulary
    "1b": (16, 2048, 8192, 32, 8, 128256), "7b": (32, 4096, 11008, 32, 32, 32000),
    "8b": (32, 4096, 14336, 32, 8, 128256), "70b": (80, 8192, 28672, 64, 8, 128256)}
MM = torch.ops.aten.mm.default
FLASH = torch.ops.aten._scaled_dot_product_flash_attention
FLASH_BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_backward.default


class Tracker(TorchDispatchMode):
    """Bytes of live storages by what they are, and the most of them in each moment."""

    def __init__(self, vocab):
        super().__init__()
        self.vocab, self.live, self.parts, self.total = vocab, {}, collections.Counter(), 0
        self.moment, self.peaks, self.hint, self.again, self.paused = "", {}, None, False, False

    def what(self, func, args, tensor):
        if self.hint:
            return self.hint
        name, backward = func._overloadpacket.__name__, torch._C._current_graph_task_id() != -1
        if backward and not self.again and (name == "embedding_dense_backward" or
                                            func is MM and not args[0].is_contiguous()):
            return "unsharded gradients"
        if self.vocab in tensor.shape[-1:]:
            return "logits"
        return "made again" if self.again else "temporary" if backward else "kept"

    def set(self, storage, what):
        key = storage._cdata
        if key in self.live:
            self.drop(key)
        else:
            weakref.finalize(storage, self.drop, key).atexit = False
        self.live[key] = size, what = -(-storage.nbytes() // 512) * 512, what
        self.total += size
        self.parts[what] += size

    def drop(self, key):
        size, what = self.live.pop(key)
        self.total -= size
        self.parts[what] -= size

    def mark(self, tensors, what):
        for tensor in tree_leaves(tensors):
            self.set(getattr(tensor, "_local_tensor", tensor).untyped_storage(), what)

    def enter(self, moment, _=None):
        self.check()
        self.moment = moment

    def check(self, inside=0):
        if self.total + inside > sum(self.peaks.get(self.moment, {}).values()):
            self.peaks[self.moment] = +(self.parts + collections.Counter({"temporary": inside}))

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(issubclass(t, DTensor) for t in types):
            return NotImplemented
        out = func(*args, **(kwargs or {}))
        if self.paused:
            return out
        for tensor in tree_leaves(out):
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage()._cdata not in self.live:
                self.set(tensor.untyped_storage(), self.what(func, args, tensor))
        # Queries' gradients in fp32 and, of grouped keys and values, gradients per head.
        inside = args[1].numel() * (4 if args[1].shape == args[2].shape else 8) if func is FLASH_BACKWARD else 0
        self.check(inside)
        return out


TRACKER = None


@contextlib.contextmanager
def tracked(**values):
    """Attributes of the tracker, for a while."""
    old = {name: getattr(TRACKER, name, None) for name in values}
    for name, value in (values if TRACKER else {}).items():
        setattr(TRACKER, name, value)
    yield
    for name, value in (old if TRACKER else {}).items():
        setattr(TRACKER, name, value)


def patch():
    """Says what FSDP2 allocates, does not count tensors of which DTensor only infers the shape, keeps meshes real."""
    def within(owner, name, context):
        function = getattr(owner, name)

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with context():
                return function(*args, **kwargs)
        setattr(owner, name, staticmethod(wrapped) if name == "_concatenate" else wrapped)

    within(param_group, "foreach_all_gather", lambda: tracked(hint="gather buffer"))
    within(param_group, "foreach_all_gather_copy_out", lambda: tracked(hint="unsharded parameters"))
    for name in ("propagate", "_propagate_tensor_meta"):
        within(ShardingPropagator, name, lambda: tracked(paused=True))
    for name in ("__init__", "__getitem__", "get_coordinate", "_concatenate"):
        within(DeviceMesh, name, unset_fake_temporarily)
    resize, reduce = torch.UntypedStorage.resize_, param_group.foreach_reduce

    def resized(storage, size):
        resize(storage, size)
        if TRACKER:
            TRACKER.set(storage, "unsharded parameters")
            TRACKER.check()

    def reduced(params, *args, **kwargs):
        with tracked(hint="reduce buffer"):
            out = reduce(params, *args, **kwargs)
        TRACKER.mark([p.sharded_param.grad for p in params], "gradients")
        return out
    torch.UntypedStorage.resize_, param_group.foreach_reduce = resized, reduced


class FusedNorm(torch.autograd.Function):
    """As aten::_fused_rms_norm, which keeps its input and 1 / rms in fp32."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight, torch.empty(*x.shape[:-1], 1, dtype=torch.float32))
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx, gradient):
        return tuple(torch.empty_like(saved) for saved in ctx.saved_tensors[:2])


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return FusedNorm.apply(x, self.weight)


def linear(inputs, outputs):
    return nn.Linear(inputs, outputs, bias=False)


def rotate(x, angles):
    y = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
    return torch.view_as_real(y * angles[None, :, None]).flatten(3).type_as(x)


class Attention(nn.Module):
    def __init__(self, width, heads, key_heads):
        super().__init__()
        self.width = width // heads
        self.wq, self.wk, self.wv = (linear(width, n * self.width) for n in (heads, key_heads, key_heads))
        self.wo = linear(width, width)

    def forward(self, x, angles):
        q, k, v = (w(x).unflatten(-1, (-1, self.width)) for w in (self.wq, self.wk, self.wv))
        q, k = rotate(q, angles), rotate(k, angles)
        return self.wo(FLASH(*(y.transpose(1, 2) for y in (q, k, v)), 0.0, True)[0].transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, width, ffn):
        super().__init__()
        self.w1, self.w2, self.w3 = linear(width, ffn), linear(ffn, width), linear(width, ffn)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, width, ffn, heads, key_heads):
        super().__init__()
        self.attention_norm, self.attention = Norm(width), Attention(width, heads, key_heads)
        self.mlp_norm, self.mlp = Norm(width), Mlp(width, ffn)

    def forward(self, x, angles):
        x = x + self.attention(self.attention_norm(x), angles)
        return x + self.mlp(self.mlp_norm(x))


class Llama(nn.Module):
    def __init__(self, sequence, layers, width, ffn, heads, key_heads, vocab):
        super().__init__()
        self.embedding, self.norm, self.head = nn.Embedding(vocab, width), Norm(width), linear(width, vocab)
        self.layers = nn.ModuleList(Block(width, ffn, heads, key_heads) for _ in range(layers))
        self.angles = torch.empty(sequence, width // heads // 2, dtype=torch.complex64)

    def forward(self, tokens):
        x = self.embedding(tokens)
        x.register_hook(functools.partial(TRACKER.enter, "embedding"))
        for i, layer in enumerate(self.layers):
            x = layer(x, self.angles)
            x.register_hook(functools.partial(TRACKER.enter, f"block {i}"))
        return self.head(self.norm(x))


class Again:
    """The context of a recomputation. It lives as long as what the forward pass kept, as a trainer's does."""

    def __init__(self, inner):
        self.inner, self.tracked = inner, tracked(again=True)

    def __enter__(self):
        self.tracked.__enter__()
        self.inner.__enter__()

    def __exit__(self, *error):
        self.tracked.__exit__(None, None, None)
        return self.inner.__exit__(*error)


def checkpoint_contexts(selective):
    if not selective:
        return contextlib.nullcontext(), Again(contextlib.nullcontext())
    saved = {MM, FLASH.default, torch.ops._c10d_functional.reduce_scatter_tensor.default}
    products = collections.Counter()

    def policy(ctx, func, *args, **kwargs):
        products[ctx.is_recompute] += func is MM
        keep = func in saved and (func is not MM or products[ctx.is_recompute] % 2)
        return CheckpointPolicy.MUST_SAVE if keep else CheckpointPolicy.PREFER_RECOMPUTE
    forward, again = create_selective_checkpoint_contexts(policy)
    return forward, Again(again)


def cut(model, mesh):
    parallelize_module(model, mesh, {
        "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)), "norm": SequenceParallel(),
        "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False)})
    gather = {n: PrepareModuleInput(input_layouts=(Shard(1), None)[:n], desired_input_layouts=(Replicate(), None)[:n])
              for n in (1, 2)}
    columns = ("attention.wq", "attention.wk", "attention.wv", "mlp.w1", "mlp.w3")
    for layer in model.layers:
        parallelize_module(layer, mesh, {
            "attention_norm": SequenceParallel(), "attention": gather[2],
            "mlp_norm": SequenceParallel(), "mlp": gather[1],
            **{name: ColwiseParallel() for name in columns},
            **{name: RowwiseParallel(output_layouts=Shard(1)) for name in ("attention.wo", "mlp.w2")}})


def build(o, shape, mesh):
    model = Llama(o.sequence, *shape)
    if o.tp > 1:
        cut(model, mesh["tp"])
    precision = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    shard = functools.partial(fully_shard, mesh=mesh["dp"], mp_policy=precision)
    if o.wrap == "ends":
        shard(model.embedding)
        shard([model.norm, model.head], reshard_after_forward=False)
    for i, layer in enumerate(model.layers):
        if o.recompute != "none":
            contexts = functools.partial(checkpoint_contexts, o.recompute == "selective")
            layer = model.layers[i] = checkpoint_wrapper(layer, context_fn=contexts, preserve_rng_state=False)
        shard(layer)
    return shard(model)


def run(o, model):
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    TRACKER.mark(list(model.parameters()), "parameters")
    for _ in range(2):
        for micro in range(o.micros):
            TRACKER.moment, TRACKER.peaks = "forward", {}
            model.set_requires_gradient_sync(not o.no_sync or micro == o.micros - 1)
            tokens = torch.zeros(o.micro_batch, o.sequence, dtype=torch.int64)
            with loss_parallel() if o.tp > 1 else contextlib.nullcontext():
                logits = model(tokens)
                loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten())
                if not o.keep_logits:
                    logits = None
                TRACKER.enter("loss")
                loss.backward()
            logits = loss = None
        TRACKER.enter("optimizer")
        optimizer.step()
        TRACKER.mark([list(s.values()) for s in optimizer.state.values()], "optimizer")
        TRACKER.check()
        optimizer.zero_grad(set_to_none=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    for name, value in {"sequence": 8192, "micro-batch": 1, "micros": 1, "fsdp": 8, "tp": 1}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--recompute", choices=("none", "full", "selective"), default="none")
    parser.add_argument("--wrap", choices=("root", "ends"), default="root")
    parser.add_argument("--no-sync", action="store_true")
    parser.add_argument("--keep-logits", action="store_true")
    parser.add_argument("--json")
    o = parser.parse_args()
    shape = MODELS.get(o.model) or tuple(int(n) for n in o.model.split(","))

    global TRACKER
    patch()
    dist.init_process_group("fake", rank=0, world_size=o.fsdp * o.tp, store=FakeStore())
    mesh = init_device_mesh("cpu", (o.fsdp, o.tp), mesh_dim_names=("dp", "tp"))
    with FakeTensorMode():
        model = build(o, shape, mesh)
        TRACKER = Tracker(shape[-1] // o.tp)
        with TRACKER:
            run(o, model)
    peaks = TRACKER.peaks
    TRACKER = None

    def size(moment):
        return sum(peaks[moment].values())
    block = max((moment for moment in peaks if moment.startswith("block")), key=size)
    for moment in ("forward", "loss", block, "embedding", "optimizer"):
        parts = ", ".join(f"{what} {n / 2**30:.3f}" for what, n in peaks[moment].most_common() if n >= 2**19)
        star = "*" if size(moment) == max(map(size, peaks)) else " "
        print(f"{star} {moment:10}{size(moment) / 2**30:9.3f} GiB: {parts}")
    if o.json:
        with open(o.json, "w") as out:
            json.dump({moment: {"bytes": size(moment), "parts": parts} for moment, parts in peaks.items()}, out)


if __name__ == "__main__":
    main()
