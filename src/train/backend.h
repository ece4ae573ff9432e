// Backend: a device that executes the ops of a step. The trainer above knows no device, the
// backends below know no training: they are told memory, ops and a few numbers per step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "step/memory_plan.h"
#include "step/program.h"

namespace assay::train {

// What changes from step to step, or is not part of the program's shape.
struct StepSettings {
  std::int64_t step = 1;  // counted from 1
  double learning_rate = 0;
  double muon_learning_rate = 0;
  double muon_momentum = 0;
  double beta1 = 0;
  double beta2 = 0;
  double epsilon = 0;
  double weight_decay = 0;
  double clip = 0;  // 0: gradients are not clipped
  double z_loss = 0;
  double counted_targets = 0;  // in the whole step: what gradients are divided by
};

using Scalars = std::array<float, static_cast<std::size_t>(step::Scalar::kScalars)>;

// One op as a backend executed it: told by the code that touches the memory, in the words of the
// step's list.
struct Executed {
  const step::Op* op = nullptr;  // which of the list was being executed
  step::Kind kind = step::Kind::kMatmul;
  std::vector<std::array<std::int64_t, 2>> in;  // rows and columns
  std::vector<std::array<std::int64_t, 2>> out;
};
using ExecutedLog = std::vector<Executed>;

// Copies of views on their way to host memory.
struct HostCopy {
  std::vector<std::span<const std::byte>> views;  // as they were asked for
  std::function<base::Result<void>()> wait;       // until all are there; on any thread
  std::shared_ptr<const void> memory;
};

class Backend {
 public:
  virtual ~Backend() = default;

  // What the device has to give, and what executing a program takes besides its planned memory.
  [[nodiscard]] virtual base::Result<std::int64_t> available_bytes() = 0;
  [[nodiscard]] virtual base::Result<std::int64_t> extra_bytes(const step::Program& program) = 0;
  // Takes the memory, which is zeros. The program must live as long as the backend.
  virtual base::Result<void> prepare(const step::Program& program,
                                     const step::MemoryPlan& plan) = 0;
  // Host memory to and from a view, row after row. Both wait until it is done.
  virtual base::Result<void> write(const step::View& to, std::span<const std::byte> from) = 0;
  virtual base::Result<void> read(const step::View& from, std::span<std::byte> to) = 0;
  // Between steps: the views as they are now. The next step may begin at once; what would change
  // the views waits for the copy. One copy at a time: the last one's memory must have been let go.
  virtual base::Result<HostCopy> copy_out(const step::Program& program,
                                          std::span<const step::View> views);

  virtual void begin_step(const StepSettings& settings) = 0;
  // Tokens and targets of the micro-batch whose ops come next.
  virtual void set_batch(std::span<const std::int32_t> tokens,
                         std::span<const std::int32_t> targets) = 0;
  virtual base::Result<void> execute(const step::Op& op) = 0;
  // Waits for everything and gives the step's scalars.
  virtual base::Result<Scalars> finish_step() = 0;

  // What has been taken of the device's memory since before prepare(), as the device counts it; 0
  // where it does not say.
  [[nodiscard]] virtual std::int64_t measured_bytes() const { return 0; }
  [[nodiscard]] virtual std::string description() const = 0;
  // From here on every executed op is told; null ends it.
  void log_to(ExecutedLog* log) { log_ = log; }

 protected:
  ExecutedLog* log_ = nullptr;
};

// The tokens and targets of micro-batch `micro` of the step; a negative target does not count.
using BatchSource = std::function<base::Result<void>(
    std::int32_t micro, std::span<std::int32_t> tokens, std::span<std::int32_t> targets)>;

// Executes the whole program once.
base::Result<Scalars> run_step(Backend& backend, const step::Program& program,
                               const StepSettings& settings, const BatchSource& batches);

}  // namespace assay::train
