// A tiny training job, and a reporter that records what it gets.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "train/data/shard_writer.h"
#include "train/data/tokenizer.h"
#include "train/job_data.h"
#include "train/trainer.h"

namespace assay::train {

inline spec::JobSpec tiny_job() {
  spec::JobSpec job;
  job.model = {.vocab = 256,
               .dim = 32,
               .layers = 2,
               .heads = 4,
               .kv_heads = 2,
               .head_dim = 8,
               .ffn = 64,
               .context = 32};
  job.batch = {.sequence = 32, .micro_batch = 4, .accumulate = 2};
  job.layout.dp = 1;
  job.train.steps = 12;
  job.train.precision = spec::Precision::kFp32;
  job.train.learning_rate = 3e-3;
  job.train.warmup_steps = 3;
  return job;
}

// Sentences of a few hundred invented words. Not the built-in text: that are the documents, and
// what is trained, and how much rounding grows on the way, would change with every edit of them.
inline std::string invented_text() {
  std::mt19937 random(1);
  std::vector<std::string> words(300);
  for (std::string& word : words) {
    word.resize(1 + random() % 8);
    for (char& letter : word) letter = static_cast<char>('a' + random() % 26);
  }
  std::string text;
  for (int i = 0; i < 60000; ++i) {
    // Some words are more frequent than others.
    text += words[random() % (1 + random() % words.size())];
    text += random() % 12 == 0 ? ".\n" : " ";
  }
  return text;
}

// An invented text as bytes, written to the folder, in windows of that job's sequence length.
// `document`: tokens of each, or 0 for one document.
inline data::TokenSet text_tokens(const std::filesystem::path& folder, std::size_t document = 0) {
  const auto tokenizer = data::byte_tokenizer();
  auto writer =
      data::ShardWriter::create(folder / "text.tokens", tokenizer->vocabulary(),
                                data::ShardDocuments{.definition = tokenizer->definition()});
  EXPECT_TRUE(writer.has_value()) << writer.error().line();
  const std::vector<data::TokenId> all = *tokenizer->encode(invented_text());
  const std::size_t length = document == 0 ? all.size() : document;
  for (std::size_t at = 0; at < all.size(); at += length) {
    writer->begin_document();
    const std::size_t count = std::min(length, all.size() - at);
    EXPECT_TRUE(writer->append(std::span(all).subspan(at, count)).has_value());
  }
  EXPECT_TRUE(writer->finish().has_value());
  auto set = data::TokenSet::open({.paths = {(folder / "text.tokens").string()}}, 32);
  EXPECT_TRUE(set.has_value()) << set.error().line();
  return *std::move(set);
}

class RecordingReporter : public Reporter {
 public:
  void began(std::int64_t first, std::int64_t) override { first_step = first; }
  void stepped(const StepReport& report) override {
    reports.push_back(report);
    if (on_step) on_step(report);
  }
  void validated(const ValidationReport& report) override { validations.push_back(report); }
  void saved(const std::filesystem::path&, std::int64_t) override { ++saves; }
  void note(const std::string& line) override {
    const std::lock_guard lock(mutex);
    notes.push_back(line);
  }
  void resumed(const std::filesystem::path&, std::int64_t step) override { resumed_after = step; }

  std::function<void(const StepReport&)> on_step;
  std::int64_t first_step = 0;
  std::atomic<int> saves = 0;  // updated by the writer's thread
  std::vector<StepReport> reports;
  std::vector<ValidationReport> validations;
  std::int64_t resumed_after = -1;
  std::mutex mutex;  // notes come from the writer's thread, too
  std::vector<std::string> notes;
};

}  // namespace assay::train
