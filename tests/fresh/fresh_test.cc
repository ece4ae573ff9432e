// "Fresh" means it: whenever `assay status` calls all stages of a random pipeline fresh, running
// all of them again in their order, in a copy of the project, changes nothing.
//
//   FRESH_CASES=1000 FRESH_SEED=7 fresh_test     more pipelines, from this seed on
//
// Stages may be stale although nothing would change: how often is printed.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>

#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "fresh/pipeline.h"
#include "support/process.h"

namespace assay::fresh {
namespace {

namespace fs = std::filesystem;
using base::Json;

// What is below a folder: contents of files, targets of links. Not the store.
std::map<std::string, std::string> tree_of(const fs::path& root) {
  std::map<std::string, std::string> tree;
  for (fs::recursive_directory_iterator at(root), end; at != end; ++at) {
    const std::string name = at->path().lexically_relative(root).string();
    if (name == ".assay") {
      at.disable_recursion_pending();
    } else if (at->is_symlink()) {
      tree[name] = "-> " + fs::read_symlink(at->path()).string();
    } else if (at->is_directory()) {
      tree[name] = "folder";
    } else {
      std::ifstream file(at->path(), std::ios::binary);
      tree[name] = "file " + std::string(std::istreambuf_iterator<char>(file), {});
    }
  }
  return tree;
}

std::string difference(const std::map<std::string, std::string>& before,
                       const std::map<std::string, std::string>& after) {
  std::string text;
  for (const auto& [name, content] : before) {
    const auto now = after.find(name);
    if (now == after.end()) text += name + " is gone\n";
    if (now != after.end() && now->second != content) {
      text += fmt::format("{}: '{}', again '{}'\n", name, content, now->second);
    }
  }
  for (const auto& [name, content] : after) {
    if (!before.contains(name)) text += fmt::format("{}: new, '{}'\n", name, content);
  }
  return text;
}

struct Counts {
  int answers = 0;     // of `assay status`
  int fresh = 0;       // all stages were
  int unsure = 0;      // none was stale, and some were unsure
  int changed = 0;     // running all again would have changed something
  int needlessly = 0;  // something was stale or unsure, and nothing would have changed
};

class Case {
 public:
  Case(Random& random, const fs::path& parent, std::string tracer)
      : random_(random),
        folder_(parent),
        project_(fs::canonical(folder_.path()) / "project"),
        tracer_(std::move(tracer)),
        pipeline_(random_pipeline(random)) {
    fs::create_directory(project_);
    fs::permissions(folder_.path(), fs::perms(0755));
  }

  void run(Counts& counts) {
    shell("$A init -q; " + pipeline_.setup);
    for (const Stage& stage : pipeline_.stages) record(stage);
    check(counts);
    const std::size_t changes = 2 + random_() % 3;
    for (std::size_t i = 0; i < changes && !wrong_; ++i) {
      for (std::size_t j = 0; j < 1 + random_() % 2; ++j) shell(change());
      check(counts);
      // As in a job whose output is a log.
      if (random_() % 3 == 0) {
        shell(
            fmt::format("$A run @{} >> ../job.log 2>&1", 1 + random_() % pipeline_.stages.size()));
        check(counts);
      }
      shell("$A refresh --overwrite >> ../job.log 2>&1");
      check(counts);
    }
  }

 private:
  support::ProcessResult shell(const std::string& script) {
    script_ += script + "\n";
    return support::run(
        {{"bash", "-c", "export A='" + support::program() + "'; " + script}, "", project_});
  }

  std::string change() {
    if (random_() % 5 == 0) {
      return random_edit(random_, 1 + random_() % pipeline_.stages.size());
    }
    return random_change(random_);
  }

  static std::string quoted(const std::string& command) {
    std::string text = "sh -c '";
    for (const char c : command) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + "'";
  }
  static std::string with_redirect(const std::string& command, const Stage& stage) {
    return stage.into.empty() ? command : command + " > " + stage.into;
  }

  void record(const Stage& stage) {
    const std::string run = "$A run -q --tracer " + tracer_ + " -- " + quoted(stage.command);
    const auto outcome = shell(with_redirect(run, stage));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err << script_;
  }

  // What running all stages in order would change, in a copy.
  std::string changes_of_all() {
    const fs::path copy = folder_.path() / "again";
    std::string script =
        "cp -a " + project_.string() + " again; rm -rf again/.assay/*; cd again; {\n";
    for (const Stage& stage : pipeline_.stages) {
      script += with_redirect(quoted(stage.command), stage) + "\n";
    }
    support::run({{"bash", "-c", script + "} 2> /dev/null"}, "", folder_.path()});
    std::string changed = difference(tree_of(project_), tree_of(copy));
    fs::remove_all(copy);
    return changed;
  }

  void check(Counts& counts) {
    const Json status = Json::parse(
        support::run({{support::program(), "status", "--json"}, "", project_}).out, nullptr, false);
    ASSERT_TRUE(status.is_object()) << script_;
    ASSERT_EQ(status["stages"].size(), pipeline_.stages.size()) << script_;
    bool fresh = true;
    bool stale = false;
    for (const Json& stage : status["stages"]) {
      fresh = fresh && stage["state"] == "fresh";
      stale = stale || stage["state"] == "stale";
    }
    const std::string changed = changes_of_all();
    ++counts.answers;
    counts.fresh += fresh ? 1 : 0;
    counts.unsure += !fresh && !stale ? 1 : 0;
    counts.changed += changed.empty() ? 0 : 1;
    counts.needlessly += !fresh && changed.empty() ? 1 : 0;
    wrong_ = wrong_ || (fresh && !changed.empty());
    EXPECT_TRUE(!fresh || changed.empty())
        << "all stages are fresh under " << tracer_ << " in " << project_ << ", but again:\n"
        << changed << "after\n"
        << script_;
  }

  Random& random_;
  base::testing::TempDir folder_;
  fs::path project_;
  std::string tracer_;
  Pipeline pipeline_;
  std::string script_;  // all that was done
  bool wrong_ = false;
};

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::vector<std::string> working_tracers() {
  const Json answer = Json::parse(support::run({{support::program(), "tracers", "--json"}}).out);
  std::vector<std::string> names;
  for (const Json& tracer : answer["tracers"]) {
    if (tracer["available"] == true) names.push_back(tracer["name"]);
  }
  return names;
}

TEST(Fresh, MeansThatRunningAllAgainChangesNothing) {
  const std::vector<std::string> tracers = working_tracers();
  ASSERT_FALSE(tracers.empty());
  std::vector<fs::path> parents = {fs::temp_directory_path()};
  if (::geteuid() == 0) {
    for (const char* folder : {"/var", "/usr/local", "/run", "/dev/shm"})
      parents.emplace_back(folder);
  }
  const std::uint64_t cases = number_from("FRESH_CASES", 20);
  const std::uint64_t seed = number_from("FRESH_SEED", 1);
  Counts counts;
  for (std::uint64_t i = 0; i < cases; ++i) {
    SCOPED_TRACE(fmt::format("FRESH_CASES=1 FRESH_SEED={}", seed + i));
    Random random(seed + i);
    const std::string tracer = tracers[random() % tracers.size()];
    const fs::path parent = parents[random() % parents.size()];
    Case(random, parent, tracer).run(counts);
    if (HasFailure() && std::getenv("FRESH_GO_ON") == nullptr) break;
  }
  std::cout << fmt::format(
      "{} answers: {} times all fresh, {} times unsure; running all again would have changed "
      "something {} times, and nothing {} times where a stage was stale or unsure\n",
      counts.answers, counts.fresh, counts.unsure, counts.changed, counts.needlessly);
}

}  // namespace
}  // namespace assay::fresh
