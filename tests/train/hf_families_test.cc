// Small models of every family that transformers made and saved (tests/torch/random_model.py
// --small): imported, their logits are those that transformers computed, and exported, the files
// are as they were.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/testing/temp_dir.h"
#include "step/memory_plan.h"
#include "train/checkpoint/safetensors_file.h"
#include "train/cpu/cpu_backend.h"
#include "train/hf_files.h"
#include "train/resume.h"

namespace assay::train {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kTokens = 12;

fs::path data() {
  return fs::path(ASSAY_SOURCE_DIR) / "tests/data/hf";
}

template <class Value>
std::vector<Value> values_of(const checkpoint::SafetensorsFile& file, const std::string& name) {
  const checkpoint::TensorPlace* place = file.find(name);
  if (place == nullptr) return {};
  std::vector<Value> values(static_cast<std::size_t>(place->bytes()) / sizeof(Value));
  EXPECT_TRUE(file.read(*place, 0, std::as_writable_bytes(std::span(values))).has_value());
  return values;
}

std::vector<float> logits_of(const checkpoint::Checkpoint& from) {
  const step::Choices choices{.purpose = step::Purpose::kLogits, .sequence = kTokens};
  const step::Program program = step::build(*model_of(from), choices).value();
  const step::MemoryPlan plan = step::plan_memory(program);
  const auto backend = cpu::make_cpu_backend(1);
  EXPECT_TRUE(backend->prepare(program, plan).has_value());
  EXPECT_TRUE(restore_weights(*backend, program, from).has_value());
  const auto ran = run_step(*backend, program, {}, [&](std::int32_t, auto tokens, auto) {
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      tokens[t] = static_cast<std::int32_t>(5 * t) % static_cast<std::int32_t>(program.model.vocab);
    }
    return base::Result<void>();
  });
  EXPECT_TRUE(ran.has_value());
  std::vector<float> logits(static_cast<std::size_t>(program.logits.elements()));
  EXPECT_TRUE(backend->read(program.logits, std::as_writable_bytes(std::span(logits))).has_value());
  return logits;
}

class HfFamily : public ::testing::TestWithParam<const char*> {};

TEST_P(HfFamily, LogitsAreThoseOfTransformers) {
  const fs::path folder = data() / GetParam();
  const base::testing::MemoryDir directory;
  const auto made = import_hf(folder, directory.path() / "run");
  ASSERT_TRUE(made.has_value()) << made.error().line();
  const auto from = checkpoint::Checkpoint::open(made->checkpoint);
  ASSERT_TRUE(from.has_value()) << from.error().line();

  const auto theirs = checkpoint::SafetensorsFile::open(folder.string() + "-logits.safetensors");
  ASSERT_TRUE(theirs.has_value()) << theirs.error().line();
  const std::vector<float> expected = values_of<float>(*theirs, "logits");
  const std::vector<float> logits = logits_of(*from);
  ASSERT_EQ(logits.size(), expected.size());
  double largest = 0;
  double off = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    off =
        std::max(off, std::abs(static_cast<double>(logits[i]) - static_cast<double>(expected[i])));
  }
  EXPECT_GT(largest, 0.1);
  EXPECT_LE(off, 2e-6 * largest);

  ASSERT_TRUE(export_hf(*from, directory.path() / "back").has_value());
  const auto before = checkpoint::SafetensorsFile::open(folder / "model.safetensors");
  const auto after = checkpoint::SafetensorsFile::open(directory.path() / "back/model.safetensors");
  ASSERT_TRUE(before.has_value() && after.has_value());
  for (const checkpoint::TensorPlace& place : after->header().tensors) {
    const std::string& name = place.info.name;
    EXPECT_EQ(values_of<std::uint32_t>(*after, name), values_of<std::uint32_t>(*before, name))
        << name;
  }
  EXPECT_EQ(after->header().tensors.size(), before->header().tensors.size());
}

INSTANTIATE_TEST_SUITE_P(Families, HfFamily,
                         ::testing::Values("llama2", "llama3", "mistral", "qwen2", "qwen3", "gpt2",
                                           "mixtral", "qwen3_moe"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace assay::train
