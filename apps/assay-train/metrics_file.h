// metrics.jsonl: a line for each step and each validation of a run. A run that is resumed after
// step N repeats the steps after it, so their lines are removed first.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>

#include "base/result.h"

namespace assay::cli {

class MetricsFile {
 public:
  // Created if missing; nothing is removed yet.
  static base::Result<MetricsFile> open(std::filesystem::path path);

  // Renames the existing file to metrics.1.jsonl, or the next free number.
  base::Result<void> set_aside();
  // Keeps only the complete lines of steps before this one: a killed run may have left half a line.
  base::Result<void> begin(std::int64_t first_step);
  // Flushed, for programs that follow the file.
  void write(std::string_view line);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  explicit MetricsFile(std::filesystem::path path) : path_(std::move(path)) {}
  base::Result<void> append();

  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace assay::cli
