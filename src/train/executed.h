// The log of executed ops, as reported by the kernels of a backend from their actual operands.
// Tests compare it with the program's list, op by op (testing/executed_as_listed.h).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "step/op.h"

namespace assay::train {

struct Executed {
  const step::Op* op = nullptr;  // the program's op that was being executed
  step::OpKind kind = step::OpKind::kMatmul;
  std::vector<std::array<std::int64_t, 2>> in;  // rows and columns
  std::vector<std::array<std::int64_t, 2>> out;
};
using ExecutedLog = std::vector<Executed>;

// Token ids of a micro-batch, or where documents begin, in the memory of a backend.
struct Tokens {
  const std::int32_t* data = nullptr;
  std::int64_t count = 0;

  std::int32_t operator[](std::int64_t i) const { return data[i]; }
};

// The shape of an operand: a backend's Matrix, which may be empty, or Tokens.
struct OperandShape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bool empty = true;

  OperandShape(const Tokens& t)
      : rows(t.count), cols(1), empty(t.data == nullptr) {}  // NOLINT: converts implicitly
  template <class Matrix>
  requires requires(const Matrix& m) { m.rows, m.cols, m.empty(); }
  OperandShape(const Matrix& m)  // NOLINT: converts implicitly
      : rows(m.rows), cols(m.cols), empty(m.empty()) {}
};

// Base of both backends' Device: records executed ops while a log is attached.
class OpRecorder {
 public:
  void log_to(ExecutedLog* log, const step::Op* op) {
    log_ = log;
    op_ = op;
  }
  // Called by the code that executes an op. Empty operands are left out.
  void executed(step::OpKind kind, const std::vector<OperandShape>& in,
                const std::vector<OperandShape>& out);

 private:
  ExecutedLog* log_ = nullptr;
  const step::Op* op_ = nullptr;
};

}  // namespace assay::train
