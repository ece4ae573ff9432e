#include "train/verify_together.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <future>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"

namespace assay::train {
namespace {

constexpr std::chrono::seconds kRound{1};

// The message that ranks exchange.
struct VerifyMessage {
  std::int64_t done = 0;
  std::int64_t read_bytes = 0;
  std::int64_t unreadable = 0;      // `problem` is not in the checkpoint, but in reading it
  std::array<char, 488> problem{};  // empty: none
};

// Shared with the reading thread: one that hangs in a file system is abandoned.
struct Reading {
  explicit Reading(checkpoint::Checkpoint from) : checkpoint(std::move(from)) {}
  checkpoint::Checkpoint checkpoint;
  std::atomic<std::int64_t> read_bytes = 0;
  std::promise<base::Result<void>> whole;
};

std::shared_ptr<Reading> start_reading(checkpoint::Checkpoint opened, comm::Communicator& ranks,
                                       int threads) {
  auto reading = std::make_shared<Reading>(std::move(opened));
  const checkpoint::VerifyOptions share{
      .threads = static_cast<unsigned>(std::max(0, threads)),
      .progress = [state = reading.get()](std::int64_t bytes) { state->read_bytes += bytes; },
      .share = {static_cast<std::size_t>(ranks.rank()), static_cast<std::size_t>(ranks.ranks())}};
  std::thread([reading, share] {
    reading->whole.set_value(reading->checkpoint.verify(share));
  }).detach();
  return reading;
}

}  // namespace

base::Result<Verified> verify_together(const std::filesystem::path& folder,
                                       comm::Communicator& ranks, int threads,
                                       const WhileChecked& meanwhile,
                                       std::chrono::milliseconds timeout) {
  ASSAY_CHECK(!meanwhile || ranks.ranks() == 1, "other ranks would wait for this one");
  VerifyMessage own;
  const auto set_problem = [&](const base::Error& error) {
    const std::string line = error.line();
    own.unreadable = error.code == base::ExitCode::kNo ? 0 : 1;
    std::memcpy(own.problem.data(), line.data(), std::min(line.size(), own.problem.size() - 1));
  };
  std::shared_ptr<Reading> reading;
  std::future<base::Result<void>> whole;
  if (auto opened = checkpoint::Checkpoint::open(folder)) {
    reading = start_reading(*std::move(opened), ranks, threads);
    whole = reading->whole.get_future();
  } else {
    own.done = 1;
    set_problem(opened.error());
  }
  if (reading && meanwhile) meanwhile(reading->checkpoint);
  std::int64_t read_before = -1;
  base::Stopwatch quiet;
  std::vector<VerifyMessage> messages(static_cast<std::size_t>(ranks.ranks()));
  while (true) {
    if (own.done == 0 && whole.wait_for(kRound) == std::future_status::ready) {
      own.done = 1;
      if (const auto found = whole.get(); !found) set_problem(found.error());
    }
    if (reading) own.read_bytes = reading->read_bytes.load();
    ASSAY_TRY_VOID(ranks.all_gather(&own, messages.data(), sizeof own, comm::ElementType::kU8));
    const auto busy = std::ranges::find(messages, 0, &VerifyMessage::done);
    if (busy == messages.end()) break;
    std::int64_t read_now = 0;
    for (const VerifyMessage& message : messages) read_now += message.read_bytes;
    if (read_now != std::exchange(read_before, read_now)) quiet.restart();
    if (quiet.elapsed_ns() > std::chrono::nanoseconds(timeout).count()) {
      return base::fail(base::failed_error(
          folder.string(),
          fmt::format("rank {} has read nothing of it for {:.3g} s", busy - messages.begin(),
                      std::chrono::duration<double>(timeout).count())));
    }
  }
  Verified verified;
  for (VerifyMessage& message : messages) {
    message.problem.back() = '\0';
    const std::string_view problem = message.problem.data();
    // Others may be able to read it, and falling back to an older one would lose progress.
    if (message.unreadable != 0) {
      return base::fail(base::unfit_error(fmt::format("rank {}", &message - messages.data()),
                                          std::string(problem)));
    }
    if (verified.damage.empty()) verified.damage = problem;
  }
  if (verified.damage.empty()) verified.whole = std::move(reading->checkpoint);
  return verified;
}

}  // namespace assay::train
