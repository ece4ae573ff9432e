// Constants: parameters of the model that follow from neither physics nor data sheets, each with a
// name, a prior (its value before any fit), bounds, and a source (constants.cc). `assay plan
// --calibrate` fits some of them to measured rows.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace assay::plan {

struct Constants {
  // Fitted.
  double gemm_eff = 0;
  double pow_ref = 0;
  double fp8_eff = 0;
  double attn_eff = 0;
  double attn_old = 0;
  double attn_tri = 0;
  double pass_eager = 0;
  double pass_torch = 0;
  double pass_comp = 0;
  double host_us = 0;
  double tp_sync_us = 0;
  double coll_eff = 0;
  double net_eff = 0;
  double tp_overlap = 0;
  double dp_overlap = 0;
  double fsdp_slow = 0;
  double opt_bytes = 0;
  double grad_adds = 0;
  double moe_ops = 0;
  double moe_naive = 0;
  double dtensor_tp = 0;
  double fp4_eff = 0;
  double moe_host_us = 0;
  double moe_early = 0;
  double a2a_overlap = 0;
  double a2a_eff = 0;
  double ssm_ops = 0;
  double young_eff = 0;
  double amd_eff = 0;
  // Counted, published or physics; not fitted.
  double pow_exp = 0;
  double gemm_k0 = 0;
  double gemm_tail = 0;
  double fp8_cast = 0;
  double attn_bwd = 0;
  double attn_softmax = 0;
  double mem_eff = 0;
  double pass_score = 0;
  double gap_us = 0;
  double host_comp = 0;
  double zero3_bw = 0;
  double jitter = 0;
  double cross_socket_host = 0;
  // Of our trainer alone, fitted to its own runs.
  double own_gemm = 0;
  double own_fp8 = 0;
  double own_attn = 0;
  double own_pass = 0;
  double own_softmax = 0;

  bool operator==(const Constants&) const = default;
};

struct ConstantInfo {
  std::string_view name;
  double Constants::*value;
  double prior = 0;  // value before any fit: the start of a fit and the centre of its penalty
  double low = 0;
  double high = 0;
  bool fitted = false;
  double shipped = 0;        // fitted to tests/data/plan; the prior if not fitted
  std::string_view meaning;  // one line, with its unit
  std::string_view source;   // where the prior came from
  bool own = false;          // of our trainer: fitted to its own runs, not to published rows
};

// In the order of the struct.
std::span<const ConstantInfo> constant_table();

Constants prior_constants();
Constants shipped_constants();

// The same for memory.
struct MemoryConstants {
  double logit_bytes = 0;
  double logit_bytes_eager = 0;
  double unsharded = 0;
  double unsharded_accumulating = 0;
  double late_wrap = 0;
  double work = 0;
  double base_gib = 0;
  double base_gib_unsharded = 0;
  double moe_activation = 0;
};

struct MemoryConstantInfo {
  std::string_view name;
  double MemoryConstants::*value;
  double prior = 0;
  double low = 0;
  double high = 0;
  double shipped = 0;
  std::string_view meaning;
};

std::span<const MemoryConstantInfo> memory_constant_table();
MemoryConstants prior_memory_constants();
MemoryConstants shipped_memory_constants();

}  // namespace assay::plan
