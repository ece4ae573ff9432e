// What a rank computes between issuing an exchange and waiting for it: the work that can hide it.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "step/op.h"
#include "step/program.h"

namespace assay::step::testing {

struct ExchangeWindow {
  const Op* issued = nullptr;
  bool for_next_step = false;  // of weights, overlapping the updates
  double flops = 0;            // of matrix products and attention
  double bytes = 0;            // read and written by all ops
};

// For every exchange of a step, in the order of issue.
inline std::vector<ExchangeWindow> exchange_windows(const Program& p) {
  std::set<std::int32_t> for_next_step;
  for (const Op& op : p.prologue) for_next_step.insert(op.ticket);
  std::vector<ExchangeWindow> list;
  std::map<std::int32_t, std::size_t> open;  // by ticket
  for (const Op& op : p.ops) {
    if (op.kind == OpKind::kWait) {
      open.erase(op.ticket);
    } else if (op.is_exchange()) {
      open[op.ticket] = list.size();
      list.push_back({.issued = &op, .for_next_step = for_next_step.contains(op.ticket)});
    } else {
      for (const auto& [ticket, window] : open) {
        list[window].flops += op.flops;
        list[window].bytes += moved_bytes(op, p.buffers).total();
      }
    }
  }
  return list;
}

}  // namespace assay::step::testing
