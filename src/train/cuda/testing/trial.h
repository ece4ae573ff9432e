// Trial: a small model's step on a backend, with seeded weights and a fixed batch, which are the
// same on every backend: weights are exactly representable in bf16, so that a CPU in fp32 and a GPU
// start from equal values.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "spec/testing/model_shapes.h"
#include "train/backend.h"

namespace assay::train::cuda::testing {

using Variant = spec::testing::NamedModel;
// Model variants small enough for a CPU to compute in seconds.
std::vector<Variant> variants();
std::vector<Variant> mixtures();
std::vector<Variant> with_mixtures();

// A backend on the first GPU; null, and the test should be skipped, if there is none. All backends
// of a process share a tuning file, so that they use the same algorithms.
std::unique_ptr<Backend> gpu_backend(bool deterministic_attention = true);

class Trial {
 public:
  // Sequence and micro-batch have defaults; the caller sets the numerics.
  Trial(std::unique_ptr<Backend> backend, const spec::ModelSpec& model, step::Choices choices);

  Scalars step(StepSettings settings = {});
  // Every element converted to fp32.
  std::vector<float> get(const step::View& view);
  std::vector<float> gradient(const step::Parameter& parameter) {
    return get(program_.gradient(parameter));
  }
  // The bits of 16-bit elements.
  std::vector<std::uint16_t> bits(const step::View& view);
  void set_bits(const step::View& view, const std::vector<std::uint16_t>& bits);
  [[nodiscard]] step::View whole(step::BufferId buffer) const;

  step::Program& program() { return program_; }
  Backend& backend() { return *backend_; }

 private:
  void set(const step::Parameter& parameter, const std::vector<float>& values);
  [[nodiscard]] std::int32_t token(std::int32_t micro, std::size_t i) const;
  [[nodiscard]] std::int32_t target(std::int32_t micro, std::size_t i) const;
  [[nodiscard]] bool begins_document(std::size_t i) const;

  std::unique_ptr<Backend> backend_;
  step::Program program_;
  step::MemoryPlan plan_;
};

inline float scalar(const Scalars& scalars, step::Scalar which) {
  return scalars[static_cast<std::size_t>(which)];
}

}  // namespace assay::train::cuda::testing
