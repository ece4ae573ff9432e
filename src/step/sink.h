// Sink: receives a Builder's ops. There are two. A program stores them: every pass of every
// micro-batch through every layer, with the buffers that it needs. Totals (totals_sink.h) add them
// up: each distinct kind of block once, with the number of times it is executed.
#pragma once

#include <cstdint>
#include <utility>

#include "step/program.h"

namespace assay::step {

class Sink {
 public:
  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual ~Sink() = default;

  // Whether it receives every pass, with named buffers that are reused. If not, it receives one
  // pass of each kind, and how often it is made (totals_sink.h).
  [[nodiscard]] virtual bool unrolls() const = 0;
  virtual BufferId add(Buffer buffer) = 0;
  virtual void add(Op op, std::int64_t times) = 0;
};

class ProgramSink final : public Sink {
 public:
  explicit ProgramSink(Program& program) : program_(program) {}

  [[nodiscard]] bool unrolls() const override { return true; }
  BufferId add(Buffer buffer) override {
    program_.buffers.push_back(std::move(buffer));
    return static_cast<BufferId>(program_.buffers.size() - 1);
  }
  void add(Op op, std::int64_t /*times*/) override { program_.ops.push_back(std::move(op)); }

 private:
  Program& program_;
};

}  // namespace assay::step
