#include "lineage/filter/filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/testing/temp_dir.h"
#include "lineage/testing/tracker_scenario.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

std::string judged(Filter& filter, const std::string& path) {
  return filter.rule(filter.rule_for(path)).name;
}

TEST(Filter, RulesByPath) {
  Filter filter({.root = "/home/ada/project", .home = "/home/ada", .user_rules = {}});
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"/home/ada/project/train.py", "project"},
      {"/home/ada/project/data/x.bin", "project"},
      {"/home/ada/project/usr/lib/x", "project"},
      {"/home/ada/project/.assay/assay.db", "assay"},
      {"/home/ada/project/sub/.git/index", "git"},
      {"/home/ada/project/.gitignore", "project"},
      {"/home/ada/project/__pycache__/a.cpython-311.pyc", "bytecode"},
      {"/home/ada/project/old.pyc", "bytecode"},
      {"/home/ada/project/v/site-packages/x.py", "packages"},
      {"/home/ada/project/web/node_modules/x/index.js", "packages"},
      {"/home/ada/project/my-node_modules/x", "project"},
      {"/home/ada/project/.cache/x", "caches"},
      {"/home/ada/project/.pytest_cache/v/x", "caches"},
      {"/home/ada/projects/x", "data"},
      {"/home/ada/data.csv", "data"},
      {"/home/ada/.bashrc", "home"},
      {"/home/ada/.config/x", "home"},
      {"/home/ada/.local/lib/x", "home"},
      {"/home/ada/.cache/x", "caches"},
      {"/home/ada/.cache/huggingface/hub/models--a--b/blobs/1", "models"},
      {"/home/ada/.cache/huggingface/hub/.locks/models--a--b/1.lock", "tools"},
      {"/home/ada/.cache/huggingface/hubs/1", "caches"},
      {"/home/ada/.cache/huggingface/token", "caches"},
      {"/home/ada/project/.dvc/tmp/lock", "tools"},
      {"/home/ada/project/.dvc/config", "project"},
      {"/home/ada/.local/lib/python3.11/site-packages/x.py", "packages"},
      {"/home/ada/.pyenv/versions/3.11/bin/python", "language"},
      {"/home/ada/py/lib/python3.12/os.py", "language"},
      {"/home/bob/lib/pythonic/x", "data"},
      {"/usr/bin/env", "system"},
      {"/usr/lib/python3/dist-packages/x.py", "packages"},
      {"/etc/passwd", "system"},
      {"/opt/vendor/x.so", "system"},
      {"/var/lib/x", "system"},
      {"/var/tmp/x", "temporary"},
      {"/tmp/x", "temporary"},
      {"/dev/shm/x", "temporary"},
      {"/dev/nvidia0", "kernel"},
      {"/proc/meminfo", "kernel"},
      {"/sys/class/x", "kernel"},
      {"/run/lock/x", "kernel"},
      {"/mnt/data/train.bin", "data"},
      {"/srv/x", "data"},
      {"/usrdata/x", "data"},
      {"/x", "data"},
  };
  for (const auto& [path, name] : cases) EXPECT_EQ(judged(filter, path), name) << path;
}

TEST(Filter, KeepsWhatItShould) {
  const std::set<std::string> keep = {"project", "data", "temporary", "models"};
  Filter filter({.root = "/p", .home = "/h", .user_rules = {}});
  for (const FilterRule& rule : filter.rules()) {
    EXPECT_EQ(rule.keep, keep.contains(rule.name)) << rule.name;
    EXPECT_FALSE(rule.sentence.empty());
  }
}

TEST(Filter, TheProjectWinsWhereverItIs) {
  Filter filter({.root = "/usr/src/.cache/app/", .home = "/root", .user_rules = {}});
  EXPECT_EQ(judged(filter, "/usr/src/.cache/app/x"), "project");
  EXPECT_EQ(judged(filter, "/usr/src/.cache/other/x"), "caches");
  EXPECT_EQ(judged(filter, "/usr/src/x"), "system");
  Filter home({.root = "/root", .home = "/root", .user_rules = {}});
  EXPECT_EQ(judged(home, "/root/.netrc"), "project");
}

TEST(Filter, EnvironmentsAreFoundOnTheDisk) {
  const base::testing::TempDir scratch;
  const fs::path root = scratch.path() / "project";
  fs::create_directories(root / "env/lib/deep");
  fs::create_directories(root / "conda/conda-meta");
  fs::create_directories(scratch.path() / "elsewhere/bin");
  testing::write_file(root / "env/pyvenv.cfg", "");
  testing::write_file(scratch.path() / "elsewhere/pyvenv.cfg", "");
  Filter filter({.root = root, .home = {}, .user_rules = {}});
  EXPECT_EQ(judged(filter, root / "env/lib/deep/x.py"), "environment");
  EXPECT_EQ(judged(filter, root / "conda/bin/python"), "environment");
  EXPECT_EQ(judged(filter, scratch.path() / "elsewhere/bin/python"), "environment");
  EXPECT_EQ(judged(filter, root / "x.py"), "project");
  // A project inside an environment is a project.
  Filter inside({.root = root / "env/lib", .home = {}, .user_rules = {}});
  EXPECT_EQ(judged(inside, root / "env/lib/deep/x.py"), "project");
  // One that is made later is noticed after forget().
  testing::write_file(root / "pyvenv.cfg", "");
  fs::create_directories(root / "late");
  EXPECT_EQ(judged(filter, root / "late/x"), "project");
  testing::write_file(root / "late/pyvenv.cfg", "");
  filter.forget();
  EXPECT_EQ(judged(filter, root / "late/x"), "environment");
}

TEST(Filter, TheLastChoiceWins) {
  Filter filter({.root = "/p",
                 .home = "/h",
                 .user_rules = {{"*.log", false},
                                {"/usr/share/data", true},
                                {"keep.log", true},
                                {"~/secret/**", false},
                                {"tmp/", false}}});
  EXPECT_EQ(judged(filter, "/p/a.log"), "leave-out:*.log");
  EXPECT_EQ(judged(filter, "/p/d/keep.log"), "keep:keep.log");
  EXPECT_EQ(judged(filter, "/usr/share/data/x/y.csv"), "keep:/usr/share/data");
  EXPECT_EQ(judged(filter, "/usr/share/x"), "system");
  EXPECT_EQ(judged(filter, "/h/secret/x"), "leave-out:~/secret/**");
  EXPECT_EQ(judged(filter, "/p/tmp"), "project");
  EXPECT_EQ(judged(filter, "/p/tmp/x"), "leave-out:tmp/");
  EXPECT_THAT(filter.rule(filter.rule_for("/p/a.log")).sentence, ::testing::HasSubstr("*.log"));
}

TEST(Glob, Matches) {
  const auto matches = [](const char* pattern, const char* path) {
    return Glob(pattern, "/p", "/h").matches(path);
  };
  EXPECT_TRUE(matches("a", "/p/a"));
  EXPECT_TRUE(matches("a", "/x/a/b/c"));
  EXPECT_FALSE(matches("a", "/p/ab"));
  EXPECT_TRUE(matches("a*", "/p/ab"));
  EXPECT_TRUE(matches("*.p?", "/x/y.py"));
  EXPECT_FALSE(matches("*.p?", "/x/y.pyc"));
  EXPECT_TRUE(matches("d/*.csv", "/p/d/x.csv"));
  EXPECT_FALSE(matches("d/*.csv", "/p/d/e/x.csv"));
  EXPECT_FALSE(matches("d/*.csv", "/x/d/x.csv"));
  EXPECT_TRUE(matches("d/**/x", "/p/d/x"));
  EXPECT_TRUE(matches("d/**/x", "/p/d/e/f/x"));
  EXPECT_TRUE(matches("**/x/**/y", "/p/a/x/b/x/c/y"));
  EXPECT_FALSE(matches("**/x/**/y", "/p/a/y/b/x"));
  EXPECT_TRUE(matches("/data/**", "/data/a/b"));
  EXPECT_FALSE(matches("/data/**", "/data"));
  EXPECT_FALSE(matches("/data/**", "/database/x"));
  EXPECT_TRUE(matches("~/x", "/h/x/y"));
  EXPECT_FALSE(matches("", "/p/a"));
  EXPECT_TRUE(matches("d/", "/p/d/x"));
  EXPECT_FALSE(matches("d/", "/p/d"));
}

// Would take exponential time if every star tried every length.
TEST(Glob, ManyStarsEndSoon) {
  std::string path;
  std::string pattern;
  for (int i = 0; i < 200; ++i) path += "/a";
  for (int i = 0; i < 40; ++i) pattern += "/**/a*a*";
  EXPECT_FALSE(Glob(pattern + "/b", "/p", "/h").matches(path));
  EXPECT_FALSE(matches_component(std::string(60, '*') + "b", std::string(2000, 'a')));
}

TEST(FilterFile, ALineIsAPatternAndAMarkTurnsItRound) {
  const base::testing::TempDir dir;
  std::ofstream(dir.path() / kFilterFile) << "# scratch\n*.log\n\n!important.log  \r\n\\#odd\n!\n";
  const auto user_rules = read_filter_file(dir.path());
  ASSERT_TRUE(user_rules) << user_rules.error().line();
  ASSERT_EQ(user_rules->size(), 3U);
  EXPECT_EQ((*user_rules)[0].pattern, "*.log");
  EXPECT_FALSE((*user_rules)[0].keep);
  EXPECT_EQ((*user_rules)[1].pattern, "important.log");
  EXPECT_TRUE((*user_rules)[1].keep);
}

TEST(FilterFile, NoFileIsNoRules) {
  const base::testing::TempDir dir;
  const auto user_rules = read_filter_file(dir.path());
  ASSERT_TRUE(user_rules);
  EXPECT_TRUE(user_rules->empty());
}

TEST(FilterFile, AnUnreadableFileIsReported) {
  const base::testing::TempDir dir;
  std::filesystem::create_directory(dir.path() / kFilterFile);
  EXPECT_FALSE(read_filter_file(dir.path()));
}

// The later rule wins, so the command line goes after the file.
TEST(FilterFile, WorksInTheFilter) {
  const base::testing::TempDir dir;
  std::ofstream(dir.path() / kFilterFile) << "*.log\n!keep.log\n";
  auto user_rules = read_filter_file(dir.path());
  ASSERT_TRUE(user_rules);
  Filter filter({.root = dir.path(), .user_rules = *user_rules});
  const auto kept = [&](const char* name) {
    return filter.rule(filter.rule_for((dir.path() / name).string())).keep;
  };
  EXPECT_FALSE(kept("a.log"));
  EXPECT_TRUE(kept("keep.log"));
  EXPECT_TRUE(kept("data.csv"));
}

}  // namespace
}  // namespace assay::lineage
