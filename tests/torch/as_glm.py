#!/usr/bin/env python3
"""Writes what step_dump wrote as a GLM-4 MoE, for compare.py.

    as_glm.py OUT HF

Of what transformers has, this is the model with sigmoid routers, biases that balance them, shared
experts and dense first layers, as DeepSeek-V3 has them, beside the attention that Assay has. Its
own models rotate half of each head only, so `assay checkpoint export-hf` does not know it.
Needs torch, transformers and safetensors.
"""
import json
import sys
import tomllib

from safetensors.torch import load_file
from transformers import Glm4MoeConfig, Glm4MoeForCausalLM


def config_of(m):
    assert m["router"] == "sigmoid" and m["shared_ffn"] % m["expert_ffn"] == 0 and m["moe_every"] == 1
    return Glm4MoeConfig(
        vocab_size=m["vocab"], hidden_size=m["dim"], intermediate_size=m["ffn"], num_hidden_layers=m["layers"],
        num_attention_heads=m["heads"], num_key_value_heads=m["kv_heads"], head_dim=m["head_dim"],
        max_position_embeddings=m["context"], rms_norm_eps=1e-5, tie_word_embeddings=m["tied"],
        rope_parameters={"rope_type": "default", "rope_theta": m["rope_theta"], "partial_rotary_factor": 1.0},
        partial_rotary_factor=1.0, use_qk_norm=m["qk_norm"] == "learned",
        moe_intermediate_size=m["expert_ffn"], n_shared_experts=m["shared_ffn"] // m["expert_ffn"],
        n_routed_experts=m["experts"], num_experts_per_tok=m["experts_per_token"],
        routed_scaling_factor=m["router_scale"], norm_topk_prob=m["normalise_router"],
        first_k_dense_replace=m["dense_layers"], num_mtp_layers=0)


def tensors_of(m, ours):
    theirs = {"model.embed_tokens.weight": ours["embedding"], "model.norm.weight": ours["final_norm"],
              "lm_head.weight": ours["embedding" if m["tied"] else "head"]}
    q, k = m["heads"] * m["head_dim"], m["kv_heads"] * m["head_dim"]
    for layer in range(m["layers"]):
        get = lambda name: ours[f"layers.{layer}.{name}"]
        parts = dict(zip(["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"], get("qkv").split([q, k, k])))
        parts |= {"input_layernorm": get("attention_norm"), "post_attention_layernorm": get("mlp_norm"),
                  "self_attn.o_proj": get("attention_out")}
        if m["qk_norm"] == "learned":
            parts |= {"self_attn.q_norm": get("query_norm"), "self_attn.k_norm": get("key_norm")}
        dense = layer < m["dense_layers"]
        prefix, mlp = ("", "mlp") if dense else ("shared_", "mlp.shared_experts")
        gate, up = get(prefix + "gate_up").chunk(2)
        parts |= {f"{mlp}.gate_proj": gate, f"{mlp}.up_proj": up, f"{mlp}.down_proj": get(prefix + "down")}
        at = f"model.layers.{layer}."
        theirs |= {at + name + ".weight": value for name, value in parts.items()}
        if not dense:
            theirs |= {at + "mlp.gate.weight": get("router"),
                       at + "mlp.gate.e_score_correction_bias": get("router_bias"),
                       at + "mlp.experts.gate_up_proj": get("expert_gate_up").reshape(m["experts"], -1, m["dim"]),
                       at + "mlp.experts.down_proj": get("expert_down").reshape(m["experts"], m["dim"], -1)}
    return theirs


def main():
    checkpoint = sys.argv[1] + "/checkpoints/step-0/"
    with open(checkpoint + "manifest.json") as file:
        m = tomllib.loads(json.load(file)["extra"]["model"])["model"]
    model = Glm4MoeForCausalLM(config_of(m))
    model.load_state_dict(tensors_of(m, load_file(checkpoint + "weights.safetensors")), strict=True)
    model.save_pretrained(sys.argv[2])


if __name__ == "__main__":
    main()
