// The context of a run, apart from its files: user, host, git state, environment, machine.
//
//   ContextTask task({.directory = …, .environment = …});   // starts at once, in a thread
//   …                                                       // open the store in parallel
//   GatheredContext gathered = task.take();                        // before the command is started
#pragma once

#include <sys/resource.h>

#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include "base/json.h"
#include "lineage/source/git.h"
#include "machine/discover.h"
#include "store/run.h"

namespace assay::lineage {

struct ContextOptions {
  std::filesystem::path directory;       // where the command will run
  std::vector<std::string> environment;  // "NAME=value", what the command will get
  GitLimits git = {};
};

struct GatheredContext {              // NOLINT(bugprone-exception-escape): as store::Context
  store::Context context;             // without machine and packages
  std::vector<std::string> problems;  // one sentence each: what could not be determined
};

// In this thread.
GatheredContext gather_context(const ContextOptions& options);

class ContextTask {
 public:
  explicit ContextTask(ContextOptions options);
  // Waits. The git state is that of the working tree between construction and return, so the
  // command must not start earlier. Call once.
  GatheredContext take() { return future_.get(); }

 private:
  std::future<GatheredContext> future_;
};

// machine::to_json, cached in the store's folder until the machine reboots, the driver changes, or
// other GPUs are visible: querying the driver takes tens of milliseconds. What belongs to this
// process rather than to the machine (affinity, limits) is always read. A cache that cannot be read
// or written is not an error.
base::Json machine_facts(const std::filesystem::path& store_directory,
                         const machine::DiscoverOptions& options = {});

store::Usage usage_of(const struct rusage& usage);

}  // namespace assay::lineage
