// A run's results on their way into the store: StagedResults (files, processes, packages),
// StoredDigests (the hash cache), GPU counters.
#pragma once

#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/folders.h"
#include "base/result.h"
#include "lineage/packages/packages.h"
#include "lineage/track/created_folders.h"
#include "lineage/track/hash_queue.h"
#include "lineage/track/results.h"
#include "observe/collect/gpu_counters.h"
#include "store/gpu_work.h"
#include "store/hash_cache.h"
#include "store/run.h"
#include "store/run_writer.h"

namespace assay::lineage {

// Hashing the outputs of a large run takes minutes, during which an open transaction would block
// all other writers. So results are first written to a file, and from there to the store in one
// transaction. This also avoids a second copy of a million files in memory.
class StagedResults : public Results {
 public:
  // Stages in `folder`; with `explain`, also a line about every file.
  static base::Result<StagedResults> create(const std::filesystem::path& folder, bool explain);
  // Calls `print` with these lines. Only when all files have been hashed, because the command's
  // standard error, where they go, may be one of the files.
  void explain(const std::function<void(const std::string& line)>& print);

  void input(store::Input input, const FilterRule& rule) override;
  void output(store::Output output, const FilterRule& rule) override;
  void left_out(LeftOut file, const FilterRule& rule) override;
  void fact(store::PathFact fact) override {
    network_ = network_ || fact.kind == store::PathFact::Kind::kNetwork;
    facts_.push_back(std::move(fact));
  }
  void process(store::ProcessRecord process) override;
  void missed(store::Missed missed) override;

  // When the run began, by the clock of the project's file system.
  void note_began(const std::string& project, std::int64_t started_ns) {
    facts_.push_back({.kind = store::PathFact::Kind::kBegan,
                      .path = project,
                      .target = std::to_string(started_ns)});
  }
  // Call after the last output: adds the folders that the run made. `started_ns` is the run's start
  // by the file system's clock.
  void find_created_folders(std::int64_t started_ns);
  // `paths` did not exist when the run began; records those that still do not.
  void note_absent(const std::vector<std::string>& paths);
  // Adds the interpreters of the processes, read from their files now; one whose file changed after
  // it was started is reported as missed. `search_path` (PATH), `directory` and `started_ns` are
  // the run's; if a file server's clock differs from this machine's, `started_ns` is by the one
  // that is ahead.
  void find_interpreters(const std::string& search_path, const std::string& directory,
                         std::int64_t started_ns);

  // Everything, including packages, in the caller's transaction.
  base::Result<void> write(store::RunWriter& writer);

  // Files that a command has before it does anything: its program and standard streams. Call before
  // the first file.
  void expect(std::set<std::string> files) { expected_ = std::move(files); }
  // Whether there are inputs or outputs besides them.
  [[nodiscard]] bool has_others() const { return others_; }
  [[nodiscard]] std::int64_t inputs() const { return inputs_; }
  [[nodiscard]] bool used_network() const { return network_; }
  [[nodiscard]] bool complete() const { return missed_.empty(); }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;

  StagedResults(File file, std::string path, File explained)
      : file_(std::move(file)), path_(std::move(path)), explained_(std::move(explained)) {}
  void count(std::string_view what, const std::string& path, const FilterRule& rule);
  base::Result<void> write_files(store::RunWriter& writer);

  File file_;
  std::string path_;
  File explained_;
  PackageFinder packages_{{.cache = base::user_cache_folder()}};
  CreatedFolders folders_;
  std::vector<store::PathFact> facts_;
  bool network_ = false;
  std::vector<store::ProcessRecord> processes_;
  std::vector<store::Missed> missed_;
  std::map<std::string, store::FileRule> rules_;
  std::set<std::string> expected_;
  bool others_ = false;
  std::int64_t inputs_ = 0;
  std::int64_t outputs_ = 0;
};

// The store's hash cache for the tracker. Lookups are immediate; new digests are written together
// with the run, in the same transaction.
class StoredDigests : public DigestCache {
 public:
  // The Store must outlive it and must not be moved.
  static base::Result<StoredDigests> open(store::Store& store);

  std::optional<hash::Digest> find(const hash::FileStamp& stamp) override;
  void insert(const hash::FileStamp& stamp, const hash::Digest& digest) override;
  // Inside the caller's transaction.
  base::Result<void> write();

 private:
  explicit StoredDigests(store::HashCache cache) : cache_(std::move(cache)) {}

  store::HashCache cache_;
  std::vector<store::HashedFile> fresh_;
};

// GPU counters as the store keeps them. What could not be counted is added to `problems`.
store::GpuWork stored_gpu_work(const collect::GpuReport& report,
                               std::vector<store::Missed>& problems);

}  // namespace assay::lineage
