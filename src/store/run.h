// RunRecord: one run of a command, and everything the store keeps about it. lineage fills one in,
// run_writer.h writes it, run_reader.h reads it.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "hash/digest.h"
#include "store/gpu_work.h"

namespace assay::store {

using RunId = std::int64_t;

enum class RunStatus {
  kRunning,
  kDone,         // ended with 0
  kFailed,       // ended with another code or by a signal
  kInterrupted,  // `assay run` was killed; what was recorded until then is kept
};

// "running", "done", …: in the store, in JSON and in tables.
std::string_view name_of(RunStatus status);

// A file as the run read it.
struct Input {
  std::string path;                    // absolute, without symbolic links
  std::optional<hash::Digest> blake3;  // none: it could not be read in time, see `missed`
  std::int64_t size = 0;
};

enum class OutputStatus {
  kCreated,
  kModified,
  kRenamed,  // it was there before under `from`, which is gone
  kLinked,   // a second name of `from`
  kDeleted,  // it was there before the run and is not there after it; no digest
};

// "created", "modified", …
std::string_view name_of(OutputStatus status);

// A file as the run left it.
struct Output {
  std::string path;
  std::optional<hash::Digest> blake3;
  std::int64_t size = 0;
  OutputStatus status = OutputStatus::kCreated;
  std::string from;
  // What the file held before the run first wrote to it, if it wrote into that: appended, changed
  // in place, cut short. None: nothing was there, it was replaced as a whole, or it is not known.
  std::optional<hash::Digest> before;
};

// What a run found out about a name, besides the contents of files.
struct PathFact {
  enum class Kind {
    kMadeFolder,    // it was not there before the run, which left it
    kFollowedLink,  // a symbolic link through which the run opened a file; it led to `target`
    kMadeLink,      // a symbolic link that the run left; it leads to `target`
    kListed,        // the run listed this folder, in which `names` were before it; "a", "b/"
    kAbsent,        // the run looked for this and nothing was there
    kNetwork,       // a name that it looked up, or an address that it connected to; `target`: how
                    // many bytes it got and sent over TCP, "1200 310", where that is known
    kInterpreter,   // it started this interpreter, which was `target`; `names`: language, version,
                    // build (lineage/packages/interpreter.h)
    kBegan,  // `path` is the project's folder, `target` what the clock of its file system said
             // when the run began, in nanoseconds since 1970
  };
  Kind kind = Kind::kMadeFolder;
  std::string path;
  std::string target = {};
  std::vector<std::string> names = {};
  auto operator<=>(const PathFact&) const = default;
};

// What kNetwork's `target` says.
struct Traffic {
  std::int64_t received = 0;
  std::int64_t sent = 0;
};
std::optional<Traffic> traffic_of(const PathFact& fact);
std::string to_target(const Traffic& traffic);

// "made-folder", "followed-link", …
std::string_view name_of(PathFact::Kind kind);

struct Process {
  std::int64_t pid = 0;
  std::int64_t parent = 0;
  std::vector<std::string> arguments;  // of the last exec; empty if it never called exec
  std::string program;
  std::int64_t started_ns = 0;  // since the run began
  std::optional<std::int64_t> ended_ns;
  std::optional<int> wait_status;
  std::string host = {};  // of a process on another node than the run's own; else empty
};

// A rule of the filter, and the files of this run that it decided on.
struct FileRule {
  std::string name;  // one word
  bool keep = false;
  std::string sentence;  // completes "it was kept/left out because …"
  std::int64_t files = 0;
  std::vector<std::string> paths;  // empty if there are too many
};

struct Missed {
  std::string what;
  std::string text;
};

// A package some file of which the run read.
struct Package {
  std::string manager;  // "dpkg", "pip", "conda", "cuda"
  std::string name;
  std::string version;
};

struct Git {
  std::string root;
  std::string commit;  // empty: no commit yet
  std::string branch;  // empty: detached
  std::string remote;
  bool dirty = false;
  // A patch for `git apply` from the commit to the state at the run's start, untracked files
  // included. Stored compressed by content in its own table; empty when not dirty.
  std::string diff;
  std::vector<std::string> left_out;  // not in the diff, and why: "data.bin (3.2 MiB)"
};

struct Usage {
  double user_s = 0;
  double system_s = 0;
  std::int64_t max_rss_bytes = 0;  // of the largest process
  std::int64_t read_bytes = 0;     // from devices
  std::int64_t written_bytes = 0;
};

// Moving Json does not throw, which the analysis does not see.
struct Context {  // NOLINT(bugprone-exception-escape)
  std::string user;
  std::string host;
  std::optional<Git> git;
  std::map<std::string, std::string> environment;  // secrets already redacted
  base::Json machine;                              // machine::to_json
  std::vector<Package> packages;
};

// Of a run that only tells about other runs, as `assay report` does: in RunRecord::options. Such a
// run makes no stage, since nothing but the store says when the same page would be another.
inline constexpr std::string_view kAboutRuns = "--about-runs";

struct RunRecord {  // NOLINT(bugprone-exception-escape): as Context
  RunId id = 0;
  std::string uid;  // 16 random hexadecimal digits: names it across stores
  std::vector<std::string> command;
  std::string directory;
  // Files it got as standard input, output and error, in the shell's notation: "0</p/in",
  // "1>/p/out", "2>>/p/log". They are not in the command's arguments.
  std::vector<std::string> redirects;
  // Options of `assay run`, for running the stage again: "--tracer=ptrace",
  // "--keep=*.so"; or kAboutRuns.
  std::vector<std::string> options;
  std::string name;    // --name, or empty
  bool build = false;  // `run --build`: a stage that prepares the environment
  RunStatus status = RunStatus::kRunning;
  std::optional<int> exit_code;  // as a shell would give it: 128+N for signal N
  std::optional<int> signal;
  std::string tracer;
  bool complete = false;
  std::int64_t dropped = 0;
  std::int64_t started_unix_ns = 0;
  double duration_s = 0;
  // 1, 2, … within the project, given when the run is finished; a repeated stage keeps its number.
  // 0: the run did not succeed, and makes no stage.
  std::int64_t stage = 0;
  std::int64_t repeats = 0;  // `run @N`: the stage that this is to be, whatever it does; not stored
  bool superseded = false;   // a later run is the current one of its stage
  // The process that records it, so that a run whose recorder exited is recognised.
  std::int64_t collector_pid = 0;
  std::int64_t collector_start_ticks = 0;  // /proc/PID/stat field 22
  std::string spool;                       // folder of the event log while it runs
  // Numbers of rows in the store; lists of runs leave the vectors empty.
  std::int64_t input_count = 0;
  std::int64_t output_count = 0;
  std::int64_t process_count = 0;

  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<PathFact> facts;
  std::vector<Process> processes;
  std::vector<Missed> missed;
  std::vector<FileRule> rules;
  Context context;
  Usage usage;
  GpuWork gpu;
  std::vector<std::string> labels;
};

bool is_about_runs(const RunRecord& run);

// When the run began by the clock that files' times are of: a file server has its own. By this
// machine's clock where that was not recorded.
std::int64_t began_file_ns(const RunRecord& run);

}  // namespace assay::store
