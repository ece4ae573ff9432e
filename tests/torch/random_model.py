#!/usr/bin/env python3
"""Writes a small model with random weights, as transformers saves it, for `assay checkpoint import-hf`.

    random_model.py llama2|llama3|mistral|qwen2|qwen3|gpt2|mixtral|qwen3_moe DIR [--seed N] [--small]

With --small it is a fixture of the tests (tests/data/hf), with the logits of 12 tokens in DIR-logits.safetensors:
every token t is 5 t modulo the vocabulary.

Weights are larger than a model's first ones, norms are not 1 and biases not 0, and epsilons of norms are
large, so that nothing that is exchanged or left out stays unnoticed. Needs torch and transformers.
"""
import argparse

import torch
from safetensors.torch import save_file
from transformers import (AutoModelForCausalLM, GPT2Config, LlamaConfig, MistralConfig, MixtralConfig,
                          Qwen2Config, Qwen3Config, Qwen3MoeConfig)

SHAPE = {"vocab_size": 320, "hidden_size": 48, "num_attention_heads": 6, "num_key_value_heads": 2,
         "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "tie_word_embeddings": False}
DENSE = SHAPE | {"num_hidden_layers": 3, "intermediate_size": 112}
# As Llama 3.1's, but for a context so short that slow, fast and other rotations all exist.
LLAMA3 = {"rope_type": "llama3", "rope_theta": 100.0, "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
CONFIGS = {
    "llama2": lambda: LlamaConfig(**DENSE | {"num_key_value_heads": 6}),
    "llama3": lambda: LlamaConfig(**DENSE | {"tie_word_embeddings": True}, head_dim=12, rope_parameters=LLAMA3),
    "mistral": lambda: MistralConfig(**DENSE, head_dim=12, sliding_window=None),
    "qwen2": lambda: Qwen2Config(**DENSE | {"rms_norm_eps": 1e-2, "tie_word_embeddings": True}),
    "qwen3": lambda: Qwen3Config(**DENSE | {"rms_norm_eps": 1e-2}, head_dim=16),
    "gpt2": lambda: GPT2Config(vocab_size=320, n_embd=48, n_layer=3, n_head=6, n_positions=64,
                               layer_norm_epsilon=1e-2, attn_pdrop=0, embd_pdrop=0, resid_pdrop=0),
    "mixtral": lambda: MixtralConfig(
        **SHAPE, num_hidden_layers=3, intermediate_size=80, num_local_experts=5, num_experts_per_tok=2,
        head_dim=8, sliding_window=None),
    "qwen3_moe": lambda: Qwen3MoeConfig(
        **SHAPE, num_hidden_layers=6, intermediate_size=112, moe_intermediate_size=40, num_experts=7,
        num_experts_per_tok=3, decoder_sparse_step=2, mlp_only_layers=[0, 1], head_dim=16,
        norm_topk_prob=False),
}


def make_small(config):
    gpt2 = config.model_type == "gpt2"
    sizes = {"vocab_size": 32, "n_embd": 24, "n_layer": 2} if gpt2 else {
        "vocab_size": 32, "hidden_size": 24, "num_hidden_layers": 2, "intermediate_size": 20}
    if config.model_type == "qwen3_moe":
        sizes |= {"num_hidden_layers": 4, "moe_intermediate_size": 8, "mlp_only_layers": [0]}
    if config.model_type in ("qwen2", "qwen3") and getattr(config, "layer_types", None):
        sizes["layer_types"] = config.layer_types[:2]
    for key, value in sizes.items():
        setattr(config, key, value)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=CONFIGS)
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--small", action="store_true")
    o = parser.parse_args()
    torch.manual_seed(o.seed)
    config = CONFIGS[o.kind]()
    if o.small:
        make_small(config)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.uniform_(0.5, 1.5)
            else:
                parameter.normal_(0, 0.1)
    model.save_pretrained(o.folder)
    if o.small:
        tokens = torch.arange(12)[None] * 5 % config.vocab_size
        save_file({"logits": model(tokens).logits[0].contiguous()}, f"{o.folder}-logits.safetensors")


if __name__ == "__main__":
    main()
