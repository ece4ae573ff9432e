#!/usr/bin/env python3
"""Compares a step of Assay with PyTorch: logits, loss, every gradient, and the losses of a run.

    compare.py OUT HF [--tolerance fp32|bf16] [--device cpu|cuda] [--batch B] [--sequence S]
               [--accumulate A] [--learning-rate R] [--weight-decay W]

OUT is what `step_dump PRESET OUT DEVICE 50 train.schedule=constant train.learning_rate=3e-4
train.warmup_steps=0` wrote, HF the same weights after `assay checkpoint export-hf`. Needs torch,
transformers and safetensors. Prints a table; exits with 1 if anything is further away than stated.
"""
import argparse
import math
import sys

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

LIMITS = {  # logits relative, loss relative, gradient cosine at least, gradient norm relative
    "fp32": (1e-5, 1e-5, 1 - 1e-6, 1e-4, 1e-4),
    "bf16": (3e-2, 2e-3, 0.999, 3e-2, 2e-2),
}


def tokens_of(step, micro, count, vocab):
    at = torch.arange(count + 1, dtype=torch.int64) + step * 1000003 + micro * 10007
    return ((at * at * 31 + at * 17 + 5) % 104729 % vocab)


def ours_of(name, tensors, config):
    """Our gradient, under PyTorch's name and shape."""
    import re
    get = lambda n: tensors["gradient/" + n]
    heads, kv = config.num_attention_heads, getattr(config, "num_key_value_heads", None)
    if config.model_type == "gpt2":
        flat = {"transformer.wte.weight": "embedding", "transformer.wpe.weight": "positions",
                "transformer.ln_f.weight": "final_norm", "transformer.ln_f.bias": "final_norm_bias"}
        if name in flat:
            return get(flat[name])
        layer, part, kind = re.match(r"transformer\.h\.(\d+)\.(.*)\.(weight|bias)", name).groups()
        ours = {"ln_1": "attention_norm", "ln_2": "mlp_norm", "attn.c_attn": "qkv",
                "attn.c_proj": "attention_out", "mlp.c_fc": "gate_up", "mlp.c_proj": "down"}[part]
        value = get(f"layers.{layer}.{ours}" + ("_bias" if kind == "bias" else ""))
        return value.t() if kind == "weight" and part.startswith(("attn", "mlp")) else value
    flat = {"model.embed_tokens.weight": "embedding", "model.norm.weight": "final_norm",
            "lm_head.weight": "head"}
    if name in flat:
        return get(flat[name])
    layer, part = re.match(r"model\.layers\.(\d+)\.(.*)\.weight", name).groups()
    q, k = heads * config.head_dim, kv * config.head_dim
    qkv, ffn = f"layers.{layer}.qkv", config.intermediate_size
    return {
        "input_layernorm": lambda: get(f"layers.{layer}.attention_norm"),
        "post_attention_layernorm": lambda: get(f"layers.{layer}.mlp_norm"),
        "self_attn.q_proj": lambda: get(qkv)[:q],
        "self_attn.k_proj": lambda: get(qkv)[q:q + k],
        "self_attn.v_proj": lambda: get(qkv)[q + k:],
        "self_attn.q_norm": lambda: get(f"layers.{layer}.query_norm"),
        "self_attn.k_norm": lambda: get(f"layers.{layer}.key_norm"),
        "self_attn.o_proj": lambda: get(f"layers.{layer}.attention_out"),
        "mlp.gate_proj": lambda: get(f"layers.{layer}.gate_up")[:ffn],
        "mlp.up_proj": lambda: get(f"layers.{layer}.gate_up")[ffn:],
        "mlp.down_proj": lambda: get(f"layers.{layer}.down"),
    }[part]()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("hf")
    parser.add_argument("--tolerance", choices=LIMITS, default="fp32")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--sequence", type=int, required=True)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--learning-rate", type=float, default=3e-4)
    parser.add_argument("--weight-decay", type=float, default=0.1)
    parser.add_argument("--steps", type=int, default=50)
    o = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    logit_limit, loss_limit, cosine_limit, norm_limit, run_limit = LIMITS[o.tolerance]
    ours = load_file(o.out + "/step.safetensors")
    # fp32 is the reference for both, so a bf16 result shows its own rounding error.
    model = AutoModelForCausalLM.from_pretrained(o.hf, dtype=torch.float32).to(o.device)
    model.train()
    config = model.config
    if getattr(config, "head_dim", None) is None and config.model_type != "gpt2":
        config.head_dim = config.hidden_size // config.num_attention_heads
    vocab, count = config.vocab_size, o.batch * o.sequence
    failed = []

    def check(what, value, limit, least=False):
        good = value >= limit if least else value <= limit
        if not good or math.isnan(value):
            failed.append(what)
        print(f"{what:<40} {value:.3e}  {'>=' if least else '<='} {limit:.3e}  {'ok' if good else 'NO'}")

    def loss_of(step):
        total = 0.0
        for micro in range(o.accumulate):
            t = tokens_of(step, micro, count, vocab).to(o.device)
            logits = model(t[:-1].view(o.batch, o.sequence)).logits.float()
            if step == 0 and micro == 0:
                mine = ours["logits"].to(o.device)
                away = (mine - logits.reshape(mine.shape)).norm() / logits.norm()
                check("logits, relative", away.item(), logit_limit)
            loss = torch.nn.functional.cross_entropy(logits.reshape(count, vocab), t[1:])
            (loss / o.accumulate).backward()
            total += loss.item() / o.accumulate
        return total

    decayed = [p for n, p in model.named_parameters() if p.dim() > 1]
    plain = [p for n, p in model.named_parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": o.weight_decay}, {"params": plain, "weight_decay": 0.0}],
        lr=o.learning_rate, betas=(0.9, 0.95), eps=1e-8)
    worst = 0.0
    steps = min(o.steps, ours["losses"].numel())
    for step in range(steps):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(step)
        away = abs(ours["losses"][step].item() - loss) / abs(loss)
        worst = max(worst, away)
        if step == 0:
            check("loss, relative", away, loss_limit)
            for name, parameter in model.named_parameters():
                theirs = parameter.grad.float().cpu()
                mine = ours_of(name, ours, config).reshape(theirs.shape)
                cosine = torch.nn.functional.cosine_similarity(mine.flatten().double(), theirs.flatten().double(), 0)
                check(f"{name}, cosine", cosine.item(), cosine_limit, True)
                check(f"{name}, norm", abs(mine.norm() / theirs.norm() - 1).item(), norm_limit)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if step == 0:
            check("norm of all, relative", abs(ours["norms"][0].item() / norm.item() - 1), norm_limit)
        optimizer.step()
    check(f"losses of {steps} steps, worst relative", worst, run_limit)
    print(f"last loss: ours {ours['losses'][steps - 1].item():.5f}, PyTorch's {loss:.5f}")
    print(f"{len(failed)} of the comparisons failed" if failed else "all within")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
