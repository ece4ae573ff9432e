#include "lineage/record/part_check.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

namespace assay::lineage {
namespace {

constexpr std::int64_t kLatestUnix_ns = 4'000'000'000'000'000'000;  // in the year 2096
constexpr std::int64_t kLongestRun_ns = 1'000'000'000'000'000'000;  // three decades
constexpr double kMostProcessor_s = 1e12;
constexpr std::size_t kLongestHost = 255;
constexpr std::size_t kLongestUid = 64;

// Remembers the first problem only.
class PartCheck {
 public:
  explicit PartCheck(const Part& part) {
    check_head(part);
    check_gpu(part.gpu);
    for (const auto& input : part.inputs) {
      path("an input", input.what.path);
      counter("the size of an input", input.what.size);
      rule(input.rule);
    }
    for (const auto& output : part.outputs) {
      path("an output", output.what.path);
      if (!output.what.from.empty()) path("the former name of an output", output.what.from);
      counter("the size of an output", output.what.size);
      rule(output.rule);
    }
    for (const auto& file : part.files_left_out) {
      path("a file that was left out", file.what.path);
      rule(file.rule);
    }
    for (const store::ProcessRecord& process : part.processes) check_process(process);
  }

  [[nodiscard]] std::optional<std::string> problem() const { return problem_; }

 private:
  void check_head(const Part& part) {
    if (part.rank < 0) note("its rank is {}", part.rank);
    const auto printable = [](char c) { return c > ' ' && c < 0x7f; };
    if (part.host.size() > kLongestHost || !std::ranges::all_of(part.host, printable)) {
      note("the name of its node is invalid");
    }
    for (const std::string* uid : {&part.recorder, &part.run}) {
      if (uid->size() > kLongestUid || !std::ranges::all_of(*uid, printable)) {
        note("the name of a run is invalid");
      }
    }
    between("the start", part.started_unix_ns, 0, kLatestUnix_ns);
    if (part.wait_status) exit_status(*part.wait_status);
    counter("the number of lost events", part.dropped);
    for (const double seconds : {part.usage.user_s, part.usage.system_s}) {
      // Written so that NaN fails too.
      if (!(seconds >= 0 && seconds <= kMostProcessor_s)) {
        note("the processor time is {} s", seconds);
      }
    }
    counter("the peak of memory", part.usage.max_rss_bytes);
    counter("the number of bytes read", part.usage.read_bytes);
    counter("the number of bytes written", part.usage.written_bytes);
  }

  void check_gpu(const store::GpuWork& gpu) {
    for (const store::GpuUse& use : gpu.use) {
      if (use.quantity.empty()) note("a quantity of GPU work has no name");
      counter("the number of calls", use.calls);
      counter("an amount of GPU work", use.amount);
    }
    for (const store::GpuMemory& memory : gpu.memory) {
      counter("the peak of GPU memory", memory.peak_bytes);
    }
    for (const store::GpuCollectiveUse& row : gpu.collectives) {
      counter("the number of ranks of a communicator", row.ranks);
      counter("the number of collective calls", row.calls);
      counter("the number of exchanged bytes", row.bytes);
    }
    for (const store::GpuShareUse& share : gpu.shares) {
      constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
      between("a limit of GPU memory", share.memory_bytes.value_or(1), 1, kMost);
      between("a share of a GPU", share.share_thousandths.value_or(1), 1, 1000);
      counter("the time on a GPU", share.busy_ns);
      counter("the time spent waiting for a GPU", share.waited_ns);
    }
  }

  void check_process(const store::ProcessRecord& process) {
    counter("the id of a process", process.pid);
    counter("the id of a parent process", process.parent);
    between("the start of a process", process.started_ns, -kLongestRun_ns, kLongestRun_ns);
    between("the end of a process", process.ended_ns.value_or(0), -kLongestRun_ns, kLongestRun_ns);
    if (process.wait_status) exit_status(*process.wait_status);
  }

  void counter(const char* what, std::int64_t value) {
    if (value < 0) note("{} is negative", what);
  }
  void between(const char* what, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (value < low || value > high) note("{} is {}, not from {} to {}", what, value, low, high);
  }
  void exit_status(int status) {
    if (!WIFEXITED(status) && !WIFSIGNALED(status)) note("{:#x} is not an exit status", status);
  }
  void path(const char* what, std::string_view text) {
    if (!text.starts_with('/') || text.find('\0') != std::string_view::npos) {
      note("{} has no absolute path", what);
    }
  }
  void rule(const FilterRule& rule) {
    if (rule.name.empty()) note("a rule of the filter has no name");
  }

  template <class... Arguments>
  void note(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    if (!problem_) problem_ = fmt::format(text, std::forward<Arguments>(arguments)...);
  }

  std::optional<std::string> problem_;
};

}  // namespace

std::optional<std::string> problem_in(const Part& part) {
  return PartCheck(part).problem();
}

}  // namespace assay::lineage
