// Recording a job with many files: record_bench FILES DIRECTORY. Prints rows per second and the
// process's largest memory. Run by bench/lineage.
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "base/clock.h"
#include "store/job_writer.h"

namespace {

using namespace assay;

// Stops at the first failure: half a measurement is none.
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

double rss_mib() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void record(store::Store& store, std::int64_t files, std::uint64_t seed, const char* what) {
  std::mt19937_64 random(seed);
  store::Job job;
  job.command = {"make", "files"};
  job.directory = "/project";
  job.tracer = "preload";
  job.id = must(store::begin_job(store, job));
  job.status = store::JobStatus::kDone;
  const base::Stopwatch watch;
  {
    store::JobWriter writer = must(store::JobWriter::begin(store, job.id));
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
    must(writer.finish(job));
  }
  const double seconds = watch.elapsed().count();
  fmt::print("{}: {} outputs in {:.2f} s, {:.0f} per second, largest memory {:.0f} MiB\n", what,
             files, seconds, static_cast<double>(files) / seconds, rss_mib());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  const std::int64_t files = std::atoll(argv[1]);
  std::filesystem::create_directories(argv[2]);
  store::Store store = must(store::Store::create(store::location_in(argv[2]), {}));
  record(store, files, 1, "new paths, new contents");
  record(store, files, 2, "known paths, new contents");
  record(store, files, 2, "known paths, known contents");
  return 0;
}
