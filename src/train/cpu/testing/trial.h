// A prepared program on the CPU with seeded weights and a fixed batch.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "train/cpu/cpu_backend.h"
#include "train/init.h"

namespace assay::train::cpu::testing {

inline constexpr double kZLoss = 0.01;
inline constexpr double kBalanceLoss = 0.05;
inline constexpr double kRouterZLoss = 0.02;

// Tokens, targets and where documents begin, of one micro-batch.
struct TrialBatch {
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> targets;
  std::vector<std::int32_t> documents;
};

class Trial {
 public:
  explicit Trial(const spec::ModelSpec& model, step::Choices choices, int threads = 2)
      : backend_(make_cpu_backend(threads)) {
    if (choices.sequence == 0) choices.sequence = 10;
    if (choices.micro_batch == 1) choices.micro_batch = 3;
    prepare(model, choices);
    for (std::int32_t micro = 0; micro < choices.accumulate; ++micro) {
      batches_.push_back(drawn(micro));
    }
  }
  // With the caller's batch: one micro-batch of one row.
  Trial(const spec::ModelSpec& model, step::Choices choices, TrialBatch batch)
      : backend_(make_cpu_backend(2)) {
    choices.sequence = static_cast<std::int64_t>(batch.tokens.size());
    prepare(model, choices);
    batches_.push_back(std::move(batch));
  }

  // `counted` 0: the number of counted targets in this batch.
  Scalars step(StepSettings settings = {}, double counted = 0) {
    settings.counted_targets = counted > 0 ? counted : this->counted();
    if (settings.z_loss == 0) settings.z_loss = kZLoss;
    settings.balance_loss = kBalanceLoss;
    settings.router_z_loss = kRouterZLoss;
    const auto batch_of = [&](std::int32_t micro) -> const TrialBatch& {
      return batches_[static_cast<std::size_t>(micro)];
    };
    auto scalars = run_step(
        *backend_, program_, settings,
        [&](std::int32_t micro, auto tokens, auto targets) {
          std::ranges::copy(batch_of(micro).tokens, tokens.begin());
          std::ranges::copy(batch_of(micro).targets, targets.begin());
          return base::Result<void>{};
        },
        [&](std::int32_t micro, auto documents) {
          std::ranges::copy(batch_of(micro).documents, documents.begin());
          return base::Result<void>{};
        });
    EXPECT_TRUE(scalars.has_value());
    return *scalars;
  }
  // The mean loss with all penalties: the function whose gradients are computed.
  double loss() {
    const Scalars s = step();
    const auto value = [&](step::Scalar which) {
      return static_cast<double>(s[static_cast<std::size_t>(which)]);
    };
    const double routers = kBalanceLoss * value(step::Scalar::kBalanceSum) +
                           kRouterZLoss * value(step::Scalar::kRouterZSum);
    return (value(step::Scalar::kLossSum) + kZLoss * value(step::Scalar::kZLossSum)) /
               value(step::Scalar::kCount) +
           routers / static_cast<double>(program_.step_tokens());
  }
  [[nodiscard]] double counted() const {
    double count = 0;
    for (const TrialBatch& batch : batches_) {
      for (const std::int32_t target : batch.targets) count += target < 0 ? 0 : 1;
    }
    return count;
  }
  void set(const step::View& view, const std::vector<float>& values) {
    EXPECT_TRUE(backend_->write(view, std::as_bytes(std::span(values))).has_value());
  }
  std::vector<float> get(const step::View& view) {
    std::vector<float> values(static_cast<std::size_t>(view.elements()));
    EXPECT_TRUE(backend_->read(view, std::as_writable_bytes(std::span(values))).has_value());
    return values;
  }
  // Slots assigned to each expert.
  std::vector<float> loads() {
    return program_.loads.buffer < 0 ? std::vector<float>{} : get(program_.loads);
  }
  step::Program& program() { return program_; }
  Backend& backend() { return *backend_; }

 private:
  void prepare(const spec::ModelSpec& model, const step::Choices& choices) {
    program_ = *step::build(model, choices);
    plan_ = step::plan_memory(program_);
    EXPECT_TRUE(backend_->prepare(program_, plan_).has_value());
    for (const step::Parameter& p : program_.parameters) {
      std::vector<float> values(static_cast<std::size_t>(p.elements()));
      step::Parameter wild = p;  // large values, so that everything has an effect
      wild.init_std = p.part == step::ModelPart::kRouter
                          ? (model.router == spec::Router::kSoftmax ? 1.0 : 0.5)
                          : 0.3;  // few tokens between experts
      initial_values(wild, 8, 0, values);
      if (p.init != step::Init::kNormal) {
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] += 0.3F * std::sin(static_cast<float>(i * 7 + p.name.size()));
        }
      }
      set(program_.weight(p), values);
    }
  }
  [[nodiscard]] TrialBatch drawn(std::int32_t micro) const {
    const auto at = [&](std::size_t i) {
      return static_cast<std::int32_t>((i * i * 31 + i * 17 + static_cast<std::size_t>(micro) * 5) %
                                       static_cast<std::size_t>(program_.model.vocab));
    };
    TrialBatch batch;
    const auto sequence = static_cast<std::size_t>(program_.choices.sequence);
    std::int32_t begin = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(program_.micro_tokens()); ++i) {
      // Documents of seven, one and five tokens in turn, starting at a different offset in each
      // row.
      const auto begins = [&](std::size_t token) {
        const std::size_t place = (token + token / sequence) % 13;
        return place == 0 || place == 7 || place == 8;
      };
      if (i % sequence == 0) begin = 0;
      if (i % sequence != 0 && begins(i)) begin = static_cast<std::int32_t>(i % sequence);
      const bool masked = program_.choices.document_mask && begins(i + 1);
      batch.tokens.push_back(at(i));
      batch.targets.push_back(masked || (i == 4 && micro < 2) ? -1 : at(i + 1));
      batch.documents.push_back(begin);
    }
    return batch;
  }

  std::unique_ptr<Backend> backend_;
  step::Program program_;
  step::MemoryPlan plan_;
  std::vector<TrialBatch> batches_;
};

}  // namespace assay::train::cpu::testing
