#include "train/checkpoint/rank_note.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "train/checkpoint/manifest_json.h"
#include "train/checkpoint/output_file.h"

namespace assay::checkpoint {
namespace {

constexpr base::Bytes kMostNoteBytes{std::int64_t{64} << 20};

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kShortestPause{2};
constexpr std::chrono::milliseconds kLongestPause{200};

struct Contents {
  std::set<std::string> names;
  std::int64_t bytes = 0;
};

// Lists the folder instead of asking for each name: network file systems answer those from a cache.
base::Result<Contents> contents_of(const fs::path& folder) {
  Contents contents;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    const auto size = at->file_size(ignored);
    if (!ignored) contents.bytes += static_cast<std::int64_t>(size);
    contents.names.insert(at->path().filename().string());
  }
  if (error) return base::fail(file_error(folder.string(), "cannot list", error.value()));
  return contents;
}

// "rank 3", "ranks 1, 3, 4 and 7 more"
std::string ranks_text(const std::vector<std::int64_t>& ranks) {
  constexpr std::size_t kMostNamed = 8;
  const auto named = std::span(ranks).first(std::min(ranks.size(), kMostNamed));
  std::string text = fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(named, ", "));
  if (ranks.size() > kMostNamed) text += fmt::format(" and {} more", ranks.size() - kMostNamed);
  return text;
}

class Collector {
 public:
  Collector(const fs::path& folder, const Awaited& awaited, const WriteOptions& options)
      : folder_(folder),
        awaited_(awaited),
        options_(options),
        notes_(static_cast<std::size_t>(awaited.ranks)) {}

  base::Result<std::vector<RankNote>> collect() {
    auto pause = kShortestPause;
    while (true) {
      ASSAY_TRY(const Contents contents, contents_of(folder_));
      ASSAY_TRY(const bool some, read_new(contents));
      if (some || contents.bytes != bytes_) {
        bytes_ = contents.bytes;
        quiet_ = base::Stopwatch();
      }
      const std::vector<std::int64_t> missing = missing_ranks();
      if (missing.empty()) return checked();
      ASSAY_TRY_VOID(check_timeout(missing));
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, kLongestPause);
    }
  }

 private:
  base::Result<bool> read_new(const Contents& contents) {
    bool some = false;
    for (std::int64_t rank = 0; rank < awaited_.ranks; ++rank) {
      auto& note = notes_[static_cast<std::size_t>(rank)];
      if (note || !contents.names.contains(rank_note_name(rank))) continue;
      ASSAY_TRY(note, read_note(folder_, rank));
      some = true;
    }
    return some;
  }

  [[nodiscard]] std::vector<std::int64_t> missing_ranks() const {
    std::vector<std::int64_t> missing;
    for (std::int64_t rank = 0; rank < awaited_.ranks; ++rank) {
      if (!notes_[static_cast<std::size_t>(rank)]) missing.push_back(rank);
    }
    return missing;
  }

  base::Result<void> check_timeout(const std::vector<std::int64_t>& missing) const {
    const auto timeout = options_.stop.stop_requested()
                             ? std::min(options_.timeout, options_.timeout_when_stopping)
                             : options_.timeout;
    if (quiet_.elapsed_ns() < std::chrono::nanoseconds(timeout).count()) return {};
    return base::fail(base::failed_error(
        folder_.string(),
        fmt::format("{} of {} did not write a part, and nothing has changed for {:.3g} s",
                    ranks_text(missing), awaited_.ranks,
                    std::chrono::duration<double>(timeout).count()),
        "see the logs of these ranks"));
  }

  base::Result<std::vector<RankNote>> checked() {
    std::vector<RankNote> all;
    for (auto& note : notes_) {
      if (!note->failure.empty()) {
        return base::fail(base::failed_error(fmt::format("rank {}", note->rank), note->failure));
      }
      if (note->ranks != awaited_.ranks || note->step != awaited_.step) {
        return base::fail(base::failed_error(
            folder_.string(), fmt::format("rank {} wrote step {} as one of {} ranks", note->rank,
                                          note->step, note->ranks)));
      }
      all.push_back(*std::move(note));
    }
    return all;
  }

  const fs::path& folder_;
  const Awaited& awaited_;
  const WriteOptions& options_;
  std::vector<std::optional<RankNote>> notes_;
  std::int64_t bytes_ = 0;
  base::Stopwatch quiet_;  // since something changed
};

}  // namespace

std::string rank_note_name(std::int64_t rank) {
  return fmt::format("rank-{:05}.json", rank);
}

base::Result<void> leave_note(const std::filesystem::path& folder, const RankNote& note) {
  const std::string text = sealed_text({{"format_version", kPiecesFormatVersion},
                                        {"rank", note.rank},
                                        {"ranks", note.ranks},
                                        {"step", note.step},
                                        {"failure", note.failure},
                                        {"files", files_json(note.files)},
                                        {"parts", parts_json(note.parts)}});
  const std::filesystem::path path = folder / rank_note_name(note.rank);
  const std::filesystem::path partial = path.string() + ".partial";
  ASSAY_TRY_VOID(write_small_file(partial, text));
  if (::rename(partial.c_str(), path.c_str()) == 0) return {};
  return base::fail(file_error(path.string(), "cannot create", errno));
}

base::Result<RankNote> read_note(const std::filesystem::path& folder, std::int64_t rank) {
  const std::filesystem::path path = folder / rank_note_name(rank);
  ASSAY_TRY(const std::string text, base::read_file(path, kMostNoteBytes));
  ASSAY_TRY(const base::Json document, unsealed(text, path.string()));
  const auto ranks = count_in(document, "ranks");
  const auto step = count_in(document, "step");
  const auto failure = text_in(document, "failure");
  if (count_in(document, "rank") != rank || !ranks || !step || !failure) {
    return base::fail(bad_manifest(path.string(), "is not the note of this rank"));
  }
  RankNote note{.rank = rank, .ranks = *ranks, .step = *step, .failure = *failure};
  ASSAY_TRY(note.files, files_in(document, path.string()));
  ASSAY_TRY(note.parts, parts_in(document, note.files, path.string()));
  return note;
}

base::Result<std::vector<RankNote>> collect_notes(const fs::path& folder, const Awaited& awaited,
                                                  const WriteOptions& options) {
  return Collector(folder, awaited, options).collect();
}

}  // namespace assay::checkpoint
