#include "lineage/record/part_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/file.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kTellEvery{1};
constexpr std::chrono::milliseconds kLookEvery{100};
constexpr std::chrono::seconds kSayAfter{5};
constexpr base::Bytes kMostState{4096};
constexpr base::Bytes kMostPart{std::int64_t{1} << 30U};

// "3", "1, 3 and 5"
std::string listed(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += fmt::format("{}", ranks[i]);
  }
  return text;
}

// A listing, not a question per name: network file systems answer those from a cache.
std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    names.insert(at->path().filename().string());
  }
  return names;
}

}  // namespace

fs::path PartFolder::file(int rank, const char* kind) const {
  return part_.folder / fmt::format("rank-{}.{}", rank, kind);
}

base::Result<PartFolder> PartFolder::open(const PartOf& part, const std::string& host) {
  PartFolder opened(part, host);
  std::error_code error;
  fs::create_directories(part.folder, error);
  if (error) {
    return base::fail(
        base::unfit_error(part.folder, "cannot be created: " + error.message(),
                          "ranks hand over there what they recorded; choose another --out"));
  }
  if (part.rank > 0) {
    ASSAY_TRY_VOID(base::replace_file(opened.file(part.rank, "state"), host + " 0\n"));
  } else if (part.may_be_old) {
    // No other rank of this job can have ended already.
    for (int rank = 1; rank < part.ranks; ++rank) fs::remove(opened.file(rank, "part"), error);
  }
  return opened;
}

base::Result<void> PartFolder::note_in(const fs::path& spool) const {
  return base::write_file(spool / "parts",
                          fmt::format("{} {}", part_.ranks, part_.folder.string()));
}

std::optional<PartFolder> PartFolder::of_interrupted(const fs::path& spool) {
  const auto note = base::read_file(spool / "parts", kMostState);
  if (!note) return std::nullopt;
  PartOf part;
  const auto [end, error] = std::from_chars(note->data(), note->data() + note->size(), part.ranks);
  if (error != std::errc{} || end == note->data() + note->size()) return std::nullopt;
  part.folder = std::string(end + 1, note->data() + note->size());
  return PartFolder(std::move(part), "");
}

store::Missed PartFolder::Missing::text() const {
  return {"rank", fmt::format("what rank {}{} did is not recorded: {}", rank,
                              host.empty() ? "" : " on " + host, why)};
}

void PartFolder::tell(std::int64_t count) const {
  // A rank that cannot say that it works may still hand its part over in time.
  static_cast<void>(
      base::replace_file(file(part_.rank, "state"), fmt::format("{} {}\n", host_, count)));
}

PartFolder::Working::Working(std::function<void(std::int64_t)> tell)
    : tell_(std::move(tell)), thread_([this] {
        std::unique_lock lock(mutex_);
        for (std::int64_t count = 1; !done_; ++count) {
          lock.unlock();
          tell_(count);
          lock.lock();
          wake_.wait_for(lock, kTellEvery, [this] { return done_; });
        }
      }) {}

PartFolder::Working::~Working() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

std::unique_ptr<PartFolder::Working> PartFolder::working() const {
  return std::make_unique<Working>([this](std::int64_t count) { tell(count); });
}

base::Result<void> PartFolder::hand_over(const Part& part) const {
  return base::replace_file(file(part_.rank, "part"), encode(part));
}

bool PartFolder::look_at(int rank, Awaited& other, const std::set<std::string>& names,
                         Clock::time_point begun, const Patience& patience,
                         Collected& collected) const {
  const auto now = Clock::now();
  if (names.contains(file(rank, "state").filename())) {
    auto state = base::read_file(file(rank, "state"), kMostState);
    if (state && *state != other.state) {
      other.state = *std::move(state);
      other.changed = now;
    }
  }
  const auto missing = [&](std::string why) {
    const std::string host = other.state.substr(0, other.state.find(' '));
    collected.missing.push_back({rank, host, std::move(why)});
    return true;
  };
  if (names.contains(file(rank, "part").filename())) {
    const std::string path = file(rank, "part");
    const auto bytes = base::read_file(path, kMostPart);
    if (!bytes) return missing(bytes.error().line());
    auto part = decode(*bytes, path);
    if (!part) return missing(part.error().line());
    if (part->rank != rank) return missing("its file is of another rank");
    collected.parts.push_back(*std::move(part));
    return true;
  }
  const auto limit = other.state.empty() ? patience.for_any : patience.without_change;
  if (now - other.changed < limit && now - begun < patience.in_all) return false;
  if (other.state.empty()) return missing("nothing was heard of it");
  return missing(fmt::format("it did not come, and nothing has changed for {:.3g} s",
                             std::chrono::duration<double>(limit).count()));
}

PartFolder::Collected PartFolder::collect(
    const Patience& patience, const std::function<void(const std::string&)>& waiting) const {
  Collected collected;
  std::map<int, Awaited> awaited;
  const auto begun = Clock::now();
  for (int rank = 1; rank < part_.ranks; ++rank) awaited[rank].changed = begun;
  bool said = false;
  while (!awaited.empty()) {
    const std::set<std::string> names = names_in(part_.folder);
    const auto now = Clock::now();
    for (auto at = awaited.begin(); at != awaited.end();) {
      at = look_at(at->first, at->second, names, begun, patience, collected) ? awaited.erase(at)
                                                                             : std::next(at);
    }
    if (awaited.empty()) break;
    if (!said && now - begun >= kSayAfter) {
      said = true;
      std::vector<int> ranks;
      for (const auto& [rank, other] : awaited) ranks.push_back(rank);
      waiting(fmt::format("waiting for what was recorded of rank{} {}",
                          ranks.size() == 1 ? "" : "s", listed(ranks)));
    }
    std::this_thread::sleep_for(kLookEvery);
  }
  const auto by_rank = [](const auto& a, const auto& b) { return a.rank < b.rank; };
  std::ranges::sort(collected.parts, by_rank);
  std::ranges::sort(collected.missing, by_rank);
  std::error_code ignored;
  fs::remove_all(part_.folder, ignored);
  return collected;
}

}  // namespace assay::lineage
