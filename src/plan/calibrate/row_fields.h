// The fields of one row as they are written: numbers that are numbers, text in the case it is
// searched in.
#pragma once

#include <optional>
#include <string>

#include "base/csv.h"

namespace assay::plan {

struct RowFields {
  std::string id;
  std::string source;
  std::string
      project;        // the repository or paper that the row is of; by its source where not stated
  std::string doubt;  // why the row should not be trusted; usually empty
  std::string model;  // lower case
  std::string gpu_type;
  std::string notes;
  std::string lower_notes;
  std::string software;   // source and notes, lower case
  std::string recompute;  // lower case; empty: not stated
  std::string precision;  // lower case
  std::string compile;    // lower case
  // Lower case, of tables that have such columns.
  std::string framework;
  std::string attention;
  std::string optimizer;
  std::string zero;
  std::string schedule;
  std::string async_tp;

  std::optional<double> params, layers, dim, ffn, heads, kv_heads, vocab;
  std::optional<double> seq, micro_batch, grad_accum;
  std::optional<double> gpus, gpus_per_node, dp, fsdp, tp, pp, ep, cp, vp;
  std::optional<double> experts, top_k, expert_ffn, shared_experts, moe_layers;
  std::optional<double> intra_bw, inter_bw;  // GB/s
  std::optional<double> tok_per_s, step_s, mem_gb;

  // When it was measured, in years; of tables that say so, or by the release that ran it.
  std::optional<double> date;

  // What makes the row useless, in one sentence; empty if nothing does.
  std::string reason;
  // What was not used of a row that is not useless; usually empty.
  std::string remark;
};

RowFields row_fields(const base::CsvTable& table, const base::CsvTable::Record& record);

}  // namespace assay::plan
