// What the lineage tracker costs by itself: events per second and bytes per file for a run that
// makes files and reads them again, in 1,000 folders. With a folder as second argument the files
// are really made there (small ones) and hashed at the end; without, there are only events. With
// "inputs" as third argument their creation is not reported: they are inputs, hashed during the
// run.
//
//   tracker_bench [FILES] [FOLDER] [inputs]
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/clock.h"
#include "lineage/track/stamp.h"
#include "lineage/track/tracker.h"

namespace {

using namespace assay;

std::size_t resident_bytes() {
  std::size_t size = 0;
  std::size_t resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

std::int64_t thread_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

class Counted : public lineage::Results {
 public:
  void input(store::Input input, const lineage::FilterRule&) override {
    ++inputs;
    if (input.blake3) ++hashed;
  }
  void output(store::Output output, const lineage::FilterRule&) override {
    ++outputs;
    if (output.blake3) ++hashed;
  }
  void left_out(LeftOut, const lineage::FilterRule&) override {}
  void fact(store::PathFact) override {}
  void process(store::ProcessRecord) override {}
  void missed(store::Missed missed) override { std::printf("missed %s\n", missed.text.c_str()); }
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  std::size_t hashed = 0;
};

std::string name_of(const std::string& root, std::uint32_t i) {
  return root + "/shard-" + std::to_string(i % 1000) + "/sample-" + std::to_string(i) + ".bin";
}

// A state that no real file has, so that nothing is found on the disk.
wire::Stamp made_up(std::uint32_t i) {
  return {1U << 30U, i + 1, 100, 1'000 + i, 1'000 + i};
}

wire::Stamp stamp_of(const struct stat& status) {
  return lineage::to_wire(lineage::stamp_of(status));
}

wire::Stamp make_file(const std::string& path, std::uint32_t i) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 || ::write(fd, &i, sizeof i) != sizeof i) std::exit(1);
  struct stat status {};
  ::fstat(fd, &status);
  ::close(fd);
  return stamp_of(status);
}

}  // namespace

int main(int argc, char** argv) {
  const auto files = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 1'000'000);
  const bool real = argc > 2;
  const bool inputs = argc > 3;
  const std::string root = real ? argv[2] : "/made-up";
  if (real) {
    for (int i = 0; i < 1000; ++i) {
      std::filesystem::create_directories(root + "/shard-" + std::to_string(i));
    }
  }
  lineage::Filter filter({.root = root, .home = {}, .user_rules = {}});
  lineage::Tracker tracker({}, filter);
  const std::size_t before = resident_bytes();
  // Of this thread's own time: the machine may be busy. What the clock itself takes is left out.
  std::int64_t clock_ns = thread_ns();
  for (int i = 0; i < 1000; ++i) thread_ns();
  clock_ns = (thread_ns() - clock_ns) / 1001;
  std::int64_t told_ns = 0;
  const auto add = [&](wire::RecordOp op, std::uint32_t i, const wire::Stamp& stamp) {
    const std::string path = name_of(root, i);
    collect::Event event;
    event.op = op;
    event.process = event.thread = 2;
    event.stamp = stamp;
    event.path = path;
    const std::int64_t start_ns = thread_ns();
    tracker.on_event(event);
    told_ns += thread_ns() - start_ns - clock_ns;
  };
  for (std::uint32_t i = 0; i < files; ++i) {
    const wire::Stamp stamp = real ? make_file(name_of(root, i), i) : made_up(i);
    if (!inputs) add(wire::RecordOp::kCreate, i, stamp);
  }
  const std::int64_t created_ns = told_ns;
  for (std::uint32_t i = 0; i < files; ++i) {
    wire::Stamp stamp = made_up(i);
    if (real) {
      struct stat status {};
      if (::stat(name_of(root, i).c_str(), &status) != 0) return 1;
      stamp = stamp_of(status);
    }
    add(wire::RecordOp::kRead, i, stamp);
  }
  const double count = files;
  const double per_s = 1e9 * 2 * count / static_cast<double>(told_ns);
  std::printf("%u files made and read: %.2f M events/s (%.0f ns a creation, %.0f ns a read)\n",
              files, per_s / 1e6, static_cast<double>(created_ns) / count,
              static_cast<double>(told_ns - created_ns) / count);
  std::printf("memory: %.0f bytes a file, %.0f MB resident\n",
              static_cast<double>(resident_bytes() - before) / count,
              static_cast<double>(resident_bytes()) / 1e6);
  const base::Stopwatch watch;
  Counted counted;
  tracker.finish(counted);
  std::printf("end: %zu inputs, %zu outputs, %zu hashed, in %.2f s; %.0f MB resident\n",
              counted.inputs, counted.outputs, counted.hashed, watch.elapsed().count(),
              static_cast<double>(resident_bytes()) / 1e6);
  return 0;
}
