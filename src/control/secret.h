// The secret shared by the ranks of a job: from the environment, or from a file in the run folder
// that only the user can read.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "control/rank_assignment.h"

namespace assay::control {

// Erased from memory on destruction; never printed.
class Secret {
 public:
  explicit Secret(std::string text) : text_(std::move(text)) {}
  Secret(const Secret&) = default;
  Secret(Secret&&) = default;
  Secret& operator=(const Secret&) = default;
  Secret& operator=(Secret&&) = default;
  ~Secret();

  // 64 hexadecimal digits from the kernel's random source; a launcher passes it on as
  // ASSAY_JOB_SECRET.
  static Secret random();

  [[nodiscard]] std::string_view text() const { return text_; }

 private:
  std::string text_;
};

// ASSAY_JOB_SECRET, else the file `.assay-secret` in the run folder. Rank 0 creates the file if
// necessary; the others wait for it, at most `timeout`, because it may appear late on a shared file
// system.
base::Result<Secret> find_secret(const EnvironmentMap& environment,
                                 const std::filesystem::path& run_folder, int rank,
                                 std::chrono::milliseconds timeout);

// Call it when the job has ended. Does nothing if there is no file.
void remove_secret_file(const std::filesystem::path& run_folder);

}  // namespace assay::control
