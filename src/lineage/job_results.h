// JobResults: what the tracker found, on its way into the store. Each file is written as it comes,
// so that a million of them need no second copy in memory.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "lineage/packages.h"
#include "lineage/tracker.h"
#include "store/job_writer.h"

namespace assay::lineage {

class JobResults : public Results {
 public:
  // `explain`, if there is one, is given a line about every file.
  JobResults(store::JobWriter& writer, std::function<void(const std::string&)> explain)
      : writer_(writer), explain_(std::move(explain)) {}

  void input(store::Input input, const Rule& rule) override;
  void output(store::Output output, const Rule& rule) override;
  void left_out(LeftOut file, const Rule& rule) override;
  void process(store::Process process) override;
  void missed(store::Missed missed) override;

  // The packages that the files belong to; call it last. The first error of all that was written.
  base::Result<void> finish();

  [[nodiscard]] std::int64_t inputs() const { return inputs_; }
  [[nodiscard]] std::int64_t outputs() const { return outputs_; }
  [[nodiscard]] std::int64_t missed_count() const { return missed_; }

 private:
  void keep(base::Result<void> written);

  store::JobWriter& writer_;
  std::function<void(const std::string&)> explain_;
  PackageFinder packages_;
  base::Result<void> error_;
  std::int64_t inputs_ = 0;
  std::int64_t outputs_ = 0;
  std::int64_t missed_ = 0;
};

}  // namespace assay::lineage
