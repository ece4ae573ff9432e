// StagedResults: what the tracker found, on its way into the store. Hashing the outputs of a large
// run takes minutes, during which nobody else could write to the store if its transaction were
// open; so results go to a file first, and from there, all at once, into the store. A million files
// need no second copy in memory either way.
#pragma once

#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "lineage/packages/packages.h"
#include "lineage/track/tracker.h"
#include "store/run_writer.h"

namespace assay::lineage {

class StagedResults : public Results {
 public:
  using Explain = std::function<void(const std::string& line)>;

  // Stages in `folder`. `explain`, if there is one, is given a line about every file.
  static base::Result<StagedResults> in(const std::filesystem::path& folder, Explain explain);

  void input(store::Input input, const Rule& rule) override;
  void output(store::Output output, const Rule& rule) override;
  void left_out(LeftOut file, const Rule& rule) override;
  void process(store::Process process) override;
  void missed(store::Missed missed) override;

  // Everything, packages included, in the caller's transaction.
  base::Result<void> write(store::RunWriter& writer);

  [[nodiscard]] std::int64_t inputs() const { return inputs_; }
  [[nodiscard]] std::int64_t outputs() const { return outputs_; }
  [[nodiscard]] bool complete() const { return missed_.empty(); }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;

  StagedResults(File file, std::string path, Explain explain)
      : file_(std::move(file)), path_(std::move(path)), explain_(std::move(explain)) {}
  void count(std::string_view what, const std::string& path, const Rule& rule);
  base::Result<void> write_files(store::RunWriter& writer);

  File file_;
  std::string path_;
  Explain explain_;
  PackageFinder packages_{{.cache = user_cache_folder()}};
  std::vector<store::Process> processes_;
  std::vector<store::Missed> missed_;
  std::map<std::string, store::FileRule> rules_;
  std::int64_t inputs_ = 0;
  std::int64_t outputs_ = 0;
};

}  // namespace assay::lineage
