// Streams: the files that are a run's standard input, output and error, and the rule that says when
// one of them is also an output, and when it is only a log.
//
// A file that a run wrote through its standard output or error is an output of the run if
//   - a run reads it: this one, or another that found there what some run left; or
//   - it is the run's only result: the run leaves no other file, and if both streams are files,
//     standard output counts; or
//   - the run changes what another run left there as its output.
// A file may have been handed down: the program that started `assay run` writes to it as well (a
// job's log), or Assay itself does. Then it is an only result if this run was the first to write
// there, and no change of a result that was handed down too. Everything else is a log: it is stored
// as a stream (run_output.stream), nothing depends on it, and it becomes an output when a run reads
// it.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/database.h"
#include "store/run.h"

namespace assay::store {

// That a stream was handed down, in RunRecord::redirects before the path: "1>&/p/out" if this run
// was the first to write through it, "1>>&/p/out" if others were.
inline constexpr const char* kHandedDown = "&";

// The files that were its standard input, output and error.
std::set<std::string> stream_paths(const std::vector<std::string>& redirects);
std::set<std::string> stream_paths(const RunRecord& run);
bool is_standard_output(const std::vector<std::string>& redirects, std::string_view path);
// Those that were handed down.
std::set<std::string> handed_down_paths(const std::vector<std::string>& redirects);

// For RunWriter, which holds the files of streams back until all other files are written.
struct RunStreams {
  RunId run = 0;
  std::vector<std::string> redirects;
  bool leaves_files = false;  // that are not streams, or streams that are outputs
};
// Whether this file of a stream is an output. Standard output must be asked about first.
base::Result<bool> is_output(Database& database, const RunStreams& streams, const Output& file);
// The run has read files: those that were streams of other runs are outputs of these now. `inputs`:
// how many it has read.
base::Result<void> note_read_streams(Database& database, RunId run, std::int64_t inputs);

}  // namespace assay::store
