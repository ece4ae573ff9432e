#!/usr/bin/env python3
"""Writes a small model with random weights, as transformers saves it, for `assay checkpoint import-hf`.

    random_model.py mixtral|qwen3_moe DIR [--seed N]

Weights are larger than a model's first ones and norms are not 1, so that nothing that is exchanged
or left out stays unnoticed. Needs torch and transformers.
"""
import argparse

import torch
from transformers import AutoModelForCausalLM, MixtralConfig, Qwen3MoeConfig

SHAPE = {"vocab_size": 320, "hidden_size": 48, "num_attention_heads": 6, "num_key_value_heads": 2,
         "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "tie_word_embeddings": False}
CONFIGS = {
    "mixtral": lambda: MixtralConfig(
        **SHAPE, num_hidden_layers=3, intermediate_size=80, num_local_experts=5, num_experts_per_tok=2,
        head_dim=8, sliding_window=None),
    "qwen3_moe": lambda: Qwen3MoeConfig(
        **SHAPE, num_hidden_layers=6, intermediate_size=112, moe_intermediate_size=40, num_experts=7,
        num_experts_per_tok=3, decoder_sparse_step=2, mlp_only_layers=[0, 1], head_dim=16,
        norm_topk_prob=False),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=CONFIGS)
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, default=1)
    o = parser.parse_args()
    torch.manual_seed(o.seed)
    model = AutoModelForCausalLM.from_config(CONFIGS[o.kind](), dtype=torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.uniform_(0.5, 1.5)
            else:
                parameter.normal_(0, 0.1)
    model.save_pretrained(o.folder)


if __name__ == "__main__":
    main()
