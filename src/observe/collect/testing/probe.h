// Probe: a child that makes system calls one at a time under ptrace, so that a test can compare
// what effect_of() predicts before each with what the kernel then does.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/testing/temp_dir.h"
#include "observe/collect/call/stopped_call.h"

namespace assay::collect::testing {

struct ProbeResult {
  std::optional<CallEffect> effect;
  long result = 0;  // of the system call: negative errno on failure
};

// Runs `act` in a child and stops it at the first call of calls_to_stop() after it began; `prepare`
// runs in the child before, unobserved. After an exec the child continues only until its result is
// known.
ProbeResult probe(
    const std::function<void()>& act, const std::function<void()>& prepare = [] {});

// As lines, "T" standing for `root`: "change content T/a", "write T/a", "rename T/a T/b exchange".
std::vector<std::string> lines_of(const std::optional<CallEffect>& effect,
                                  const std::filesystem::path& root);

// A temporary directory with canonical path, and files in it.
class ProbeFolder {
 public:
  ProbeFolder();
  [[nodiscard]] std::string path(const std::string& name = "") const;
  std::string file(const std::string& name, const std::string& content = "content") const;
  std::string directory(const std::string& name) const;
  std::string link(const std::string& name, const std::string& target) const;

  // What effect_of() predicts for the first path-class call of `act`, as lines.
  std::vector<std::string> effect_lines(
      const std::function<void()>& act, const std::function<void()>& prepare = [] {});
  ProbeResult seen;  // by the last effect_lines()

 private:
  base::testing::TempDir directory_;
  std::filesystem::path root_;
};

}  // namespace assay::collect::testing
