// Part: what one task of a job recorded about its own rank, when a launcher (srun, torchrun,
// mpirun) and not `assay train` started the ranks: each task sees only the processes and files of
// its node. The task of rank 0 records the run; the others write a part to a file (encode), which
// rank 0 reads (decode), merges (merge_parts.h) and stores. part_folder.h transfers the files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lineage/track/results.h"
#include "store/gpu_work.h"
#include "store/run.h"

namespace assay::lineage {

// What a rank's collector reports at its end, kept in memory: a training run has thousands of
// files, not millions.
struct Part : Results {
  template <class What>
  struct WithRule {
    What what;
    FilterRule rule;
  };

  int rank = 0;
  std::string host;
  std::string recorder;  // unique name of the process that recorded it
  std::string run;       // uid of the run it belongs to, from rank 0; empty: the ranks did not meet
  std::int64_t started_unix_ns = 0;
  std::optional<int> wait_status;  // of the rank's command
  std::int64_t dropped = 0;        // events
  store::Usage usage;
  store::GpuWork gpu;
  std::vector<WithRule<store::Input>> inputs;
  std::vector<WithRule<store::Output>> outputs;
  std::vector<WithRule<LeftOut>> files_left_out;
  std::vector<store::PathFact> facts;  // only on rank 0: not encoded
  std::vector<store::ProcessRecord> processes;
  std::vector<store::Missed> what_was_missed;  // makes the run incomplete
  std::vector<store::Missed> problems;         // does not

  void input(store::Input input, const FilterRule& rule) override {
    inputs.push_back({std::move(input), rule});
  }
  void output(store::Output output, const FilterRule& rule) override {
    outputs.push_back({std::move(output), rule});
  }
  void left_out(LeftOut file, const FilterRule& rule) override {
    files_left_out.push_back({std::move(file), rule});
  }
  void fact(store::PathFact fact) override { facts.push_back(std::move(fact)); }
  void process(store::ProcessRecord process) override { processes.push_back(std::move(process)); }
  void missed(store::Missed missed) override { what_was_missed.push_back(std::move(missed)); }
};

// The bytes of a part's file. A binary format, because paths are bytes and not text: numbers,
// strings with their length, lists with their size, and a digest of everything.
std::string encode(const Part& part);
// `name` is the file's, for messages. Refuses anything that encode() cannot have written, and
// values that no rank can have (part_check.h).
base::Result<Part> decode(std::string_view bytes, const std::string& name);

// An entry for the run's record: a rank is missing, and why. The host may be empty.
store::Missed rank_not_recorded(int rank, const std::string& host, const std::string& why);

}  // namespace assay::lineage
