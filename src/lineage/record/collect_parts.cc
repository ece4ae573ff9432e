#include "lineage/record/collect_parts.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <tuple>

#include "base/error.h"
#include "base/file.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookEvery{100};
constexpr std::chrono::seconds kWarnAfter{5};
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

std::string seconds_text(Clock::duration time) {
  return fmt::format("{:.4g} s", std::chrono::duration<double>(time).count());
}

// Lists the folder instead of checking each name, because network file systems cache negative
// lookups.
std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    names.insert(at->path().filename().string());
  }
  return names;
}

class PartCollector {
 public:
  PartCollector(const PartFolder& folder, const PartTimeouts& timeouts)
      : folder_(folder), timeouts_(timeouts), begun_(Clock::now()) {
    for (int rank = 1; rank < folder.part().ranks; ++rank) awaited_[rank].changed = begun_;
  }

  CollectedParts collect(const std::function<void(const std::string&)>& waiting) {
    bool warned = false;
    while (!awaited_.empty()) {
      names_ = names_in(folder_.part().folder);
      for (auto at = awaited_.begin(); at != awaited_.end();) {
        at = look_at(at->first, at->second) ? awaited_.erase(at) : std::next(at);
      }
      if (awaited_.empty()) break;
      if (!warned && Clock::now() - begun_ >= kWarnAfter) {
        warned = true;
        std::vector<int> ranks;
        for (const auto& [rank, other] : awaited_) ranks.push_back(rank);
        waiting(fmt::format("waiting for the part of the record from rank{} {}",
                            ranks.size() == 1 ? "" : "s", listed(ranks)));
      }
      std::this_thread::sleep_for(kLookEvery);
    }
    CollectedParts collected;
    for (auto& [rank, part] : parts_) collected.parts.push_back(std::move(part));
    for (auto& [rank, missed] : missing_) collected.missing.push_back(std::move(missed));
    return collected;
  }

 private:
  // A rank whose part has not been taken yet.
  struct Awaited {
    std::string text;  // its state as it was read last
    std::optional<PartFolder::State> state;
    Clock::time_point changed;
    // If a part exists but was not accepted: the file's identity, its recorder, and why.
    std::tuple<ino_t, off_t, std::int64_t, std::int64_t> refused_file{};
    std::string refused_recorder;
    std::string refused_why;
  };

  bool is_there(int rank, const char* kind) const {
    return names_.contains(folder_.file(rank, kind).filename());
  }

  bool missing(int rank, const Awaited& other, const std::string& why) {
    missing_.emplace(rank, rank_not_recorded(rank, other.state ? other.state->host : "", why));
    return true;
  }

  // True: this rank need not be waited for any longer.
  bool look_at(int rank, Awaited& other) {
    if (is_there(rank, "state")) {
      auto text = base::read_file(folder_.file(rank, "state"), kMostState);
      if (text && *text != other.text) {
        other.text = *std::move(text);
        other.state = PartFolder::parse_state(other.text);
        other.changed = Clock::now();
      }
    }
    if (is_there(rank, "part") && take_part(rank, other)) return true;
    return give_up(rank, other);
  }

  // False: the file is from another attempt; the part of this one may still arrive.
  bool take_part(int rank, Awaited& other) {
    const std::string path = folder_.file(rank, "part");
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return false;
    const std::tuple file{status.st_ino, status.st_size, std::int64_t{status.st_mtim.tv_sec},
                          std::int64_t{status.st_mtim.tv_nsec}};
    if (file == other.refused_file) return false;
    const auto bytes = base::read_file(path, kMostPart);
    auto part = bytes ? decode(*bytes, path) : base::Result<Part>(base::fail(bytes.error()));
    const auto refused = [&](std::string why) {
      // Another job or attempt may have left the file; then the right one will replace it.
      if (!folder_.part().may_be_old) return missing(rank, other, why);
      other.refused_file = file;
      other.refused_recorder = part ? part->recorder : "";
      other.refused_why = std::move(why);
      return false;
    };
    if (!part) return refused(part.error().line());
    if (part->rank != rank) return refused("its file belongs to another rank");
    if (part->run.empty() && folder_.part().may_be_old) {
      const char* why =
          "it ended before connecting to rank 0, so its part may belong to an earlier attempt";
      // The rank's current recorder wrote this part, so no other will come.
      if (other.state && other.state->recorder == part->recorder) return missing(rank, other, why);
      return refused(why);
    }
    if (!part->run.empty() && part->run != folder_.recorder()) {
      return refused("its part belongs to an earlier attempt");
    }
    parts_.emplace(rank, *std::move(part));
    return true;
  }

  bool give_up(int rank, const Awaited& other) {
    const auto now = Clock::now();
    // A recorder that left a part of another attempt does not count as heard from in this one.
    const bool is_heard = !other.text.empty() && (other.refused_why.empty() || !other.state ||
                                                  other.state->recorder != other.refused_recorder);
    const auto limit = is_heard ? timeouts_.heartbeat : timeouts_.first_heartbeat;
    const bool is_silent = now - other.changed >= limit;
    if (!is_silent && now - begun_ < timeouts_.total) return false;
    if (!other.refused_why.empty()) return missing(rank, other, other.refused_why);
    if (!is_heard) return missing(rank, other, "no report received");
    if (!is_silent) {
      return missing(
          rank, other,
          fmt::format("it was still writing its part after {}, the longest that rank 0 waits",
                      seconds_text(timeouts_.total)));
    }
    if (limit == limit.zero()) return missing(rank, other, "it did not deliver its part");
    return missing(
        rank, other,
        fmt::format("its part is missing, and nothing has changed for {}", seconds_text(limit)));
  }

  const PartFolder& folder_;
  const PartTimeouts timeouts_;
  const Clock::time_point begun_;
  std::set<std::string> names_;
  std::map<int, Awaited> awaited_;
  std::map<int, Part> parts_;
  std::map<int, store::Missed> missing_;
};

}  // namespace

CollectedParts collect_parts(const PartFolder& folder, const PartTimeouts& timeouts,
                             const std::function<void(const std::string&)>& waiting) {
  return PartCollector(folder, timeouts).collect(waiting);
}

}  // namespace assay::lineage
