// Runs a program under the shim and a simple gate that notes every stopped call and lets it
// continue. Replaces the collector in the shim's own tests and benchmark.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "observe/wire/log_header.h"

namespace assay::shim::testing {

// A record as found in the log.
struct LoggedEvent {
  wire::RecordOp op = wire::RecordOp::kNone;
  pid_t thread = 0;
  pid_t process = 0;
  pid_t parent = 0;
  std::int32_t value = 0;
  std::int64_t time_ns = 0;
  wire::Stamp stamp;
  std::string path;
};

// A private event log, with `space` bytes promised to writers.
class ShimLog {
 public:
  ShimLog(std::filesystem::path path, std::uint64_t space);
  ~ShimLog();
  ShimLog(const ShimLog&) = delete;
  ShimLog& operator=(const ShimLog&) = delete;

  wire::LogHeader& header() { return *header_; }
  const std::filesystem::path& path() const { return path_; }
  // Everything committed of one kind. Adds what cannot be read as a record to `torn`, if given.
  enum class Kind { kFiles, kProcesses };
  std::vector<LoggedEvent> records(int* torn = nullptr, Kind kind = Kind::kFiles) const;

 private:
  std::filesystem::path path_;
  std::uint64_t size_;
  wire::LogHeader* header_ = nullptr;
};

// A call that the gate stopped.
struct StoppedCall {
  int number = 0;
  int flags = 0;
  std::string path;
};

enum class Gate {
  kNone,  // no filter
  kPass,  // the same filter, but it lets everything pass
  kStop,  // stops what does not come from the shim's instruction
};

// Called in the process to be observed: installs the filter. Returns the listener, or -1.
int install(Gate gate);

// Answers a listener until the last process under the filter has ended.
class Supervisor {
 public:
  // `before` is called for every stop, before the call continues; when it returns false, this and
  // all later calls get no response, as if the collector had been killed.
  explicit Supervisor(int listener, std::function<bool(const StoppedCall&)> before = {});
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  std::vector<StoppedCall> stops();  // waits for the end

 private:
  void answer();
  int listener_;
  std::function<bool(const StoppedCall&)> before_;
  std::vector<StoppedCall> stops_;
  std::thread thread_;
};

struct Command {
  std::vector<std::string> arguments;
  std::filesystem::path directory = {};
  ShimLog* log = nullptr;    // null: without the shim
  std::string library = {};  // the shim
  Gate gate = Gate::kNone;
  std::vector<std::string> environment = {};  // in addition
  uid_t user = 0;                             // 0: the test's own
  int keep = -1;                              // a descriptor that the command finds as 3
  std::function<void(pid_t)> started = {};
  std::function<bool(const StoppedCall&)> before = {};
};

struct ShimRunResult {
  int wait_status = 0;
  std::string output;  // of both streams
  std::vector<StoppedCall> stops;
};

ShimRunResult run(const Command& command);

}  // namespace assay::shim::testing
