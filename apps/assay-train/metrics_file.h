// metrics.jsonl: a line for each step that a run has made, and for each validation. A run that goes
// on after step N makes the steps after it again, so their lines are dropped first.
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
  // Made if it is missing; nothing is dropped yet.
  static base::Result<MetricsFile> open(std::filesystem::path path);

  // What is there becomes metrics.1.jsonl, or has the next number that is free.
  base::Result<void> set_aside();
  // Keeps the lines of steps before this one, and of these only whole ones: a killed run may have
  // left half a line.
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
