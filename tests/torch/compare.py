#!/usr/bin/env python3
"""Compares a step of Assay with PyTorch: logits, loss, every gradient, and the losses of a run.

    compare.py OUT HF [--tolerance fp32|bf16] [--device cpu|cuda] [--batch B] [--sequence S]
               [--accumulate A] [--learning-rate R] [--weight-decay W] [--documents]

OUT is what `step_dump PRESET OUT DEVICE 50 train.schedule=constant train.learning_rate=3e-4
train.warmup_steps=0` wrote, HF the same weights after `assay checkpoint export-hf`, or the files
that `assay checkpoint import-hf` read. Needs torch, transformers and safetensors. Prints a table;
exits with 1 if anything is further away than stated.

With --documents OUT was written with data.mask=document: attention is masked there by a matrix of
zeros and -inf, and the mean is over the targets that begin no document.

Of a mixture of experts each expert's gradients are compared apart, and the losses of routers: ours
are sums over layers of experts x sum(share of slots x mean probability). transformers' function
counts tokens instead of slots, so it is experts_per_token times as large, and takes the layers
together, so it is called here for each layer. Weights of both losses are those of OUT, as is the
rate at which the biases of sigmoid routers move (as_glm.py makes HF of such a model).
"""
import argparse
import re
import sys

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

LIMITS = {  # logits, loss, 1 - cosine of a gradient, norm of a gradient, losses of the run; relative
    "fp32": (1e-5, 1e-5, 1e-6, 1e-4, 1e-4),
    "bf16": (3e-2, 2e-3, 1e-3, 3e-2, 2e-2),
}


def tokens_of(step, micro, count, vocab):
    at = torch.arange(count + 1, dtype=torch.int64) + step * 1000003 + micro * 10007
    return ((at * at * 31 + at * 17 + 5) % 104729 % vocab)


def begins_document(count):
    """Of the tokens of a micro-batch, and the one after them."""
    at = torch.arange(count + 1)
    return (at % 37 == 0) | (at % 53 == 0)


def document_mask(batch, sequence):
    """What is added to scores so that attention is causal and stays within documents."""
    begins = begins_document(batch * sequence)[:-1].view(batch, sequence).clone()
    document = begins.long().cumsum(1)
    seen = (document[:, :, None] == document[:, None, :]).tril()
    return torch.zeros(seen.shape).masked_fill(~seen, float("-inf"))[:, None]


def ours_of(name, tensors, config):
    """Our gradient, under PyTorch's name and shape."""
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
    layer, part = re.match(r"model\.layers\.(\d+)\.(.*?)(?:\.weight)?$", name).groups()
    if re.match(r"(mlp|block_sparse_moe)\.(gate|experts|shared_experts)(\.|$)", part):
        return mixture_of(part.split(".", 1)[1], lambda n: get(f"layers.{layer}.{n}"), config)
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
    q, k = heads * head_dim, kv * head_dim
    qkv, ffn = f"layers.{layer}.qkv", config.intermediate_size
    return {
        "input_layernorm": lambda: get(f"layers.{layer}.attention_norm"),
        "post_attention_layernorm": lambda: get(f"layers.{layer}.mlp_norm"),
        "self_attn.q_proj": lambda: get(qkv)[:q],
        "self_attn.k_proj": lambda: get(qkv)[q:q + k],
        "self_attn.v_proj": lambda: get(qkv)[q + k:],
        "self_attn.q_proj.bias": lambda: get(f"{qkv}_bias").flatten()[:q],
        "self_attn.k_proj.bias": lambda: get(f"{qkv}_bias").flatten()[q:q + k],
        "self_attn.v_proj.bias": lambda: get(f"{qkv}_bias").flatten()[q + k:],
        "self_attn.q_norm": lambda: get(f"layers.{layer}.query_norm"),
        "self_attn.k_norm": lambda: get(f"layers.{layer}.key_norm"),
        "self_attn.o_proj": lambda: get(f"layers.{layer}.attention_out"),
        "mlp.gate_proj": lambda: get(f"layers.{layer}.gate_up")[:ffn],
        "mlp.up_proj": lambda: get(f"layers.{layer}.gate_up")[ffn:],
        "mlp.down_proj": lambda: get(f"layers.{layer}.down"),
    }[part]()


def experts_of(config):
    return getattr(config, "num_local_experts", None) or getattr(config, "num_experts", None) or 0


def mixture_of(part, get, config):
    """A router's or experts' gradient. transformers has one matrix per expert, or all in one."""
    experts = experts_of(config)
    if part == "gate":
        return get("router")
    if part.startswith("shared_experts"):
        if part.endswith("down_proj"):
            return get("shared_down")
        return get("shared_gate_up").chunk(2)[0 if part.endswith("gate_proj") else 1]
    gate_up = get("expert_gate_up").reshape(experts, -1, config.hidden_size)
    down = get("expert_down").reshape(experts, config.hidden_size, -1)
    if part == "experts.gate_up_proj":
        return gate_up
    if part == "experts.down_proj":
        return down
    expert, name = re.match(r"experts\.(\d+)\.(\w+)$", part).groups()
    gate, up = gate_up[int(expert)].chunk(2)
    return {"w1": gate, "gate_proj": gate, "w3": up, "up_proj": up,
            "w2": down[int(expert)], "down_proj": down[int(expert)]}[name]


class Routers:
    """The logits of all routers of a model, and what transformers makes of them."""

    def __init__(self, model):
        self.experts, self.chosen = experts_of(model.config), model.config.num_experts_per_tok
        self.gates = [m for n, m in model.named_modules() if re.search(r"\.(mlp|block_sparse_moe)\.gate$", n)]
        self.logits = []
        for gate in self.gates:
            gate.register_forward_pre_hook(self.keep)

    def keep(self, gate, inputs):
        self.logits.append(torch.nn.functional.linear(inputs[0].flatten(0, -2), gate.weight))

    def biases(self):
        """Of sigmoid routers, which transformers has as buffers."""
        return [getattr(gate, "e_score_correction_bias", None) for gate in self.gates]

    def balance(self, logits, load, bias):
        if bias is None:
            return load_balancing_loss_func((logits,), self.experts, self.chosen) / self.chosen
        # transformers has no such loss: the same, with scores that are made to add up to 1.
        scores = logits.sigmoid()
        probability = (scores / scores.sum(-1, keepdim=True)).mean(0)
        return self.experts * (load / load.sum() * probability).sum()

    def losses(self):
        """Balance and square of log Z, each added up over layers."""
        balance = sum(map(self.balance, self.logits, self.loads(), self.biases()))
        return balance, sum(x.logsumexp(-1).square().mean() for x in self.logits)

    def loads(self):
        """How many of each layer's slots each expert gets."""
        ranks = [x if b is None else x.sigmoid() + b for x, b in zip(self.logits, self.biases())]
        chosen = [x.topk(self.chosen).indices.flatten() for x in ranks]
        return torch.stack([x.bincount(minlength=self.experts) for x in chosen])

    def move_biases(self, loads, rate):
        for bias, load in zip(self.biases(), loads):
            if bias is not None:
                bias -= rate * (load - load.float().mean()).sign()


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
    parser.add_argument("--documents", action="store_true")
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
    routers = Routers(model) if experts_of(config) else None
    settings = ours["router_settings"].tolist() if routers else None
    failed, worst_of = [], {}
    masked = begins_document(count)[1:].to(o.device) if o.documents else None
    options = {"attention_mask": document_mask(o.batch, o.sequence).to(o.device)} if o.documents else {}

    def check(what, value, limit):
        good = value <= limit  # false of NaN
        if not good:
            failed.append(what)
        print(f"{what:<52} {value:.3e}  <= {limit:.3e}  {'ok' if good else 'NO'}")

    def compare_gradient(name, mine, theirs):
        if mine.norm() == 0 and theirs.norm() == 0:
            return check(f"{name}, nothing", 0.0, 0.0)  # no token came to this expert
        mine, theirs = mine.flatten().double(), theirs.flatten().double()
        cosine = torch.nn.functional.cosine_similarity(mine, theirs, 0)
        away = {"1 - cosine": (1 - cosine.item(), cosine_limit),
                "norm": (abs(mine.norm() / theirs.norm() - 1).item(), norm_limit)}
        for what, (value, limit) in away.items():
            check(f"{name}, {what}", value, limit)
            worst_of[what] = max(worst_of.get(what, 0.0), value)

    def loss_of(step, router_sums):
        total = 0.0
        for micro in range(o.accumulate):
            t = tokens_of(step, micro, count, vocab).to(o.device)
            if routers:
                routers.logits.clear()
            logits = model(t[:-1].view(o.batch, o.sequence), **options).logits.float()
            if step == 0 and micro == 0:
                mine = ours["logits"].to(o.device)
                away = (mine - logits.reshape(mine.shape)).norm() / logits.norm()
                check("logits, relative", away.item(), logit_limit)
            targets = t[1:] if masked is None else t[1:].masked_fill(masked, -100)
            loss = torch.nn.functional.cross_entropy(logits.reshape(count, vocab), targets)
            trained = loss
            if routers:
                losses = routers.losses()
                trained = loss + settings[0] * losses[0] + settings[1] * losses[1]
                router_sums["losses"] += torch.stack(losses).detach() / o.accumulate
                router_sums["loads"] = router_sums["loads"] + routers.loads()
            (trained / o.accumulate).backward()
            total += loss.item() / o.accumulate
        return total

    def compare_routers(sums):
        for i, what in enumerate(["balance loss", "router z-loss"]):
            away = ours["router_losses"][i].item() / sums["losses"][i].item() - 1
            check(f"{what}, relative", abs(away), loss_limit)
        loads = ours["expert_loads"].reshape(sums["loads"].shape)
        check("slots that went to another expert", (loads - sums["loads"].cpu()).abs().sum().item() / 2, 0.0)
        if len(sums["loads"]) > 1 or o.accumulate > 1 or routers.biases()[0] is not None:
            return
        # With one mixture and one micro-batch the model's own figure is comparable.
        routers.logits.clear()
        t = tokens_of(0, 0, count, vocab).to(o.device)
        with torch.no_grad():
            theirs = model(t[:-1].view(o.batch, o.sequence), output_router_logits=True).aux_loss.item()
        away = ours["router_losses"][0].item() * config.num_experts_per_tok / theirs - 1
        check("balance loss, of the model itself", abs(away), loss_limit)

    decayed = [p for n, p in model.named_parameters() if p.dim() > 1]
    plain = [p for n, p in model.named_parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": o.weight_decay}, {"params": plain, "weight_decay": 0.0}],
        lr=o.learning_rate, betas=(0.9, 0.95), eps=1e-8)
    worst = 0.0
    steps = min(o.steps, ours["losses"].numel())
    for step in range(steps):
        optimizer.zero_grad(set_to_none=True)
        sums = {"losses": torch.zeros(2, device=o.device), "loads": 0}
        loss = loss_of(step, sums)
        away = abs(ours["losses"][step].item() - loss) / abs(loss)
        worst = max(worst, away)
        if step == 0:
            check("loss, relative", away, loss_limit)
            if routers:
                compare_routers(sums)
            for name, parameter in model.named_parameters():
                grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                theirs = grad.float().cpu()
                mine = ours_of(name, ours, config).reshape(theirs.shape)
                if theirs.dim() < 3:
                    compare_gradient(name, mine, theirs)
                    continue
                for expert in range(len(theirs)):
                    compare_gradient(f"{name}[{expert}]", mine[expert], theirs[expert])
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if step == 0:
            check("norm of all, relative", abs(ours["norms"][0].item() / norm.item() - 1), norm_limit)
        optimizer.step()
        if routers:
            routers.move_biases(sums["loads"], settings[2])
    check(f"losses of {steps} steps, worst relative", worst, run_limit)
    print("worst of all gradients: " + ", ".join(f"{what} {value:.1e}" for what, value in worst_of.items()))
    print(f"last loss: ours {ours['losses'][steps - 1].item():.5f}, PyTorch's {loss:.5f}")
    print(f"{len(failed)} of the comparisons failed" if failed else "all within")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
