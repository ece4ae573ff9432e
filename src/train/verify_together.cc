#include "train/verify_together.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <future>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace assay::train {
namespace {

constexpr std::chrono::seconds kRound{1};

// What ranks tell each other.
struct Word {
  std::int64_t done = 0;
  std::int64_t read_bytes = 0;
  std::array<char, 504> damage{};  // empty: none
};

}  // namespace

base::Result<Verified> verify_together(const std::filesystem::path& folder,
                                       comm::Communicator& ranks, int threads,
                                       std::chrono::milliseconds patience) {
  auto opened = checkpoint::Checkpoint::open(folder);
  std::atomic<std::int64_t> read_bytes = 0;
  std::future<base::Result<void>> reading;
  if (opened) {
    const checkpoint::VerifyOptions share{
        .threads = static_cast<unsigned>(std::max(0, threads)),
        .progress = [&](std::int64_t bytes) { read_bytes += bytes; },
        .share = {static_cast<std::size_t>(ranks.rank()), static_cast<std::size_t>(ranks.ranks())}};
    reading = std::async(std::launch::async, [&, share] { return opened->verify(share); });
  }
  Word own;
  own.done = opened ? 0 : 1;
  const auto tell = [&](const base::Error& error) {
    const std::string line = error.line();
    std::memcpy(own.damage.data(), line.data(), std::min(line.size(), own.damage.size() - 1));
  };
  if (!opened) tell(opened.error());
  std::int64_t read_before = -1;
  base::Stopwatch quiet;
  std::vector<Word> words(static_cast<std::size_t>(ranks.ranks()));
  while (true) {
    if (own.done == 0 && reading.wait_for(kRound) == std::future_status::ready) {
      own.done = 1;
      if (const auto whole = reading.get(); !whole) tell(whole.error());
    }
    own.read_bytes = read_bytes.load();
    ASSAY_TRY_VOID(ranks.all_gather(&own, words.data(), sizeof own, comm::Dtype::kU8));
    const auto busy = std::ranges::find(words, 0, &Word::done);
    if (busy == words.end()) break;
    std::int64_t read_now = 0;
    for (const Word& word : words) read_now += word.read_bytes;
    if (read_now != std::exchange(read_before, read_now)) quiet.restart();
    if (quiet.elapsed_ns() > std::chrono::nanoseconds(patience).count()) {
      return base::fail(base::failed_error(
          folder.string(),
          fmt::format("rank {} has read nothing of it for {:.3g} s", busy - words.begin(),
                      std::chrono::duration<double>(patience).count())));
    }
  }
  Verified verified;
  for (Word& word : words) {
    word.damage.back() = '\0';
    if (verified.damage.empty()) verified.damage = word.damage.data();
  }
  if (verified.damage.empty()) verified.whole = *std::move(opened);
  return verified;
}

}  // namespace assay::train
