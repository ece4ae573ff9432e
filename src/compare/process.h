// One run of a command: started, timed, waited for. The time is the kernel's monotonic clock from
// before the start to when the process has ended, as the process descriptor tells; what is opened
// and made ready for it is so before.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/process/environment.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "compare/command.h"

namespace assay::compare {

// Ctrl-C and SIGTERM as something that can be waited for: while this lives they end nothing by
// themselves. One at a time.
class Interrupts {
 public:
  static base::Result<Interrupts> watch();
  Interrupts(Interrupts&&) = default;
  Interrupts& operator=(Interrupts&&) = delete;
  ~Interrupts();

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] bool happened() const;  // stays so
  // What came until now was heard: processes that are run from here on are ended by another one.
  void hear();

 private:
  explicit Interrupts(base::UniqueFd fd) : fd_(std::move(fd)) {}
  base::UniqueFd fd_;
  bool heard_ = false;
};

struct ProcessRequest {
  std::vector<std::string> words;
  base::Environment environment;
  std::filesystem::path out;  // where its output goes
  std::filesystem::path err;
  std::optional<base::Seconds> timeout = std::nullopt;
  bool time_output = false;  // note when output came, which makes it pass through us
};

struct OutputMoment {
  std::size_t end = 0;  // so many bytes had come
  double seconds = 0;   // by then, since the start
};

struct ProcessOutcome {
  double wall_s = 0;
  double cpu_s = 0;  // its own and of children it waited for
  int wait_status = 0;
  bool timed_out = false;
  bool interrupted = false;
  std::vector<OutputMoment> moments;      // of standard output
  std::vector<OutputMoment> err_moments;  // of standard error

  [[nodiscard]] bool ok() const { return wait_status == 0 && !timed_out && !interrupted; }
  // "exited with 1", "was killed by signal 9", "ran into the timeout"
  [[nodiscard]] std::string how() const;
};

// An interrupted or late process group is asked to end, and killed two seconds later.
base::Result<ProcessOutcome> run_process(const ProcessRequest& request,
                                         const Interrupts& interrupts);

}  // namespace assay::compare
