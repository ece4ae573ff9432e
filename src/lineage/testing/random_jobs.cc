#include "lineage/testing/random_jobs.h"

#include <fmt/format.h>

#include <map>

#include "store/testing/jobs.h"

namespace assay::lineage::testing {
namespace {

store::Job random_job() {
  using store::OutputStatus;
  const auto path = [] { return fmt::format("/project/{}", *rc::gen::inRange('a', 'h')); };
  const auto content = [] {
    const int which = *rc::gen::inRange(0, 6);
    return which == 0 ? std::string() : std::to_string(which);
  };
  store::Job job = store::testing::job_of("job");
  std::map<std::string, std::string> read;
  std::map<std::string, std::string> written;
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) read[path()] = content();
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) written[path()] = content();
  for (const auto& [name, text] : read) {
    job.inputs.push_back({name, store::testing::digest_of(text), static_cast<int>(text.size())});
  }
  for (const auto& [name, text] : written) {
    store::Output output{name, store::testing::digest_of(text), static_cast<int>(text.size()),
                         OutputStatus::kCreated, ""};
    const int kind = *rc::gen::inRange(0, 6);
    if (kind == 0) output = {name, std::nullopt, 0, OutputStatus::kDeleted, ""};
    if (kind == 1 || kind == 5) output.status = OutputStatus::kModified;
    if (kind == 5) output.before = store::testing::digest_of(content());
    if (kind == 2) {
      output.status = OutputStatus::kRenamed;
      output.from = path();
      if (written.contains(output.from)) output.from = "/project/elsewhere";
    }
    job.outputs.push_back(output);
  }
  return job;
}

}  // namespace

rc::Gen<std::vector<store::Job>> random_jobs() {
  return rc::gen::exec([] {
    std::vector<store::Job> jobs;
    for (int i = *rc::gen::inRange(1, 9); i > 0; --i) jobs.push_back(random_job());
    return jobs;
  });
}

}  // namespace assay::lineage::testing
