// The files that each tracer reports are those that strace saw. One test per case of the corpus:
// the command runs once under strace and once under each tracer that works here, in copies of one
// tree. Digests are b3sum's: of the pristine tree for inputs, of what is left for outputs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <sstream>

#include "oracle/recorded.h"
#include "oracle/sandbox.h"
#include "oracle/strace_log.h"
#include "support/reachable_copy.h"

namespace assay::oracle {
namespace {

namespace fs = std::filesystem;
using base::Json;

std::string read_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// For new cases: ORACLE_PRINT=1 shows what strace saw.
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

struct Truth {
  Lineage lineage;
  std::string out;       // what the command printed
  std::string not_here;  // why the command cannot do its work on this machine
};

// What an exact observer must report.
Truth truth(const Case& which, Sandbox& sandbox) {
  if (which.too_big_for_strace) return {*which.by_hand, "", ""};
  const fs::path log = sandbox.folder() / "strace.log";
  const fs::path tree = sandbox.copy("strace");
  const Snapshot before = take_snapshot(tree);
  FileModel model(tree, before);
  const support::ProcessResult outcome = sandbox.run(tree, strace_words(log.string()));
  if (outcome.exit_code == 77) return {{}, "", outcome.err};
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  model.replay(read_strace(read_file(log)), tree.string());
  EXPECT_TRUE(model.problems().empty()) << model.problems().front();
  const Snapshot after = take_snapshot(tree);
  Truth truth = {which.by_hand ? *which.by_hand : model.result(after), outcome.out, ""};
  EXPECT_EQ(paths_of(truth.lineage.outputs), changes(before, after)) << "the oracle is wrong";
  if (std::getenv("ORACLE_PRINT") != nullptr) print(truth.lineage);
  return truth;
}

// Runs the case under one tracer, as this user or with `user` before the command, and compares.
// Another user runs a copy of the program.
void compare(const Case& which, Sandbox& sandbox, const std::string& tracer, const Truth& truth,
             const std::vector<std::string>& user = {}) {
  SCOPED_TRACE("tracer " + tracer);
  if (std::ranges::count(which.not_for, tracer) > 0) return;
  const auto command = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = user;
    all.push_back(user.empty() ? support::program() : support::reachable_program());
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const fs::path tree = sandbox.copy(tracer);
  if (!user.empty()) support::run({{"chown", "-R", "nobody", sandbox.folder().string()}});
  const support::ProcessResult init = support::run({command({"init"}), "", sandbox.folder()});
  ASSERT_EQ(init.exit_code, 0) << init.err;
  const support::ProcessResult outcome =
      sandbox.run(tree, command({"run", "--tracer", tracer, "--"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, truth.out);
  const Json shown = finished_run(sandbox.folder());
  if (!shown.is_object()) return;
  const bool may_lack = expect_verdict(which, tracer, shown);
  const Recorded got = recorded(shown, tree);
  expect_same_files(truth.lineage, got.lineage, may_lack);
  expect_digests(truth.lineage, got, sandbox.pristine(), tree);
  expect_befores(which.grows, got, sandbox.pristine());
}

const Case& case_named(const std::string& name) {
  return *std::find_if(all_cases().begin(), all_cases().end(),
                       [&](const Case& one) { return one.name == name; });
}

// All of them; with a sanitized build, which is slow, they take turns.
std::vector<std::string> tracers_for(const Case& which) {
  const std::vector<std::string>& all = tracers();
  if (all.empty() || !support::program_is_sanitized()) return all;
  const auto number = static_cast<std::size_t>(&which - all_cases().data());
  return {all[number % all.size()]};
}

class Oracle : public ::testing::TestWithParam<std::string> {};

TEST_P(Oracle, SameFilesAsStrace) {
  const Case& which = case_named(GetParam());
  if (const std::string why = unavailable(which); !why.empty()) GTEST_SKIP() << why;
  Sandbox sandbox(which);
  ASSERT_EQ(sandbox.failure(), "");
  const Truth expected = truth(which, sandbox);
  if (!expected.not_here.empty()) GTEST_SKIP() << expected.not_here;
  ASSERT_FALSE(tracers().empty()) << "no tracer works here";
  for (const std::string& tracer : tracers_for(which)) {
    if (HasFatalFailure()) return;
    compare(which, sandbox, tracer, expected);
  }
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const Case& one : all_cases()) names.push_back(one.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Corpus, Oracle, ::testing::ValuesIn(all_names()),
                         [](const auto& one) { return one.param; });

// Projects below folders of the system, whose other files are left out. Each case is run in one of
// them, under one tracer; with ORACLE_EVERYWHERE set, in all and under all.
class BelowSystemFolders : public ::testing::TestWithParam<std::string> {};

TEST_P(BelowSystemFolders, SameFilesAsStrace) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may write there";
  const std::vector<fs::path> folders = {"/var", "/usr/local", "/run", "/dev/shm"};
  const Case& which = case_named(GetParam());
  if (const std::string why = unavailable(which); !why.empty()) GTEST_SKIP() << why;
  ASSERT_FALSE(tracers().empty()) << "no tracer works here";
  const bool everywhere = std::getenv("ORACLE_EVERYWHERE") != nullptr;
  const auto number = static_cast<std::size_t>(&which - all_cases().data());
  for (std::size_t i = 0; i < folders.size(); ++i) {
    if (!everywhere && number % folders.size() != i) continue;
    SCOPED_TRACE(folders[i]);
    Sandbox sandbox(which, kPrograms, folders[i]);
    ASSERT_EQ(sandbox.failure(), "");
    const Truth expected = truth(which, sandbox);
    if (!expected.not_here.empty()) GTEST_SKIP() << expected.not_here;
    for (std::size_t j = 0; j < tracers().size(); ++j) {
      if (!everywhere && number / folders.size() % tracers().size() != j) continue;
      compare(which, sandbox, tracers()[j], expected);
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, BelowSystemFolders, ::testing::ValuesIn(all_names()),
                         [](const auto& one) { return one.param; });

// Where tests run as root: the same without root's privileges.
class Unprivileged : public ::testing::TestWithParam<std::string> {};

TEST_P(Unprivileged, SameFilesAsStrace) {
  if (::geteuid() != 0) GTEST_SKIP() << "every other test is this one";
  const std::vector<std::string> nobody = {"setpriv", "--reuid=nobody", "--regid=nogroup",
                                           "--clear-groups"};
  const support::ReachableCopy programs(support::files_in(kPrograms));
  const Case& which = case_named(GetParam());
  for (const std::string tracer : {"preload", "ptrace"}) {
    Sandbox sandbox(which, programs.folder().string());
    const Truth expected = truth(which, sandbox);
    compare(which, sandbox, tracer, expected, nobody);
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, Unprivileged,
                         ::testing::Values("stdio", "stdio_static", "shell_pipeline", "inherited",
                                           "pre_images", "raw_calls", "daemon", "thread_exec"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace assay::oracle
