// Child: a helper program of ours (git), run without a shell, its output captured, killed with
// everything it started when it takes too long or says too much.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::lineage {

struct ChildOptions {
  std::vector<std::string> words;  // the first is looked up in PATH
  std::vector<std::string> environment;
  std::filesystem::path directory;
  std::string input = {};  // what it reads; nothing: /dev/null
  std::chrono::milliseconds timeout{10'000};
  std::size_t output_limit = std::size_t{256} << 20;
};

struct ChildResult {
  int exit_code = 0;  // 128+N for signal N
  std::string output;
  std::string errors;      // the first 64 KiB
  bool timed_out = false;  // and was killed
  bool too_long = false;   // said more than the limit, and was killed
  [[nodiscard]] bool ok() const { return exit_code == 0 && !timed_out && !too_long; }
};

class Child {
 public:
  // An error when the program cannot be started: most often, it is not installed.
  static base::Result<Child> start(ChildOptions options);
  // Reads to the end and waits.
  ChildResult finish();

  Child(Child&&) noexcept;
  Child& operator=(Child&&) noexcept;
  ~Child();  // kills it if nobody waited

 private:
  Child() = default;
  void end_it();

  pid_t pid_ = -1;
  base::UniqueFd output_, errors_;
  std::chrono::steady_clock::time_point deadline_;
  std::size_t output_limit_ = 0;
};

// start() and finish().
base::Result<ChildResult> run_child(ChildOptions options);

}  // namespace assay::lineage
