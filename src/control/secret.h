// The secret that the ranks of a job share: from the environment, or from a file in the run folder
// that only the user can read.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "control/place.h"

namespace assay::control {

// Wiped when it goes; never printed.
class Secret {
 public:
  explicit Secret(std::string text) : text_(std::move(text)) {}
  Secret(const Secret&) = default;
  Secret(Secret&&) = default;
  Secret& operator=(const Secret&) = default;
  Secret& operator=(Secret&&) = default;
  ~Secret();

  // 64 hexadecimal digits from the kernel's random bytes; for a launcher, which hands it on as
  // ASSAY_JOB_SECRET.
  static Secret random();

  [[nodiscard]] std::string_view text() const { return text_; }

 private:
  std::string text_;
};

// ASSAY_JOB_SECRET, else the file `.assay-secret` in the run folder. Rank 0 makes the file if there
// is none; the others wait for it, at most `timeout`: a shared file system may show it late.
base::Result<Secret> find_secret(const EnvironmentMap& environment,
                                 const std::filesystem::path& run_folder, int rank,
                                 std::chrono::milliseconds timeout);

// When the job has ended. It is no error if there is none.
void remove_secret_file(const std::filesystem::path& run_folder);

}  // namespace assay::control
