// The files that each tracer reports are those that strace saw. One test per case of the corpus:
// the command runs once under strace and once under each tracer that works here, in copies of one
// tree. Digests are b3sum's: of the pristine tree for inputs, of what is left for outputs.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

#include "base/json.h"
#include "oracle/sandbox.h"
#include "oracle/strace_log.h"

namespace assay::oracle {
namespace {

namespace fs = std::filesystem;
using base::Json;

support::Outcome assay(std::vector<std::string> words, const fs::path& where) {
  words.insert(words.begin(), support::program());
  return support::run({words, "", where});
}

const std::vector<std::string>& tracers() {
  static const std::vector<std::string> found = [] {
    std::vector<std::string> names;
    const Json all = Json::parse(assay({"tracers", "--json"}, "/").out, nullptr, false);
    if (all.is_discarded()) return names;
    for (const Json& tracer : all.is_object() ? all["tracers"] : all) {
      if (tracer["available"].get<bool>()) names.push_back(tracer["name"].get<std::string>());
    }
    return names;
  }();
  return found;
}

std::string read_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// What `assay show last --json` says once the job is over; a daemon may outlive `assay run`.
Json finished_job(const fs::path& where) {
  Json shown;
  for (int round = 0; round < 100; ++round) {
    const support::Outcome outcome = assay({"show", "last", "--json"}, where);
    shown = Json::parse(outcome.out, nullptr, false);
    if (shown.is_discarded() || !shown.contains("job")) {
      ADD_FAILURE() << "assay show last --json: " << outcome.out << outcome.err;
      return {};
    }
    if (shown["job"]["status"] != "running") break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return shown;
}

struct Reported {
  Lineage lineage;
  std::map<std::string, std::string> input_digests;
  std::map<std::string, std::string> output_digests;
  std::map<std::string, std::int64_t> sizes;  // of outputs
};

// Only what is inside the tree: the same filter for both sides.
Reported reported(const Json& shown, const fs::path& tree) {
  Reported all;
  const std::string prefix = tree.string() + "/";
  const auto digest = [](const Json& file) {
    return file["blake3"].is_string() ? file["blake3"].get<std::string>() : std::string("none");
  };
  for (const Json& file : shown["inputs"]) {
    const auto path = file["path"].get<std::string>();
    if (!path.starts_with(prefix)) continue;
    const std::string name = path.substr(prefix.size());
    EXPECT_TRUE(all.lineage.inputs.insert(name).second) << "input twice: " << name;
    all.input_digests[name] = digest(file);
  }
  for (const Json& file : shown["outputs"]) {
    const auto path = file["path"].get<std::string>();
    if (!path.starts_with(prefix)) continue;
    const std::string name = path.substr(prefix.size());
    EXPECT_FALSE(all.lineage.outputs.contains(name)) << "output twice: " << name;
    all.lineage.outputs[name] = file["status"].get<std::string>();
    all.output_digests[name] = digest(file);
    all.sizes[name] = file["size"].get<std::int64_t>();
  }
  return all;
}

void expect_same_files(const Lineage& expected, const Lineage& got, bool lacks_are_forgiven) {
  for (const std::string& path : expected.inputs) {
    if (lacks_are_forgiven) break;
    EXPECT_TRUE(got.inputs.contains(path)) << "input missing: " << path;
  }
  for (const std::string& path : got.inputs) {
    EXPECT_TRUE(expected.inputs.contains(path)) << "input that strace did not see: " << path;
  }
  for (const auto& [path, status] : expected.outputs) {
    const auto found = got.outputs.find(path);
    if (found == got.outputs.end()) {
      EXPECT_TRUE(lacks_are_forgiven) << "output missing: " << path << " (" << status << ")";
    } else {
      EXPECT_EQ(found->second, status) << "status of output " << path;
    }
  }
  for (const auto& [path, status] : got.outputs) {
    EXPECT_TRUE(expected.outputs.contains(path))
        << "output that strace did not see: " << path << " (" << status << ")";
  }
}

void expect_digests(const Reported& got, const fs::path& pristine, const fs::path& tree) {
  std::vector<std::string> inputs;
  for (const std::string& path : got.lineage.inputs) {
    if (fs::is_regular_file(pristine / path)) inputs.push_back(path);
  }
  for (const auto& [path, digest] : b3sum(pristine, inputs)) {
    EXPECT_EQ(got.input_digests.at(path), digest)
        << "content of input " << path << " as it was read";
  }
  std::vector<std::string> outputs;
  for (const auto& [path, status] : got.lineage.outputs) {
    if (status != "deleted" && fs::is_regular_file(tree / path)) outputs.push_back(path);
  }
  for (const auto& [path, digest] : b3sum(tree, outputs)) {
    EXPECT_EQ(got.output_digests.at(path), digest)
        << "content of output " << path << " as it was left";
    EXPECT_EQ(got.sizes.at(path), static_cast<std::int64_t>(fs::file_size(tree / path))) << path;
  }
}

void expect_verdict(const Case& which, const std::string& tracer, const Json& shown,
                    bool& may_lack) {
  std::set<std::string> missed;
  for (const Json& entry : shown["missed"]) missed.insert(entry["what"].get<std::string>());
  for (const std::string& what : which.may_miss) may_lack = may_lack || missed.contains(what);
  if (const auto must = which.must_miss.find(tracer); must != which.must_miss.end()) {
    EXPECT_TRUE(missed.contains(must->second)) << "missed[] must say " << must->second;
    EXPECT_FALSE(shown["job"]["complete"].get<bool>());
  } else if (!may_lack) {
    EXPECT_TRUE(shown["job"]["complete"].get<bool>()) << shown["missed"].dump();
    EXPECT_TRUE(missed.empty()) << shown["missed"].dump();
  }
  EXPECT_EQ(shown["job"]["dropped"], 0);
  EXPECT_EQ(shown["job"]["tracer"], tracer);
  EXPECT_GE(shown["processes"].get<int>(), which.least_processes);
}

// For whoever adds a case: ORACLE_PRINT=1 shows what strace saw.
void print(const Lineage& lineage) {
  for (const std::string& path : lineage.inputs) std::cout << "  in  " << path << "\n";
  for (const auto& [path, status] : lineage.outputs) {
    std::cout << "  out " << path << " (" << status << ")\n";
  }
}

std::set<std::string> paths_of(const std::map<std::string, std::string>& outputs) {
  std::set<std::string> paths;
  for (const auto& [path, status] : outputs) paths.insert(path);
  return paths;
}

class Oracle : public testing::TestWithParam<Case> {};

TEST_P(Oracle, SameFilesAsStrace) {
  const Case& which = GetParam();
  if (const std::string why = unavailable(which); !why.empty()) GTEST_SKIP() << why;
  Sandbox sandbox(which);
  ASSERT_EQ(sandbox.failure(), "");

  const fs::path log = sandbox.folder() / "strace.log";
  const fs::path strace_tree = sandbox.copy("strace");
  const Snapshot before = take_snapshot(strace_tree);
  FileModel model(strace_tree, before);
  const support::Outcome seen = sandbox.run(strace_tree, strace_words(log.string()));
  if (seen.exit_code == 77) GTEST_SKIP() << seen.err;
  ASSERT_EQ(seen.exit_code, 0) << seen.out << seen.err;
  model.replay(read_strace(read_file(log)), strace_tree.string());
  ASSERT_TRUE(model.problems().empty()) << model.problems().front();
  const Snapshot after = take_snapshot(strace_tree);
  const Lineage expected = which.strace_is_blind ? which.expected : model.result(after);
  ASSERT_EQ(paths_of(expected.outputs), changes(before, after)) << "the oracle is wrong";
  if (std::getenv("ORACLE_PRINT") != nullptr) print(expected);

  ASSERT_FALSE(tracers().empty()) << "no tracer works here";
  for (const std::string& tracer : tracers()) {
    SCOPED_TRACE("tracer " + tracer);
    ASSERT_EQ(assay({"init"}, sandbox.folder()).exit_code, 0);
    const fs::path tree = sandbox.copy(tracer);
    const support::Outcome outcome =
        sandbox.run(tree, {support::program(), "run", "--tracer", tracer, "--"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, seen.out);
    const Json shown = finished_job(sandbox.folder());
    if (!shown.is_object()) continue;
    bool may_lack = false;
    expect_verdict(which, tracer, shown, may_lack);
    const Reported got = reported(shown, tree);
    expect_same_files(expected, got.lineage, may_lack);
    expect_digests(got, sandbox.pristine(), tree);
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, Oracle, testing::ValuesIn(all_cases()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace assay::oracle
