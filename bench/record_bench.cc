// Recording: record_bench FILES DIRECTORY records runs with so many outputs and prints rows per
// second and the process's largest memory; record_bench RUNS FILES DIRECTORY makes a store with so
// many runs for bench/lineage to query, in pipelines of ten stages that read each other's output.
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "base/clock.h"
#include "hash/blake3.h"
#include "store/run_writer.h"

namespace {

using namespace assay;

// Stops at the first failure: an incomplete measurement is useless.
template <class T>
T must(base::Result<T> result) {
  if (result) return *std::move(result);
  fmt::print(stderr, "record_bench: {}\n", result.error().line());
  std::exit(1);
}
void must(const base::Result<void>& result) {
  if (result) return;
  fmt::print(stderr, "record_bench: {}\n", result.error().line());
  std::exit(1);
}

struct rusage usage() {
  struct rusage used {};
  ::getrusage(RUSAGE_SELF, &used);
  return used;
}

// Of this process, in the program and in the kernel: what a busy machine does not change.
double processor_s() {
  const struct rusage used = usage();
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void record(store::Store& store, std::int64_t files, std::uint64_t seed, const char* what) {
  std::mt19937_64 random(seed);
  store::RunRecord run;
  run.command = {"make", "files"};
  run.directory = "/project";
  run.tracer = "preload";
  run.id = must(store::begin_run(store, run));
  run.status = store::RunStatus::kDone;
  const base::Stopwatch watch;
  const double before_s = processor_s();
  {
    store::RunWriter writer = must(store::RunWriter::begin(store, run.id));
    store::Output output;
    for (std::int64_t i = 0; i < files; ++i) {
      hash::Digest digest;
      for (std::size_t word = 0; word < 4; ++word) {
        const std::uint64_t value = random();
        std::memcpy(&digest.bytes[word * 8], &value, 8);
      }
      output.path = fmt::format("/home/user/project/data/shard-{:03}/file-{:07}.bin", i / 1000, i);
      output.blake3 = digest;
      output.size = i;
      must(writer.add_output(output));
    }
    must(writer.finish(run));
  }
  const double seconds = watch.elapsed().count();
  const double used_s = processor_s() - before_s;
  fmt::print(
      "{}: {} outputs in {:.2f} s ({:.0f} per second), processor {:.2f} s ({:.0f} per second),"
      " largest memory {:.0f} MiB\n",
      what, files, seconds, static_cast<double>(files) / seconds, used_s,
      static_cast<double>(files) / used_s, static_cast<double>(usage().ru_maxrss) / 1024);
}

// Half of each run's files are inputs.
void record_pipelines(store::Store& store, std::int64_t runs, std::int64_t files) {
  constexpr std::int64_t kSteps = 10;
  const base::Stopwatch watch;
  const auto file = [&](std::int64_t run, std::int64_t i) {
    const std::string path =
        fmt::format("/home/user/project/p{:04}/s{}/file-{:04}.bin", run / kSteps, run % kSteps, i);
    return std::pair(path, hash::blake3(std::as_bytes(std::span(path.data(), path.size()))));
  };
  for (std::int64_t j = 0; j < runs; ++j) {
    store::RunRecord run;
    run.command = {"python", "step.py", "--number", std::to_string(j)};
    run.directory = "/home/user/project";
    run.tracer = "preload";
    run.exit_code = 0;
    run.status = store::RunStatus::kDone;
    run.started_unix_ns = 1'790'000'000'000'000'000 + j * 60'000'000'000;
    run.duration_s = 10;
    run.context.environment = {{"HOME", "/home/user"}, {"PATH", "/usr/bin:/bin"}};
    for (std::int64_t i = 0; i < files / 2; ++i) {
      const auto [from, read] = file(j % kSteps == 0 ? 1'000'000'000 + j : j - 1, i);
      run.inputs.push_back({from, read, i});
      const auto [to, written] = file(j, i);
      run.outputs.push_back({to, written, i, store::OutputStatus::kCreated, ""});
    }
    must(store::record_run(store, run));
  }
  fmt::print("{} runs with {} files each recorded in {:.1f} s\n", runs, files,
             watch.elapsed().count());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4) {
    std::filesystem::create_directories(argv[3]);
    store::Store store = must(store::Store::create(store::location_in(argv[3]), {}));
    record_pipelines(store, std::atoll(argv[1]), std::atoll(argv[2]));
    return 0;
  }
  if (argc != 3) return 64;
  const std::int64_t files = std::atoll(argv[1]);
  std::filesystem::create_directories(argv[2]);
  store::Store store = must(store::Store::create(store::location_in(argv[2]), {}));
  record(store, files, 1, "new paths, new contents");
  record(store, files, 2, "known paths, new contents");
  record(store, files, 2, "known paths, known contents");
  return 0;
}
