// UnitReader: reads documents in units that can be tokenized independently, in file order. A unit
// is a whole text, a part of a long text, or some lines of JSON.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "train/data/documents/byte_source.h"
#include "train/data/documents/input_files.h"

namespace assay::data {

// A position in the files from which reading can be resumed.
struct ReadPosition {
  std::size_t file = 0;
  std::uint64_t offset = 0;  // in the decompressed bytes
  std::uint64_t row = 0;     // JSON lines: complete rows before this position
  bool inside = false;       // in the middle of a document
  bool operator==(const ReadPosition&) const = default;
};

struct TextUnit {
  std::string text;
  ReadPosition begin;
  ReadPosition end;             // where the next unit begins
  bool ends = true;             // for text: its document ends with this unit
  std::uint64_t disk_read = 0;  // bytes of the file read so far
};

class UnitReader {
 public:
  // Units have about `unit_bytes` (at least 8); lines are not divided. `column` is the one to read
  // from Parquet files. The files, and `stop`, which ends reading from pipes, must outlive the
  // reader.
  UnitReader(const std::vector<InputFile>& files, ReadPosition from, std::size_t unit_bytes,
             std::string column, const std::atomic<bool>* stop = nullptr)
      : files_(&files),
        next_(from),
        unit_bytes_(unit_bytes),
        column_(std::move(column)),
        stop_(stop) {}

  // Nothing after the last.
  base::Result<std::optional<TextUnit>> next();

 private:
  base::Result<void> open();
  base::Result<void> fill(std::size_t size);
  base::Result<TextUnit> next_text();
  base::Result<TextUnit> next_lines();
  TextUnit take(std::size_t size, bool ends);

  const std::vector<InputFile>* files_;
  ReadPosition next_;
  std::size_t unit_bytes_;
  std::string column_;
  const std::atomic<bool>* stop_;
  std::unique_ptr<ByteSource> source_;  // of the current file, once it is open
  std::string buffer_;                  // read and not yet returned
  bool at_end_ = false;                 // nothing follows the buffer
};

}  // namespace assay::data
