// Journal: DIR/runs.jsonl. Its first line is the experiment, then comes a line per run, written
// before the next run starts, and one for every stretch in which the host misbehaved. A block that
// is done is on the disk; of one that is not, no pair could be made anyway. All results are made
// from it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "compare/experiment.h"

namespace assay::compare {

struct RunRecord {
  std::int64_t run = 0;    // from 1, in the order in which they ran
  std::int64_t block = 0;  // from 0
  std::size_t arm = 0;     // place in the experiment: the last is the second baseline
  std::string started;     // UTC
  double wall_s = 0;
  double cpu_s = 0;
  double value = 0;  // of the metric
  std::optional<double> quality;
  std::vector<StepValue> steps;
  // With steps whose lines were seen to come:
  std::optional<double> startup_s;  // until the first step began
  std::optional<double> after_s;    // from the last step to the end
};

struct HostMark {
  std::int64_t first_block = 0;
  std::int64_t last_block = 0;
  std::vector<std::string> what;
};

struct Measured {
  Experiment experiment;
  std::vector<RunRecord> runs;
  std::vector<HostMark> marks;

  [[nodiscard]] std::int64_t next_block() const;
};

class Journal {
 public:
  // In a folder that is made, and must not have one already.
  static base::Result<Journal> create(const std::filesystem::path& directory,
                                      const Experiment& experiment);
  // One that is there, with what it says in `measured`; a line that was cut short is taken off.
  static base::Result<Journal> open(const std::filesystem::path& directory, Measured& measured);

  base::Result<void> add(const RunRecord& run);
  base::Result<void> add(const HostMark& mark);
  // What was added survives the machine from here on; the process's end it survives at once.
  base::Result<void> sync();
  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }
  // DIR/out/0007-B.out, and .err
  [[nodiscard]] std::filesystem::path output(std::int64_t run, const std::string& arm,
                                             const char* extension) const;

 private:
  Journal(std::filesystem::path directory, base::UniqueFd fd)
      : directory_(std::move(directory)), fd_(std::move(fd)) {}
  base::Result<void> append(const base::Json& line);

  std::filesystem::path directory_;
  base::UniqueFd fd_;
};

base::Json to_json(const RunRecord& run);

// What the journal in a folder says, for who only looks: nothing is locked or changed, and a line
// that is being written is left out.
base::Result<Measured> read_journal(const std::filesystem::path& directory);

}  // namespace assay::compare
