// TrackerScenario: a project in a temporary folder and a tracker. Each operation is performed on
// disk, and the tracker gets the events that a collector would report. Beside it: what a tracker
// reports to and where it looks up digests.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/testing/temp_dir.h"
#include "hash/digest.h"
#include "lineage/track/hash_queue.h"
#include "lineage/track/tracker.h"
#include "store/testing/runs.h"

namespace assay::lineage::testing {

// Collects everything that finish() reported.
class RecordedResults : public Results {
 public:
  void input(store::Input input, const FilterRule& rule) override;
  void output(store::Output output, const FilterRule& rule) override;
  void left_out(LeftOut file, const FilterRule& rule) override;
  void fact(store::PathFact fact) override { facts.push_back(std::move(fact)); }
  void process(store::ProcessRecord process) override { processes.push_back(std::move(process)); }
  void missed(store::Missed missed) override { missing.push_back(std::move(missed)); }

  // By path relative to the project (absolute outside).
  std::map<std::string, store::Input> inputs;
  std::map<std::string, store::Output> outputs;
  std::map<std::string, std::string> reasons;  // path -> name of the rule that left it out
  std::vector<store::PathFact> facts;
  std::vector<store::ProcessRecord> processes;
  std::vector<store::Missed> missing;
  bool sorted = true;
  std::string root;

 private:
  std::string relative(const std::string& path) const;
  std::string last_input_;
  std::string last_output_;
};

// A cache of digests in memory.
class FakeCache : public DigestCache {
 public:
  std::optional<hash::Digest> find(const hash::FileStamp& stamp) override {
    ++lookups;
    const auto found = entries.find(stamp);
    return found == entries.end() ? std::nullopt : std::optional(found->second);
  }
  void insert(const hash::FileStamp& stamp, const hash::Digest& digest) override {
    entries[stamp] = digest;
  }
  std::map<hash::FileStamp, hash::Digest> entries;
  int lookups = 0;
};

// How collectors differ.
struct CollectorMode {
  bool events_before_change =
      true;  // changes are reported before (the gate) or after they happen (ptrace)
  bool stamped_creation = true;  // creations have a stamp (the shim's do, the gate's do not)
};

class TrackerScenario {
 public:
  explicit TrackerScenario(const Tracker::Options& options = {},
                           std::vector<Filter::UserRule> user_rules = {});

  // Before the run.
  void put(const std::string& name, const std::string& content);
  void folder(const std::string& name);
  void alias(const std::string& name, const std::string& target);  // symbolic link
  // Waits until the existing files are older than a tick of the file clock.
  void begin();

  // By the run; `name` is relative to the project.
  void read(const std::string& name);
  void create(const std::string& name, const std::string& content);     // O_CREAT | O_EXCL
  void append(const std::string& name, const std::string& content);     // O_WRONLY | O_APPEND
  void overwrite(const std::string& name, const std::string& content);  // O_TRUNC
  void update(const std::string& name, const std::string& content);     // O_RDWR, then written
  void open_only(const std::string& name, bool readable = false);       // nothing is written
  void remove(const std::string& name);
  void rename(const std::string& from, const std::string& to, bool exchange = false);
  void link(const std::string& from, const std::string& to);
  void unnamed_then_link(const std::string& name, const std::string& content);

  // By another program.
  void write_outside(const std::string& name, const std::string& content);

  RecordedResults& finish();  // the same when called again

  [[nodiscard]] std::string path(const std::string& name) const;
  [[nodiscard]] wire::Stamp stamp(const std::string& name) const;
  collect::Event event(wire::RecordOp op, const std::string& path, const std::string& other = {});
  void report(wire::RecordOp op, const std::string& name, const wire::Stamp* stamp,
              std::uint16_t flags = 0, const std::string& other = {});

  CollectorMode mode;
  base::testing::TempDir scratch;
  std::string root;
  Filter filter;
  std::unique_ptr<Tracker> tracker;

 private:
  std::string text_;
  std::string other_;
  RecordedResults recorded_;
  bool finished_ = false;
};

using store::testing::digest_of;
std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& content);

}  // namespace assay::lineage::testing
