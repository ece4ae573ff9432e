// Attention within documents, compared with training on each document alone, as its own sequence,
// with a program without masks.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "spec/testing/model_shapes.h"
#include "train/cpu/testing/trial.h"

namespace assay::train::cpu {
namespace {

using testing::Trial;
using testing::TrialBatch;

using Gradients = std::map<std::string, std::vector<double>>;

struct Sums {
  double loss = 0;
  double count = 0;
  Gradients gradients;
};

void add(Sums& sums, Trial& trial, double counted) {
  const Scalars scalars = trial.step({}, counted);
  sums.loss += static_cast<double>(scalars[static_cast<std::size_t>(step::Scalar::kLossSum)]);
  sums.count += static_cast<double>(scalars[static_cast<std::size_t>(step::Scalar::kCount)]);
  for (const step::Parameter& p : trial.program().parameters) {
    const std::vector<float> gradient = trial.get(trial.program().gradient(p));
    std::vector<double>& sum = sums.gradients[p.name];
    sum.resize(gradient.size());
    for (std::size_t i = 0; i < gradient.size(); ++i) sum[i] += static_cast<double>(gradient[i]);
  }
}

double norm(const std::vector<double>& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

double difference(std::vector<double> a, const std::vector<double>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return norm(a);
}

std::int32_t token(std::size_t document, std::size_t i, std::int64_t vocab) {
  return static_cast<std::int32_t>((document * 131 + i * i * 31 + i * 17 + 3) %
                                   static_cast<std::size_t>(vocab));
}

// A document alone. Its last token has no target: the next token is in another document.
TrialBatch alone(std::size_t document, std::size_t length, std::int64_t vocab) {
  TrialBatch batch;
  for (std::size_t i = 0; i < length; ++i) {
    batch.tokens.push_back(token(document, i, vocab));
    batch.targets.push_back(i + 1 < length ? token(document, i + 1, vocab) : -1);
  }
  return batch;
}

TrialBatch packed(const std::vector<std::size_t>& lengths, std::int64_t vocab) {
  TrialBatch row;
  for (std::size_t d = 0; d < lengths.size(); ++d) {
    const auto begin = static_cast<std::int32_t>(row.tokens.size());
    const TrialBatch one = alone(d, lengths[d], vocab);
    row.tokens.insert(row.tokens.end(), one.tokens.begin(), one.tokens.end());
    row.targets.insert(row.targets.end(), one.targets.begin(), one.targets.end());
    row.documents.resize(row.tokens.size(), begin);
  }
  return row;
}

class DocumentMask : public ::testing::Test {
 protected:
  static spec::ModelSpec llama() {
    return {.vocab = 37,
            .dim = 24,
            .layers = 2,
            .heads = 4,
            .kv_heads = 2,
            .head_dim = 6,
            .ffn = 20,
            .context = 512};
  }
  static Sums of_packed(const spec::ModelSpec& model, const std::vector<std::size_t>& lengths,
                        bool mask = true) {
    Trial trial(model, {.recompute = spec::Recompute::kCheap, .document_mask = mask},
                packed(lengths, model.vocab));
    Sums sums;
    add(sums, trial, trial.counted());
    return sums;
  }
  static Sums of_each(const spec::ModelSpec& model, const std::vector<std::size_t>& lengths) {
    Sums sums;
    const auto counted =
        static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), 0UL) - lengths.size());
    for (std::size_t d = 0; d < lengths.size(); ++d) {
      Trial trial(model, {}, alone(d, lengths[d], model.vocab));
      add(sums, trial, counted);
    }
    return sums;
  }
};

// Positions are counted from the beginning of the row, so results equal those of a document alone
// only with relative, i.e. rotary, positions. Tests rows longer than attention's block of queries,
// and documents that end at its boundaries.
TEST_F(DocumentMask, IsTrainingEachDocumentAlone) {
  for (const auto& variant : spec::testing::model_shapes(llama())) {
    if (variant.model.positions != spec::Positions::kRope) continue;
    for (const std::vector<std::size_t>& lengths : std::vector<std::vector<std::size_t>>{
             {7, 1, 12, 4}, {64, 64, 2}, {100, 3, 1, 1, 90, 5}, {30}}) {
      const Sums found = of_packed(variant.model, lengths);
      const Sums expected = of_each(variant.model, lengths);
      EXPECT_EQ(found.count, expected.count) << variant.name;
      EXPECT_NEAR(found.loss / expected.loss, 1, 1e-6) << variant.name;
      for (const auto& [name, gradient] : expected.gradients) {
        EXPECT_LT(difference(found.gradients.at(name), gradient), 2e-5 * norm(gradient))
            << variant.name << " " << name;
      }
    }
  }
}

TEST_F(DocumentMask, WithoutItDocumentsSeeEachOther) {
  const std::vector<std::size_t> lengths = {7, 1, 12, 4};
  const Sums found = of_packed(llama(), lengths, false);
  const Sums expected = of_each(llama(), lengths);
  EXPECT_GT(std::abs(found.loss / expected.loss - 1), 1e-3);
}

// Neither the loss of a document nor its gradients depend on another document.
TEST_F(DocumentMask, WhatAnotherDocumentSaysChangesNothing) {
  const spec::ModelSpec model = llama();
  TrialBatch first = packed({40, 60}, model.vocab);
  for (std::size_t i = 0; i < 40; ++i) first.targets[i] = -1;  // only the second counts
  TrialBatch second = first;
  for (std::size_t i = 0; i < 40; ++i) second.tokens[i] = (first.tokens[i] + 11) % 37;
  const auto gradients = [&](TrialBatch batch) {
    Trial trial(model, {.document_mask = true}, std::move(batch));
    const Scalars scalars = trial.step();
    std::map<std::string, std::vector<float>> all;
    for (const step::Parameter& p : trial.program().parameters) {
      all[p.name] = trial.get(trial.program().gradient(p));
    }
    all["loss"] = {scalars[static_cast<std::size_t>(step::Scalar::kLossSum)]};
    return all;
  };
  EXPECT_EQ(gradients(first), gradients(second));
}

}  // namespace
}  // namespace assay::train::cpu
