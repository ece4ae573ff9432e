// Backend: a device that executes the ops of a step. The trainer above it does not know which
// device that is; the backends below it know nothing about training: they get memory, ops and a few
// numbers per step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "step/memory_plan.h"
#include "step/program.h"
#include "train/checkpoint/tensor.h"
#include "train/executed.h"
#include "train/micro_batch.h"
#include "train/start_up.h"
#include "train/step_settings.h"

namespace assay::train {

using Scalars = std::array<float, static_cast<std::size_t>(step::Scalar::kScalars)>;

// An asynchronous copy of views to host memory.
struct HostCopy {
  std::vector<std::span<const std::byte>> views;  // in the order requested
  std::function<base::Result<void>()> wait;       // until the copy is complete; any thread
  std::shared_ptr<const void> memory;
};

// Elements of a parameter that are initialised from a normal distribution (train/init.h), and their
// destination: the concatenated `pieces` of the parameter fill `weight`. If weights are stored as
// two halves (float_bits.h), the low halves from element `remainder_at` on go to `remainder`.
struct InitialDraw {
  const step::Parameter& parameter;
  std::uint64_t seed = 0;
  std::vector<checkpoint::ElementRange> pieces;
  step::View weight;
  std::optional<step::View> remainder;
  std::int64_t remainder_at = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  // Free device memory, and what executing a program needs in addition to its planned memory.
  [[nodiscard]] virtual base::Result<std::int64_t> available_bytes() = 0;
  [[nodiscard]] virtual base::Result<std::int64_t> extra_bytes(const step::Program& program) = 0;
  // Allocates the planned memory, zeroed. The program and plan must outlive the backend.
  virtual base::Result<void> prepare(const step::Program& program,
                                     const step::MemoryPlan& plan) = 0;
  // Copies between host memory and a view, row by row; synchronous.
  virtual base::Result<void> write(const step::View& to, std::span<const std::byte> from) = 0;
  virtual base::Result<void> read(const step::View& from, std::span<std::byte> to) = 0;
  // Fills a view with zeros.
  virtual base::Result<void> clear(const step::Program& program, const step::View& view);
  // Draws initial weights directly in device memory, with exactly the bits of initial_values().
  // False: not supported by this device; the caller draws them and writes them.
  virtual base::Result<bool> draw(const InitialDraw& /*draw*/) { return false; }
  // Between steps: copies the views' current contents. The next step may start at once; ops that
  // would change the views wait for the copy. One copy at a time: the previous copy's memory must
  // have been released.
  virtual base::Result<HostCopy> copy_out(const step::Program& program,
                                          std::span<const step::View> views);

  // Prepares in the background what copy_out() would otherwise have to wait for. It slows steps
  // down a little, so it is called only when a copy is due soon.
  virtual void expect_copies() {}

  // The algorithms that this device chose by timing; the last bits of results depend on them. One
  // line names the device and its libraries, then one line per algorithm. Empty: nothing is chosen
  // by timing.
  [[nodiscard]] virtual std::string algorithms() const { return {}; }
  // Uses these algorithms from the next step on; if called before prepare(), the products they
  // cover are not timed. Returns the reason if results may differ nevertheless, else an empty
  // string.
  virtual base::Result<std::string> adopt(const std::string& /*algorithms*/) {
    return std::string();
  }
  // Messages for the user since the last call; no result depends on them.
  std::vector<std::string> take_notes() { return std::exchange(notes_, {}); }

  virtual void begin_step(const StepSettings& settings) = 0;
  // Executes a kRead.
  virtual void set_batch(const step::Op& op, const MicroBatch& batch) = 0;
  // Any other op.
  virtual base::Result<void> execute(const step::Op& op) = 0;
  // Waits for all ops and returns the step's scalars.
  virtual base::Result<Scalars> finish_step() = 0;

  // Whether the weights that a step begins with (step::Program::prologue) have been gathered and
  // not been written since.
  [[nodiscard]] bool has_first_weights() const { return has_first_weights_; }
  void set_has_first_weights(bool has) { has_first_weights_ = has; }

  // Device memory taken since before prepare(), as counted by the device; 0 if unknown.
  [[nodiscard]] virtual std::int64_t measured_bytes() const { return 0; }
  [[nodiscard]] virtual std::string description() const = 0;
  // Reports the phases of long calls to `startup`; null stops it.
  void report_startup_to(StartUp* startup) { startup_ = startup; }
  // Records every executed op from now on; null stops it.
  void log_to(ExecutedLog* log) { log_ = log; }

 protected:
  void note(std::string line) { notes_.push_back(std::move(line)); }
  void begin_startup_part(const char* part, const char* what) {
    if (startup_ != nullptr) startup_->begin(part, what);
  }

  ExecutedLog* log_ = nullptr;

 private:
  std::vector<std::string> notes_;
  StartUp* startup_ = nullptr;
  bool has_first_weights_ = false;
};

// Fills the tokens and targets of micro-batch `micro` of the step; negative targets are ignored.
using BatchSource = std::function<base::Result<void>(
    std::int32_t micro, std::span<std::int32_t> tokens, std::span<std::int32_t> targets)>;
// For programs with a document mask: fills in where documents begin. Like BatchSource, it is called
// for a micro-batch as often as the program reads it.
using DocumentSource =
    std::function<base::Result<void>(std::int32_t micro, std::span<std::int32_t> documents)>;

// Gathers the weights that must be present before the ops of a step, or of its first micro-batch's
// forward pass, are executed; those ops leave the same weights in place. Call after begin_step().
base::Result<void> gather_first_weights(Backend& backend, const step::Program& program);

// Executes the program once: all micro-batches and the optimizer.
base::Result<Scalars> run_step(Backend& backend, const step::Program& program,
                               const StepSettings& settings, const BatchSource& batches,
                               const DocumentSource& documents = {});

}  // namespace assay::train
