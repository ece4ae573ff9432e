#include "lineage/testing/random_runs.h"

#include <fmt/format.h>

#include <map>

#include "store/testing/runs.h"

namespace assay::lineage::testing {
namespace {

store::RunRecord random_run() {
  using store::OutputStatus;
  const auto path = [] { return fmt::format("/project/{}", *rc::gen::inRange('a', 'h')); };
  const auto content = [] {
    const int which = *rc::gen::inRange(0, 6);
    return which == 0 ? std::string() : std::to_string(which);
  };
  store::RunRecord run = store::testing::run_of("run");
  std::map<std::string, std::string> read;
  std::map<std::string, std::string> written;
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) read[path()] = content();
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) written[path()] = content();
  for (const auto& [name, text] : read) {
    run.inputs.push_back({name, store::testing::digest_of(text), static_cast<int>(text.size())});
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
    run.outputs.push_back(output);
  }
  return run;
}

}  // namespace

rc::Gen<std::vector<store::RunRecord>> random_runs() {
  return rc::gen::exec([] {
    std::vector<store::RunRecord> runs;
    for (int i = *rc::gen::inRange(1, 9); i > 0; --i) runs.push_back(random_run());
    return runs;
  });
}

}  // namespace assay::lineage::testing
