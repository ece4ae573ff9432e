#include "lineage/record/part_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/file.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kWaitStep{100};
// More than the clock differences between a cluster's nodes plus the delay with which network file
// systems show new times.
constexpr std::chrono::minutes kAliveFor{3};

}  // namespace

fs::path PartFolder::file(int rank, const char* kind) const {
  return part_.folder / fmt::format("rank-{}.{}", rank, kind);
}

base::Result<void> PartFolder::write_state(std::int64_t count) const {
  return base::replace_file(file(part_.rank, "state"),
                            fmt::format("{} {} {}\n", host_, recorder_, count));
}

std::optional<PartFolder::State> PartFolder::parse_state(std::string_view text) {
  constexpr std::size_t kLongest = 255;
  const std::size_t host_end = text.find(' ');
  if (host_end == std::string_view::npos) return std::nullopt;
  const std::size_t recorder_end = text.find(' ', host_end + 1);
  if (recorder_end == std::string_view::npos) return std::nullopt;
  State state{std::string(text.substr(0, host_end)),
              std::string(text.substr(host_end + 1, recorder_end - host_end - 1))};
  for (const std::string* name : {&state.host, &state.recorder}) {
    const bool printable = std::ranges::all_of(*name, [](char c) { return c > ' ' && c < 0x7f; });
    if (!printable || name->size() > kLongest) return std::nullopt;
  }
  return state;
}

base::Result<PartFolder> PartFolder::open(const PartOf& part, const std::string& host,
                                          const std::string& recorder) {
  PartFolder opened(part, host, recorder);
  std::error_code error;
  fs::create_directories(part.folder, error);
  if (error) {
    return base::fail(
        base::unfit_error(part.folder, "cannot be created: " + error.message(),
                          "ranks deliver their parts of the record there; choose another --out"));
  }
  ASSAY_TRY_VOID(opened.write_state(0));
  return opened;
}

base::Result<void> PartFolder::note_in(const fs::path& spool) const {
  return base::write_file(
      spool / "parts",
      fmt::format("{} {} {}", part_.ranks, part_.may_be_old ? 1 : 0, part_.folder.string()));
}

std::optional<PartFolder> PartFolder::of_interrupted(const fs::path& spool,
                                                     const std::string& run) {
  const auto note = base::read_file(spool / "parts", kMostState);
  if (!note) return std::nullopt;
  PartOf part;
  int may_be_old = 0;
  const char* const end = note->data() + note->size();
  const char* at = note->data();
  for (int* number : {&part.ranks, &may_be_old}) {
    const auto [stopped, error] = std::from_chars(at, end, *number);
    if (error != std::errc{} || stopped == end || *stopped != ' ') return std::nullopt;
    at = stopped + 1;
  }
  part.may_be_old = may_be_old != 0;
  part.folder = std::string(at, end);
  return PartFolder(std::move(part), "", run);
}

PartFolder::Heartbeat::Heartbeat(std::function<void(std::int64_t)> send,
                                 std::chrono::milliseconds every)
    : send_(std::move(send)), thread_([this, every] {
        std::unique_lock lock(mutex_);
        for (std::int64_t count = 1; !done_; ++count) {
          lock.unlock();
          send_(count);
          lock.lock();
          wake_.wait_for(lock, every, [this] { return done_; });
        }
      }) {}

PartFolder::Heartbeat::~Heartbeat() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

std::unique_ptr<PartFolder::Heartbeat> PartFolder::start_heartbeat(
    std::chrono::milliseconds every) const {
  // Errors are ignored: without a heartbeat a rank may still hand over its part in time.
  return std::make_unique<Heartbeat>(
      [this](std::int64_t count) { static_cast<void>(write_state(count)); }, every);
}

bool PartFolder::is_run_alive() const {
  const auto text = base::read_file(file(0, "state"), kMostState);
  if (!text) return false;
  const auto owner = parse_state(*text);
  std::error_code error;
  const auto written = fs::last_write_time(file(0, "state"), error);
  if (!owner || owner->recorder != recorder_ || error) return false;
  return fs::file_time_type::clock::now() - written < kAliveFor;
}

bool PartFolder::is_announced_within(int rank, std::chrono::milliseconds timeout) const {
  const auto deadline = Clock::now() + timeout;
  while (true) {
    std::error_code error;
    if (fs::exists(file(rank, "state"), error)) return true;
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::min(kWaitStep, timeout));
  }
}

base::Result<void> PartFolder::hand_over(const Part& part, std::optional<bool> rank_0_is_recorded,
                                         std::chrono::milliseconds timeout) const {
  if (!rank_0_is_recorded.value_or(true)) {
    return base::fail(
        base::unfit_error("", "rank 0, which records the run, is itself not recorded"));
  }
  if (!rank_0_is_recorded && !is_announced_within(0, timeout)) {
    return base::fail(base::unfit_error("", "rank 0, which records the run, did not start"));
  }
  return base::replace_file(file(part_.rank, "part"), encode(part));
}

void PartFolder::leave() const {
  std::error_code ignored;
  // Rank 0 still needs the state file to attribute a part that was handed over.
  if (!fs::exists(file(part_.rank, "part"), ignored)) {
    fs::remove(file(part_.rank, "state"), ignored);
  }
  fs::remove(part_.folder, ignored);  // not if something is in it
}

void PartFolder::remove() const {
  if (const auto text = base::read_file(file(0, "state"), kMostState)) {
    const auto owner = parse_state(*text);
    if (owner && owner->recorder != recorder_) return;
  }
  remove(part_);
}

// A rank that is about to end may write its state once more while the folder is being emptied.
void PartFolder::remove(const PartOf& part) {
  constexpr int kAttempts = 20;
  constexpr std::chrono::milliseconds kPause(10);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::error_code error;
    fs::remove_all(part.folder, error);
    if (!error) return;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace assay::lineage
