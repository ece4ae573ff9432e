#include "train/data/documents/unit_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "train/data/documents/parquet_source.h"

namespace assay::data {
namespace {

constexpr std::size_t kLongestLine = std::size_t{1} << 30;
// How far back to look for a good place to cut a text.
constexpr std::size_t kCutSearch = std::size_t{64} << 10;

// Where to cut a text that continues: before a line that begins with something visible, where most
// tokenizers begin a word; otherwise between characters. The resulting tokens do not depend on it.
std::size_t cut_of(std::string_view text) {
  const std::size_t least = text.size() - std::min(text.size() / 2, kCutSearch);
  for (std::size_t at = text.size() - 1; at > least; --at) {
    if (text[at - 1] == '\n' && !base::is_space(text[at])) return at;
  }
  std::size_t at = text.size() - 1;
  while (at > text.size() - 4 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
  return at;
}

}  // namespace

base::Result<void> UnitReader::open() {
  const InputFile& file = (*files_)[next_.file];
  ASSAY_TRY(source_, file.format == DocumentFormat::kParquet ? open_parquet(file, column_, stop_)
                                                             : open_bytes(file, stop_));
  buffer_.clear();
  at_end_ = false;
  // Compressed files cannot be entered in the middle; decompressing is fast compared with
  // tokenizing.
  for (std::uint64_t skipped = 0; skipped < next_.offset;) {
    std::string part(
        static_cast<std::size_t>(std::min<std::uint64_t>(unit_bytes_, next_.offset - skipped)),
        '\0');
    ASSAY_TRY(const std::size_t count, source_->read(part));
    if (count == 0) {
      return base::fail(
          base::failed_error((*files_)[next_.file].path, "was truncated while it was tokenized"));
    }
    skipped += count;
  }
  return {};
}

// Reads until the buffer has `size` bytes or the file ends.
base::Result<void> UnitReader::fill(std::size_t size) {
  if (at_end_ || buffer_.size() >= size) return {};
  const std::size_t before = buffer_.size();
  buffer_.resize(size);
  ASSAY_TRY(const std::size_t count, source_->read(std::span(buffer_).subspan(before)));
  buffer_.resize(before + count);
  at_end_ = count < size - before;
  return {};
}

TextUnit UnitReader::take(std::size_t size, bool ends) {
  TextUnit unit{.begin = next_, .ends = ends, .disk_read = source_->file_bytes()};
  if (size == buffer_.size()) {
    unit.text = std::exchange(buffer_, {});
  } else {
    unit.text = buffer_.substr(0, size);
    buffer_.erase(0, size);
  }
  next_.offset += size;
  next_.inside = !ends;
  return unit;
}

base::Result<TextUnit> UnitReader::next_text() {
  ASSAY_TRY_VOID(fill(unit_bytes_ + 1));  // one more, to know whether this is the end
  const bool ends = at_end_;
  return take(ends ? buffer_.size() : cut_of(buffer_), ends);
}

base::Result<TextUnit> UnitReader::next_lines() {
  std::size_t size = unit_bytes_;
  std::size_t end = std::string::npos;
  while (true) {
    ASSAY_TRY_VOID(fill(size));
    end = buffer_.rfind('\n');
    if (end != std::string::npos || at_end_) break;
    if (size >= kLongestLine) {
      return base::fail(
          base::usage_error(fmt::format("{}: row {}", (*files_)[next_.file].path, next_.row + 1),
                            "is longer than 1 GiB", "is this a file of JSON lines?"));
    }
    size *= 2;
  }
  TextUnit unit = take(at_end_ || end == std::string::npos ? buffer_.size() : end + 1, true);
  next_.row += static_cast<std::uint64_t>(std::ranges::count(unit.text, '\n'));
  return unit;
}

base::Result<std::optional<TextUnit>> UnitReader::next() {
  if (next_.file == files_->size()) return std::nullopt;
  if (source_ == nullptr) ASSAY_TRY_VOID(open());
  const bool lines = has_rows((*files_)[next_.file].format);
  ASSAY_TRY(TextUnit unit, lines ? next_lines() : next_text());
  if (at_end_ && buffer_.empty()) {
    next_ = {.file = next_.file + 1};
    source_.reset();
  }
  unit.end = next_;
  return std::optional(std::move(unit));
}

}  // namespace assay::data
