// RunRecord: one run of a command, and everything the store keeps about it. lineage fills it in,
// run_writer.h writes it, run_reader.h reads it.
#pragma once

#include <sys/stat.h>

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
  kDone,         // exited with 0
  kFailed,       // exited with another code, or was killed by a signal
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
  kRenamed,  // existed before the run under the name `from`, which is gone
  kLinked,   // a second name of `from`
  kDeleted,  // existed before the run and not after it; no digest
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
  // The content before the run's first write, if the run modified it in place (appended, overwrote,
  // truncated to a part). None: there was no file, it was replaced as a whole, or it is not known.
  std::optional<hash::Digest> before;
};

// What a run found out about a path (or a network name), other than the content of a file.
struct PathFact {
  enum class Kind {
    kMadeFolder,    // the run created this folder, and it still existed at the end
    kFollowedLink,  // the run opened a file through this symbolic link, which led to `target`
    kMadeLink,      // the run left this symbolic link, which leads to `target`
    kListed,        // the run listed this folder and saw `names`: "a", "b/"; of a link also its
                    // name with kListedLink; `target`: one of kListed… below, or nothing
    kAbsent,        // the run looked for this file and it did not exist
    kQueried,       // the run asked about this project file without opening it; `target`: what it
                    // was told (queried_state()), or kQueriedMeanwhile
    kNetwork,       // a host name that was looked up, or an address that was connected to;
                    // `target`: bytes received and sent over TCP, "1200 310", if known
    kInterpreter,   // the run started this interpreter, which resolved to `target`; `names`:
                    // language, version, build (lineage/packages/interpreter.h)
    kBegan,  // `path` is the project's folder, `target` the time of its file system's clock when
             // the run began, in nanoseconds since 1970
  };
  Kind kind = Kind::kMadeFolder;
  std::string path;
  std::string target = {};
  std::vector<std::string> names = {};
  auto operator<=>(const PathFact&) const = default;
};

// The run made the folder itself.
inline constexpr std::string_view kListedOwn = "made";
// Another program changed it while the run ran.
inline constexpr std::string_view kListedMeanwhile = "changed";
// Follows the name of a symbolic link, which no name can end with.
inline constexpr const char* kListedLink = "/@";
// Probably to look names up (make, Python's packages): other names did not matter.
inline constexpr std::string_view kListedToFind = "to-find";
// The file was changed by another program while the run ran: what the run was told is not known.
inline constexpr std::string_view kQueriedMeanwhile = "changed";
// "file", "folder" or "other"; with its size "file 120".
std::string queried_state(const struct stat& status, bool size);

// A kNetwork fact's `target`, decoded.
struct Traffic {
  std::int64_t received = 0;
  std::int64_t sent = 0;
};
std::optional<Traffic> traffic_of(const PathFact& fact);
std::string to_target(const Traffic& traffic);

// "made-folder", "followed-link", …
std::string_view name_of(PathFact::Kind kind);

struct ProcessRecord {
  std::int64_t pid = 0;
  std::int64_t parent = 0;
  std::vector<std::string> arguments;  // of the last exec; empty if it never called exec
  std::string program;
  std::int64_t started_ns = 0;  // since the run began
  std::optional<std::int64_t> ended_ns;
  std::optional<int> wait_status;
  std::string host = {};  // for a process on another node than rank 0's; else empty
};

// A rule of the filter that decides which files are recorded, and the files of this run that it
// decided.
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

// The run read a pipe or socket as its standard input. Unlike a file, it cannot be given to the
// command again.
Missed missed_stdin();
// It may have, or may not: the run is not complete, and can be repeated.
Missed unknown_stdin();

// A package of which the run read at least one file.
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
  // A patch for `git apply` from the commit to the working tree at the run's start, untracked files
  // included. Stored as a document (document.h); empty when not dirty.
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

// Moving Json does not throw, but clang-tidy cannot tell.
struct Context {  // NOLINT(bugprone-exception-escape)
  std::string user;
  std::string host;
  std::optional<Git> git;
  std::map<std::string, std::string> environment;  // secrets already redacted
  base::Json machine;                              // machine::to_json
  std::vector<Package> packages;
};

// In RunRecord::options of a run that only reports on other runs, as `assay report` does. Such a
// run does not become a stage: its result depends on the store, so staleness of its files means
// nothing.
inline constexpr std::string_view kAboutRuns = "--about-runs";

struct RunRecord {  // NOLINT(bugprone-exception-escape): as Context
  RunId id = 0;
  std::string uid;  // 16 random hexadecimal digits; unique across stores
  std::vector<std::string> command;
  std::string directory;
  // Files that were its standard input, output and error, in the shell's notation: "0</p/in",
  // "1>/p/out", "2>>/p/log"; "1>&/p/job.log": handed down (streams.h). They are not in the
  // command's arguments.
  std::vector<std::string> redirects;
  // Options of `assay run`, for running the stage again: "--tracer=ptrace",
  // "--keep=*.so"; or kAboutRuns.
  std::vector<std::string> options;
  std::string name;    // --name, or empty
  bool build = false;  // `run --build`: a stage that prepares the environment
  RunStatus status = RunStatus::kRunning;
  std::optional<int> exit_code;  // as a shell reports it: 128+N for signal N
  std::optional<int> signal;
  std::string tracer;
  bool complete = false;
  std::int64_t dropped = 0;
  std::int64_t started_unix_ns = 0;
  double duration_s = 0;  // of an interrupted run until its last recorded event
  // 1, 2, … within the project, assigned when the run is finished; a repeated stage keeps its
  // number. 0: the run is not a run of any stage, for example because it failed.
  std::int64_t stage = 0;
  std::int64_t repeats = 0;  // `run @N`: the stage that this run belongs to in any case; not stored
  bool superseded = false;   // a later run is the current run of its stage
  // The process that records the run; used to detect a run whose recorder has exited.
  std::int64_t collector_pid = 0;
  std::int64_t collector_start_ticks = 0;  // /proc/PID/stat field 22
  std::string spool;                       // folder of the event log while it runs
  // Numbers of rows in the store. Functions that list runs set these and leave the vectors empty.
  std::int64_t input_count = 0;
  std::int64_t output_count = 0;
  std::int64_t process_count = 0;

  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<Output> streams;  // logs: what it wrote only as standard output or error (streams.h)
  std::vector<PathFact> facts;
  std::vector<ProcessRecord> processes;
  std::vector<Missed> missed;
  std::vector<FileRule> rules;
  Context context;
  Usage usage;
  GpuWork gpu;
  std::vector<std::string> labels;
};

bool is_about_runs(const RunRecord& run);
// Whether missed_stdin() is among what the run missed.
bool read_a_pipe(const RunRecord& run);

// When the run began, by the clock of the project's file system, which on a file server differs
// from this machine's; by this machine's clock if that was not recorded.
std::int64_t began_file_ns(const RunRecord& run);

}  // namespace assay::store
