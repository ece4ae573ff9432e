#include "plan/model/constants.h"

#include <array>

namespace assay::plan {
namespace {

// Fitted to the measured rows in tests/data/plan; docs/plan-model.md has the method.
constexpr std::array<ConstantInfo, 47> kStepConstants = {{
    {"gemm_eff", &Constants::gemm_eff, 0.92, 0.75, 1.0, true, 0.936,
     "large matrix product / peak at the clock that the power limit leaves",
     "cuBLAS on A100: 285 of 312 TFLOP/s"},
    {"pow_ref", &Constants::pow_ref, 1.5, 0.8, 2.5, true, 1.658,
     "W per peak TFLOP/s that keep tensor cores busy at full clock",
     "above A100's 1.28, which lowers its clock a little"},
    {"fp8_eff", &Constants::fp8_eff, 0.80, 0.5, 1.0, true, 0.9745,
     "fp8 product / what its peak would give, beside gemm_eff",
     "assumed: scales and promoted sums cost a fifth"},
    {"attn_eff", &Constants::attn_eff, 0.70, 0.4, 0.95, true, 0.6448,
     "flash attention forward / rate of products, kernels made for the card",
     "papers of FlashAttention-2 and 3, against cuBLAS"},
    {"attn_old", &Constants::attn_old, 0.55, 0.45, 0.75, true, 0.5576,
     "kernels of Ampere on Hopper and later, relative",
     "FlashAttention-3's paper, heads of 128: 2 reaches 350 on H100, 3 reaches 640"},
    {"attn_tri", &Constants::attn_tri, 0.65, 0.4, 1.0, true, 0.8636,
     "Triton and first flash kernels, relative, on any card",
     "FlashAttention-2's paper: 1 and Triton"},
    {"pass_eager", &Constants::pass_eager, 1.0, 0.6, 2.0, true, 0.9962,
     "traffic of element-wise passes, eager Megatron, of what was counted",
     "counted: its fused bias, GELU and dropout"},
    {"pass_torch", &Constants::pass_torch, 2.8, 1.2, 4.5, true, 2.965, "the same, eager PyTorch",
     "counted: norms in fp32, rotation, activation apart: 128 bytes where fused ones move 46"},
    {"pass_comp", &Constants::pass_comp, 0.9, 0.4, 1.8, true, 1.205,
     "the same, compiled or fused by hand", "counted: a tensor is read and written once"},
    {"host_us", &Constants::host_us, 22.0, 8.0, 40.0, true, 24.08,
     "us of the host per eager operator", "assumed: eager PyTorch with autograd"},
    {"tp_sync_us", &Constants::tp_sync_us, 20.0, 2.0, 80.0, true, 18.86,
     "us by which each rank more delays a collective of tensor parallelism",
     "assumed: a few launches"},
    {"coll_eff", &Constants::coll_eff, 0.65, 0.4, 1.0, true, 0.7292,
     "NVLink's bandwidth to collectives in training / alone", "174 and more of 370 GB/s on H100"},
    {"net_eff", &Constants::net_eff, 0.75, 0.5, 0.8, true, 0.7542,
     "network's bandwidth to collectives in training / what plan/network takes for it alone",
     "assumed: as NVLink's, a quarter and more is lost to what runs beside"},
    {"tp_overlap", &Constants::tp_overlap, 0.70, 0.0, 0.95, true, 0.7478,
     "share of tensor parallelism's exchange that is hidden, where software hides it", "assumed"},
    {"dp_overlap", &Constants::dp_overlap, 0.75, 0.0, 1.0, true, 0.5622,
     "share of gradients' reduction that is hidden, where software hides it",
     "assumed: all buckets but the last ones"},
    {"fsdp_slow", &Constants::fsdp_slow, 0.35, 0.0, 0.8, true, 0.3105,
     "hidden exchange that slows the computation beside it, share of its time",
     "assumed: NCCL's blocks and memory traffic"},
    {"opt_bytes", &Constants::opt_bytes, 28.0, 16.0, 60.0, true, 27.86,
     "bytes that Adam in mixed precision moves per parameter", "counted: 16 read and 12 written"},
    {"grad_adds", &Constants::grad_adds, 1.0, 0.3, 2.0, true, 1.313,
     "traffic of each micro-batch's gradients and of FSDP's copies, of what was counted",
     "counted"},
    {"moe_ops", &Constants::moe_ops, 1.5, 0.5, 3.0, true, 1.452,
     "traffic of routing, in passes over a token's copies",
     "assumed: dispatch, combine and an intermediate"},
    {"moe_naive", &Constants::moe_naive, 4.0, 1.0, 12.0, true, 10.88,
     "the same without grouped products and fused permutation, relative", "assumed"},
    {"dtensor_tp", &Constants::dtensor_tp, 1.5, 1.0, 4.0, true, 1.529,
     "exchange of tensor parallelism by DTensor, relative",
     "counted: nothing coalesced, partial sums in fp32"},
    {"fp4_eff", &Constants::fp4_eff, 0.55, 0.3, 1.0, true, 0.6943,
     "fp4 product / what its peak would give, beside gemm_eff",
     "assumed: parts of each layer stay in more bits, and casts cost more"},
    {"moe_host_us", &Constants::moe_host_us, 2500.0, 200.0, 8000.0, true, 3493,
     "us of the host per mixture layer forward, eager: routing, permutation, each expert's "
     "products",
     "assumed: a hundred operators, and counts that the host waits for"},
    {"moe_early", &Constants::moe_early, 2.0, 1.0, 5.0, true, 2.035,
     "traffic of routing before permutation, quantisation and products of experts were fused",
     "assumed: each a pass of its own"},
    {"a2a_overlap", &Constants::a2a_overlap, 0.7, 0.0, 0.95, true, 0.718,
     "share of all-to-all that is hidden, where software hides it", "assumed"},
    {"a2a_eff", &Constants::a2a_eff, 0.9, 0.4, 1.2, true, 0.9697,
     "bandwidth of links to all-to-all of experts / alone, which little else runs beside",
     "published: DeepEP, 153 of 160 GB/s of NVLink and 43 to 58 of 50 of InfiniBand"},
    {"ssm_ops", &Constants::ssm_ops, 6.0, 1.0, 30.0, true, 23.94,
     "traffic of layers that keep a state, in passes over the width of their heads",
     "assumed: convolution, scan, gate and norm"},
    {"young_eff", &Constants::young_eff, 0.92, 0.75, 1.0, true, 0.8973,
     "rate of products in the first year of a generation of cards, relative",
     "assumed: libraries gain a tenth"},
    {"amd_eff", &Constants::amd_eff, 0.85, 0.6, 1.0, true, 0.8148,
     "rate of products on AMD's cards, relative to NVIDIA's share of the peak",
     "assumed: what hipBLASLt is said to reach of its peak, over cuBLAS's"},
    {"pow_exp", &Constants::pow_exp, 0.33, 0.15, 0.8, false, 0.33,
     "clock ~ (power there is / power needed)^this", "power grows with the cube of the clock"},
    {"gemm_k0", &Constants::gemm_k0, 120.0, 30.0, 400.0, false, 120.0,
     "elements of K that a tile's filling and draining cost",
     "assumed: a pipeline of a few slices"},
    {"gemm_tail", &Constants::gemm_tail, 0.3, 0.05, 1.0, false, 0.3,
     "share of the last wave's idle processors that is paid", "between stream-K and whole waves"},
    {"fp8_cast", &Constants::fp8_cast, 1.0, 0.3, 5.0, false, 1.0,
     "traffic of quantising, of 5 bytes per element of a product's input", "counted"},
    {"attn_bwd", &Constants::attn_bwd, 0.72, 0.5, 1.0, false, 0.72,
     "flash attention backward / forward rate", "papers of FlashAttention-2 and 3"},
    {"attn_softmax", &Constants::attn_softmax, 100.0, 0.0, 512.0, false, 100.0,
     "elements of a head's width that the softmax of a score costs, beside attn_eff at 128",
     "between FlashAttention-3's paper, 64, and what our trainer's own runs give"},
    {"mem_eff", &Constants::mem_eff, 0.8, 0.6, 0.95, false, 0.8,
     "memory rate that element-wise passes reach / data sheet", "assumed: large copies"},
    {"pass_score", &Constants::pass_score, 1.0, 0.4, 2.5, false, 1.0,
     "traffic of attention's scores without flash, of what was counted",
     "counted: softmax, mask and dropout, 11 bytes forward and 19 backward"},
    {"gap_us", &Constants::gap_us, 3.0, 0.5, 8.0, false, 3.0,
     "us between two kernels on the device", "assumed: launch latency in a stream"},
    {"host_comp", &Constants::host_comp, 0.35, 0.05, 1.0, false, 0.35,
     "operators that fusion leaves, share", "assumed: 10 of 30 kernels per layer"},
    {"zero3_bw", &Constants::zero3_bw, 0.25, 0.05, 0.8, false, 0.25,
     "bandwidth of gathers of single tensors / of buckets", "assumed: DeepSpeed ZeRO-3 of 2021"},
    {"jitter", &Constants::jitter, 0.010, 0.0, 0.03, false, 0.010,
     "by which a step grows with each doubling of nodes", "assumed: stragglers"},
    {"cross_socket_host", &Constants::cross_socket_host, 18.4, 0.0, 50.0, false, 18.4,
     "by which passes grow, times threads per card: too few, on any socket, for cards on two",
     "a job twice: (1295 - 57.8) ms with 20 threads a card / (701.9 - 57.8) ms on one socket, - 1"},
    {"own_gemm", &Constants::own_gemm, 0.998, 0.8, 1.25, false, 0.9625,
     "time of our trainer's bf16 products / what gemm_eff and the clock give",
     "the profile of an 8B step: bench/results/train.md", true},
    {"own_fp8", &Constants::own_fp8, 1.085, 0.8, 1.4, false, 1.046,
     "the same of its fp8 products, whose sums are exact", "the same profile in fp8", true},
    {"own_attn", &Constants::own_attn, 1.085, 0.8, 1.4, false, 1.079,
     "rate of our trainer's attention / what attn_eff gives", "the same profile", true},
    {"own_pass", &Constants::own_pass, 1.08, 0.5, 2.0, false, 1.391,
     "traffic of our trainer's passes / the bytes that its ops read and write",
     "counted by the step itself, and the same profile", true},
    {"own_softmax", &Constants::own_softmax, 64.0, 0.0, 512.0, false, 99.48,
     "elements of a head's width that the softmax of a score costs, beside attn_eff at 128",
     "FlashAttention-3's paper: 989 TFLOP/s of products and 3.9 T exponentials/s on H100", true},
}};

// Fitted to the 45 rows that give what their allocator counted, of two projects.
constexpr std::array<MemoryConstantInfo, 9> kMemoryConstants = {{
    {"logit_bytes", &MemoryConstants::logit_bytes, 6.0, 3.0, 14.0, 5.547,
     "bytes alive per logit, compiled loss"},
    {"logit_bytes_eager", &MemoryConstants::logit_bytes_eager, 12.0, 8.0, 16.0, 9.012,
     "the same, eager: bf16 logits, a copy in fp32, both gradients"},
    {"unsharded", &MemoryConstants::unsharded, 0.5, 0.0, 2.5, 0.3818,
     "copies of a rank's bf16 weights that KempnerForge has unsharded beside units, one "
     "micro-batch"},
    {"unsharded_accumulating", &MemoryConstants::unsharded_accumulating, 1.6, 0.0, 4.0, 1.522,
     "the same when gradients accumulate over micro-batches"},
    {"late_wrap", &MemoryConstants::late_wrap, 2.0, 0.0, 4.0, 2.531,
     "further copies where FSDP's units are made late"},
    {"work", &MemoryConstants::work, 0.4, 0.1, 2.0, 0.1,
     "working set of the layer at work, in 34 bytes per token and element of its width"},
    {"base_gib", &MemoryConstants::base_gib, 2.5, 1.5, 10.0, 1.5,
     "GiB of context and NCCL's buffers, at least 1.5, workspaces and fragmentation"},
    {"base_gib_unsharded", &MemoryConstants::base_gib_unsharded, 6.0, 0.5, 10.0, 9.734,
     "the same of KempnerForge, and what else it has unsharded"},
    {"moe_activation", &MemoryConstants::moe_activation, 3.0, 0.5, 8.0, 5.84,
     "working set of a mixture, in copies of its routed tokens"},
}};

template <class Values, class Table, class Get>
Values values_of(const Table& table, Get get) {
  Values values;
  for (const auto& info : table) values.*info.value = get(info);
  return values;
}

}  // namespace

std::span<const ConstantInfo> constant_table() {
  return kStepConstants;
}

Constants prior_constants() {
  return values_of<Constants>(kStepConstants, [](const ConstantInfo& info) { return info.prior; });
}

Constants shipped_constants() {
  return values_of<Constants>(kStepConstants,
                              [](const ConstantInfo& info) { return info.shipped; });
}

std::span<const MemoryConstantInfo> memory_constant_table() {
  return kMemoryConstants;
}

MemoryConstants prior_memory_constants() {
  return values_of<MemoryConstants>(kMemoryConstants,
                                    [](const MemoryConstantInfo& info) { return info.prior; });
}

MemoryConstants shipped_memory_constants() {
  return values_of<MemoryConstants>(kMemoryConstants,
                                    [](const MemoryConstantInfo& info) { return info.shipped; });
}

}  // namespace assay::plan
