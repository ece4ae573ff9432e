#include "train/data/token_set.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"

namespace assay::data {
namespace {

namespace fs = std::filesystem;

base::Result<std::vector<std::string>> shards_in_folder(const std::string& folder,
                                                        const std::string& extension) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == extension) found.push_back(at->path().string());
  }
  if (error) return base::fail(base::system_error(folder, "cannot list", error.value()));
  if (found.empty()) {
    return base::fail(base::usage_error(
        folder, fmt::format("has no files that end in {}", extension),
        fmt::format("`assay data tokenize {} -o NAME.tokens` makes one of documents",
                    base::path_argument(folder))));
  }
  std::sort(found.begin(), found.end());
  return found;
}

base::Result<std::vector<std::string>> shards_by_pattern(const std::string& pattern) {
  glob_t matches{};
  const int outcome = ::glob(pattern.c_str(), 0, nullptr, &matches);
  std::vector<std::string> found(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  ::globfree(&matches);
  if (outcome != 0) return base::fail(base::usage_error(pattern, "matches no file"));
  return found;
}

bool has_tokenizer(const Shard& shard) {
  return shard.documents_header() && shard.documents_header()->definition_bytes > 0;
}

}  // namespace

base::Result<void> check_same_tokenizer(const Shard& shard, const Shard* other) {
  if (other == nullptr || !has_tokenizer(shard) ||
      shard.documents_header()->tokenizer == other->documents_header()->tokenizer) {
    return {};
  }
  return base::fail(base::usage_error(
      shard.where(),
      fmt::format("was made with the tokenizer {}, but {} with {}",
                  shard.documents_header()->tokenizer.hex().substr(0, 8), other->where(),
                  other->documents_header()->tokenizer.hex().substr(0, 8)),
      "shards of one set must be made with the same tokenizer"));
}

base::Result<std::vector<std::string>> shard_paths(const TokenSource& source) {
  const std::string extension = source.headerless ? ".bin" : ".tokens";
  std::vector<std::string> paths;
  for (const std::string& given : source.paths) {
    std::error_code ignored;
    std::vector<std::string> found = {given};
    if (fs::is_directory(given, ignored)) {
      ASSAY_TRY(found, shards_in_folder(given, extension));
    } else if (given.find_first_of("*?[") != std::string::npos && !fs::exists(given, ignored)) {
      ASSAY_TRY(found, shards_by_pattern(given));
    }
    paths.insert(paths.end(), found.begin(), found.end());
  }
  return paths;
}

base::Result<Shard> open_shard(const std::string& path, const TokenSource& source) {
  return source.headerless ? Shard::open_headerless(path, *source.headerless, source.vocabulary)
                           : Shard::open(path);
}

base::Result<TokenSet> TokenSet::open(const TokenSource& source, std::uint64_t sequence,
                                      std::optional<std::uint64_t> pack) {
  if (sequence == 0) return base::fail(base::usage_error({}, "the sequence length must not be 0"));
  TokenSet set;
  set.sequence_ = sequence;
  ASSAY_TRY(const std::vector<std::string> paths, shard_paths(source));
  if (paths.empty()) return base::fail(base::usage_error({}, "no token shards given"));
  set.shards_.reserve(paths.size());
  std::uint64_t windows = 0;
  for (const std::string& path : paths) {
    ASSAY_TRY(Shard shard, open_shard(path, source));
    if (!set.shards_.empty() && shard.vocabulary() != set.vocabulary()) {
      return base::fail(
          base::usage_error(path,
                            fmt::format("has a vocabulary of {}, but {} has one of {}",
                                        shard.vocabulary().value_or(0), set.shards_.front().where(),
                                        set.vocabulary().value_or(0)),
                            "shards of one set must be made with the same tokenizer"));
    }
    ASSAY_TRY_VOID(check_same_tokenizer(shard, set.with_tokenizer()));
    windows += shard.count() == 0 ? 0 : (shard.count() - 1) / sequence;
    set.shards_.push_back(std::move(shard));
    set.ends_.push_back(windows);
  }
  if (pack) {
    ASSAY_TRY(set.packed_, PackedRows::of(set.shards_, sequence + 1, *pack));
    windows = set.packed_->rows();
  }
  if (windows == 0) {
    return base::fail(base::usage_error(
        paths.front(),
        fmt::format("no shard has {} tokens (a sequence and its last target)", sequence + 1),
        "use more tokens or a shorter sequence"));
  }
  return set;
}

const Shard* TokenSet::with_tokenizer() const {
  const auto found = std::ranges::find_if(shards_, has_tokenizer);
  return found == shards_.end() ? nullptr : &*found;
}

std::uint64_t TokenSet::tokens() const {
  std::uint64_t sum = 0;
  for (const Shard& shard : shards_) sum += shard.count();
  return sum;
}

std::optional<std::uint64_t> TokenSet::vocabulary() const {
  return shards_.front().vocabulary();
}

base::Result<void> check_has_documents(const Shard& shard, const char* needed_by) {
  if (!shard.documents().empty()) return shard.check_documents();
  return base::fail(base::usage_error(
      shard.where(), "does not say where documents begin",
      fmt::format("{} needs shards of documents that `assay data tokenize` made", needed_by)));
}

void TokenSet::begins(std::uint64_t index, std::vector<std::uint64_t>& found) const {
  if (packed_) return packed_->begins(index, found);
  found.clear();
  const Window at = window(index);
  const auto starts = at.shard->documents();
  for (auto start = std::upper_bound(starts.begin(), starts.end(), at.first);
       start != starts.end() && *start <= at.first + sequence_; ++start) {
    // If the file is changed while it is read, positions must still stay within the row.
    const std::uint64_t last = found.empty() ? 0 : found.back();
    if (*start > at.first + last) found.push_back(*start - at.first);
  }
}

Window TokenSet::window(std::uint64_t index) const {
  const auto end = std::upper_bound(ends_.begin(), ends_.end(), index);
  const auto shard = static_cast<std::size_t>(end - ends_.begin());
  const std::uint64_t before = shard == 0 ? 0 : ends_[shard - 1];
  return {&shards_[shard], (index - before) * sequence_};
}

}  // namespace assay::data
