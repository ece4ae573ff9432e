// A project in a temporary directory, `assay run` in the background, and its processes by role.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "support/process.h"

namespace assay::chaos {

class Project {
 public:
  Project();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  [[nodiscard]] support::ProcessResult assay(std::vector<std::string> arguments) const;
  [[nodiscard]] support::ProcessResult bash(const std::string& text) const;
  // `assay show last --json` when the last run is over; empty if it never is.
  [[nodiscard]] base::Json finished_run() const;
  // sqlite3's integrity check; "ok" if it passes.
  [[nodiscard]] std::string integrity() const;

 private:
  base::testing::TempDir temporary_;
  std::filesystem::path path_;
};

// A program in a separate process group whose output goes to files.
class Background {
 public:
  Background(const std::vector<std::string>& arguments, const std::filesystem::path& where);
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background();  // kills the group

  [[nodiscard]] pid_t pid() const { return pid_; }
  // The wait status; none if it is still there after so long.
  std::optional<int> wait(std::chrono::milliseconds most = std::chrono::seconds(30));
  [[nodiscard]] std::string out() const;
  [[nodiscard]] std::string err() const;

 private:
  base::testing::TempDir streams_;
  pid_t pid_ = 0;
  std::optional<int> status_;
};

// The child of `parent` with this name (comm); 0: none.
pid_t child_named(pid_t parent, const std::string& name);
// Waits until it exists; 0 after a timeout.
pid_t await_child(pid_t parent, const std::string& name);

bool eventually(const std::function<bool()>& condition,
                std::chrono::milliseconds most = std::chrono::seconds(20));

std::string read_file(const std::filesystem::path& path);
std::vector<std::string> lines(const std::string& text);

// A test that is done once under each tracer, where it works.
class WithTracer : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
};

inline constexpr const char* kCollector = "lineage-collect";
inline constexpr const char* kGuard = "assay-guard";

}  // namespace assay::chaos
