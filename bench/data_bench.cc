// Throughput of one core in reading batches and in tokenizing. Shards are in memory.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/testing/temp_dir.h"
#include "train/data/batch_reader.h"
#include "train/data/load_tokenizer.h"
#include "train/data/loader.h"
#include "train/data/synth.h"

namespace {

using namespace assay::data;

constexpr std::uint64_t kSequence = 2048;
constexpr std::uint64_t kMicro = 8;

// 32 Mi tokens of u16, or of u32 for a larger vocabulary.
TokenSet sample_set(std::uint64_t vocabulary) {
  static const assay::base::testing::TempDir folder;
  const auto path = folder.path() / (std::to_string(vocabulary) + ".tokens");
  if (!std::filesystem::exists(path)) {
    synthesize({.output = path,
                .tokens = std::uint64_t{32} << 20,
                .vocabulary = vocabulary,
                .kind = SynthKind::kUniform})
        .value();
  }
  return *TokenSet::open({.paths = {path.string()}}, kSequence);
}

// One core without prefetching: the rate of batches.
void read_batches(benchmark::State& state) {
  const TokenSet set = sample_set(static_cast<std::uint64_t>(state.range(0)));
  const BatchReader reader(set, 1, static_cast<std::int32_t>(state.range(0)));
  Batch batch;
  std::uint64_t cursor = 0;
  for (auto _ : state) {
    if (!reader.read(cursor, {.micro = kMicro}, batch)) state.SkipWithError("cannot read");
    benchmark::DoNotOptimize(batch.tokens.data());
    cursor += kMicro;
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kMicro * kSequence));
}
BENCHMARK(read_batches)->Arg(50304)->Arg(128256);

// Through the loader's thread, for a trainer that does nothing else.
void load_batches(benchmark::State& state) {
  const TokenSet set = sample_set(50304);
  const BatchReader reader(set, 1, 50304);
  Loader loader(reader, {.share = {.micro = kMicro}});
  Batch batch;
  for (auto _ : state) {
    if (!loader.next(batch)) state.SkipWithError("cannot read");
    benchmark::DoNotOptimize(batch.tokens.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kMicro * kSequence));
}
BENCHMARK(load_batches)->UseRealTime();

void place_in_order(benchmark::State& state) {
  const WindowOrder order(1'000'003, 1);
  std::uint64_t cursor = 0;
  for (auto _ : state) benchmark::DoNotOptimize(order.window_at(cursor++));
}
BENCHMARK(place_in_order);

// This repository's documentation, repeated; the rate is in bytes.
void encode_text(benchmark::State& state) {
  const std::filesystem::path root = ASSAY_SOURCE_DIR;
  const auto tokenizer = *load_tokenizer({.source = root / "tests/tokenizers/llama3.json"});
  std::string text;
  for (const char* page : {"README.md", "ARCHITECTURE.md", "docs/run.md", "docs/lineage.md"}) {
    std::ifstream file(root / page);
    text.append(std::istreambuf_iterator<char>(file), {});
  }
  const auto encoder = tokenizer->encoder();
  std::vector<TokenId> tokens;
  for (auto _ : state) {
    tokens.clear();
    if (!encoder->feed(text, tokens)) state.SkipWithError("cannot encode");
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(encode_text);

}  // namespace
