// The cost of a checkpoint compared with a plain write of the same bytes, on the disk of the
// working directory (or ASSAY_BENCH_ROOT). Every round ends with the bytes on disk.
//
//   checkpoint_bench [Google Benchmark's options]     ASSAY_BENCH_MB: the size, default 1024
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "hash/blake3.h"
#include "train/checkpoint/background_writer.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/shared_write.h"

namespace {

namespace checkpoint = assay::checkpoint;
namespace fs = std::filesystem;

constexpr std::size_t kTensorBytes = std::size_t{64} << 20;

fs::path bench_root() {
  const char* named = std::getenv("ASSAY_BENCH_ROOT");
  return fs::path(named != nullptr ? named : ".") / "checkpoint_bench.tmp";
}

// Not compressible, like weights.
const std::vector<std::byte>& payload() {
  static const std::vector<std::byte> bytes = [] {
    const char* named = std::getenv("ASSAY_BENCH_MB");
    const std::size_t megabytes = named != nullptr ? std::strtoul(named, nullptr, 10) : 1024;
    std::vector<std::byte> data(std::max<std::size_t>(megabytes, 1) << 20);
    std::mt19937_64 random(1);
    for (std::size_t at = 0; at + 8 <= data.size(); at += 8) {
      const std::uint64_t word = random();
      std::copy_n(reinterpret_cast<const std::byte*>(&word), 8, data.data() + at);
    }
    return data;
  }();
  return bytes;
}

checkpoint::Snapshot borrowed_snapshot(std::int64_t step) {
  checkpoint::Snapshot snapshot;
  snapshot.state.step = step;
  snapshot.parts.push_back({"weights", {}});
  const std::span<const std::byte> all = payload();
  for (std::size_t at = 0; at < all.size(); at += kTensorBytes) {
    const auto part = all.subspan(at, std::min(kTensorBytes, all.size() - at));
    snapshot.parts[0].tensors.push_back({{"t" + std::to_string(at),
                                          checkpoint::TensorDtype::kU8,
                                          {static_cast<std::int64_t>(part.size())}},
                                         part});
  }
  return snapshot;
}

void count_bytes(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(payload().size()));
}

void BM_PlainWrite(benchmark::State& state) {
  const fs::path root = bench_root();
  fs::create_directories(root);
  payload();
  for (auto _ : state) {
    const assay::base::UniqueFd fd(
        ::open((root / "plain").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    std::span<const std::byte> rest = payload();
    while (!rest.empty()) {
      const ssize_t count =
          ::write(fd.get(), rest.data(), std::min<std::size_t>(rest.size(), 8 << 20));
      if (count <= 0) return state.SkipWithError("cannot write");
      rest = rest.subspan(static_cast<std::size_t>(count));
    }
    if (::fsync(fd.get()) != 0) return state.SkipWithError("cannot sync");
    state.PauseTiming();
    fs::remove(root / "plain");
    state.ResumeTiming();
  }
  count_bytes(state);
  fs::remove_all(root);
}

void BM_Checkpoint(benchmark::State& state) {
  const fs::path root = bench_root();
  if (!checkpoint::prepare_root(root)) return state.SkipWithError("no folder");
  payload();
  for (auto _ : state) {
    const auto written = checkpoint::write_checkpoint(root, borrowed_snapshot(1));
    if (!written) return state.SkipWithError(written.error().line().c_str());
    state.PauseTiming();
    fs::remove_all(root / "step-1");
    state.ResumeTiming();
  }
  count_bytes(state);
  fs::remove_all(root);
}

// The same bytes from several ranks, each a thread with its part: one folder, one commit.
void BM_SharedCheckpoint(benchmark::State& state) {
  const fs::path root = bench_root();
  if (!checkpoint::prepare_root(root)) return state.SkipWithError("no folder");
  const std::int64_t ranks = state.range(0);
  const checkpoint::Snapshot whole = borrowed_snapshot(1);
  std::vector<checkpoint::Snapshot> parts(static_cast<std::size_t>(ranks));
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    parts[rank].state = whole.state;
    checkpoint::SnapshotPart& part = parts[rank].parts.emplace_back();
    part.name = "weights";
    for (const checkpoint::Tensor& tensor : whole.parts[0].tensors) {
      part.all.push_back(tensor.info);
      const std::size_t each = tensor.data.size() / parts.size();
      const std::size_t first = rank * each;
      const std::size_t count = rank + 1 < parts.size() ? each : tensor.data.size() - first;
      part.tensors.push_back(
          {.info = tensor.info,
           .data = tensor.data.subspan(first, count),
           .elements = checkpoint::ElementRange{static_cast<std::int64_t>(first),
                                                static_cast<std::int64_t>(count)}});
    }
  }
  for (auto _ : state) {
    const auto share = checkpoint::begin_shared(root, 1, ranks);
    if (!share) return state.SkipWithError(share.error().line().c_str());
    std::vector<std::jthread> threads;
    for (std::size_t rank = 1; rank < parts.size(); ++rank) {
      parts[rank].share = checkpoint::RankOfWrite{
          .rank = static_cast<std::int64_t>(rank), .ranks = ranks, .staging = share->staging};
      threads.emplace_back([&root, &part = parts[rank]] {
        static_cast<void>(checkpoint::write_shared(root, part));
      });
    }
    parts[0].share = *share;
    const auto written = checkpoint::write_shared(root, parts[0]);
    if (!written) return state.SkipWithError(written.error().line().c_str());
    state.PauseTiming();
    fs::remove_all(root / "step-1");
    state.ResumeTiming();
  }
  count_bytes(state);
  fs::remove_all(root);
}

// What training waits for: handing over the snapshot. Writing continues in the background.
void BM_Submit(benchmark::State& state) {
  const fs::path root = bench_root();
  auto writer = checkpoint::BackgroundWriter::start(root, {.retention = {.keep_last = 1}});
  if (!writer) return state.SkipWithError(writer.error().line().c_str());
  std::int64_t step = 0;
  for (auto _ : state) {
    state.PauseTiming();
    if (!(*writer)->wait()) return state.SkipWithError("cannot write");
    auto snapshot = borrowed_snapshot(++step);
    state.ResumeTiming();
    if (!(*writer)->submit(std::move(snapshot))) return state.SkipWithError("refused");
  }
  writer->reset();
  fs::remove_all(root);
}

void BM_Verify(benchmark::State& state) {
  const fs::path root = bench_root();
  if (!checkpoint::prepare_root(root) ||
      !checkpoint::write_checkpoint(root, borrowed_snapshot(1))) {
    return state.SkipWithError("cannot write");
  }
  for (auto _ : state) {
    if (!checkpoint::verify(root / "step-1")) return state.SkipWithError("damaged");
  }
  count_bytes(state);
  fs::remove_all(root);
}

void BM_HashInMemory(benchmark::State& state) {
  payload();
  for (auto _ : state) benchmark::DoNotOptimize(assay::hash::blake3(payload(), 1));
  count_bytes(state);
}

BENCHMARK(BM_PlainWrite)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(3);
BENCHMARK(BM_Checkpoint)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(3);
BENCHMARK(BM_SharedCheckpoint)->Arg(4)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(3);
BENCHMARK(BM_Submit)->Unit(benchmark::kMicrosecond)->UseRealTime()->Iterations(3);
BENCHMARK(BM_Verify)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(3);
BENCHMARK(BM_HashInMemory)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(3);

}  // namespace

BENCHMARK_MAIN();
