// Compares the log of executed ops with the program's list, op by op.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "train/backend.h"

namespace assay::train::testing {

// Fails the test at the first difference. The program was executed `steps` times, the first time
// with its prologue.
inline void expect_executed_as_listed(const ExecutedLog& log, const step::Program& p,
                                      std::int64_t steps = 1) {
  const auto shapes = [](const std::vector<step::View>& views) {
    std::vector<std::array<std::int64_t, 2>> out;
    for (const step::View& v : views) out.push_back({v.rows, v.cols});
    return out;
  };
  const std::size_t before = steps > 0 ? p.prologue.size() : 0;
  ASSERT_EQ(log.size(), before + p.ops.size() * static_cast<std::size_t>(steps));
  for (std::size_t i = 0; i < log.size(); ++i) {
    const step::Op& op = i < before ? p.prologue[i] : p.ops[(i - before) % p.ops.size()];
    ASSERT_EQ(log[i].op, &op);
    ASSERT_EQ(log[i].kind, op.kind) << step::to_text(op, p);
    ASSERT_EQ(log[i].in, shapes(op.in)) << step::to_text(op, p);
    ASSERT_EQ(log[i].out, shapes(op.out)) << step::to_text(op, p);
  }
}

}  // namespace assay::train::testing
