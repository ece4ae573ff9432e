// A fresh clone with the diff applied must equal, byte for byte, the tree the run started in.
#include "lineage/source/git.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <utility>

#include "lineage/redact/diff.h"
#include "lineage/testing/checkout.h"

namespace assay::lineage {
namespace {

using testing::Checkout;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::tree_of;

const std::string kBinary("\0\1\2\xff\n\0binary\0", 14);

GitState state_of(const Checkout& checkout, const GitLimits& limits = {}) {
  return git_state(checkout.path(), checkout.environment(), limits);
}

// clone, checkout, apply: what `reproduce` and a person would do.
std::map<std::string, std::string> made_again(const Checkout& original, const store::Git& git,
                                              const std::filesystem::path& at) {
  const Checkout clone(at);
  if (git.commit.empty()) {
    clone.init();
  } else {
    clone.git({"clone", "-q", "--no-checkout", original.path().string(), "."});
    clone.git({"checkout", "-q", git.commit});
  }
  if (!git.diff.empty()) clone.git({"apply", "-"}, git.diff);
  return tree_of(at);
}

class GitTest : public ::testing::Test {
 protected:
  base::testing::TempDir folder_;
  Checkout checkout_{folder_.path() / "project"};

  void expect_made_again() {
    const std::string index = testing::content_of(checkout_.path() / ".git/index");
    const auto before = tree_of(checkout_.path());
    const auto objects = checkout_.git({"count-objects"});
    const GitState state = state_of(checkout_);
    ASSERT_TRUE(state.git) << state.problem;
    EXPECT_EQ(made_again(checkout_, *state.git, folder_.path() / "clone"), before)
        << state.git->diff;
    EXPECT_EQ(testing::content_of(checkout_.path() / ".git/index"), index);
    EXPECT_EQ(checkout_.git({"count-objects"}), objects);
  }
};

TEST_F(GitTest, NoRepository) {
  const GitState state = state_of(checkout_);
  EXPECT_FALSE(state.git);
  EXPECT_EQ(state.problem, "");
}

TEST_F(GitTest, CleanCheckout) {
  checkout_.init();
  checkout_.write("a", "1\n");
  checkout_.write(".gitignore", "ignored\n");
  checkout_.commit();
  checkout_.write("ignored", "x");
  checkout_.git({"remote", "add", "origin", "https://me:hunter2@example.org/p.git"});
  const GitState state = state_of(checkout_);
  ASSERT_TRUE(state.git) << state.problem;
  EXPECT_EQ(state.git->root, std::filesystem::canonical(checkout_.path()).string());
  EXPECT_EQ(state.git->commit + "\n", checkout_.git({"rev-parse", "HEAD"}));
  EXPECT_EQ(state.git->branch, "main");
  EXPECT_EQ(state.git->remote, "https://example.org/p.git");
  EXPECT_FALSE(state.git->dirty);
  EXPECT_EQ(state.git->diff, "");
  EXPECT_THAT(state.git->left_out, IsEmpty());
}

TEST_F(GitTest, FromASubdirectoryAndDetached) {
  checkout_.init();
  checkout_.write("sub/a", "1\n");
  checkout_.commit();
  checkout_.git({"checkout", "-q", "--detach"});
  checkout_.write("sub/new", "2\n");
  checkout_.write("top", "3\n");
  const GitState state = git_state(checkout_.path() / "sub", checkout_.environment());
  ASSERT_TRUE(state.git) << state.problem;
  EXPECT_EQ(state.git->branch, "");
  EXPECT_EQ(made_again(checkout_, *state.git, folder_.path() / "clone"), tree_of(checkout_.path()));
}

TEST_F(GitTest, EveryKindOfChange) {
  checkout_.init();
  for (const char* name :
       {"edited", "staged", "both", "deleted", "staged deletion", "mode", "moved", "to link",
        "sp ace", "uml\xc3\xa4ut", "bad\xff name", "ta\tb", "dir/file"}) {
    checkout_.write(name, "one\ntwo\nthree\nfour\nfive\nsix\nseven\n");
  }
  checkout_.write("binary", kBinary);
  checkout_.write("crlf", "a\r\nb\r\nc\r\n");
  checkout_.write("no newline", "a\nb");
  checkout_.write("-diff attribute", "a\n");
  checkout_.write(".gitattributes", "*attribute -diff\n");
  std::filesystem::create_symlink("edited", checkout_.path() / "link");
  checkout_.commit();

  checkout_.write("edited", "one\ntwo\n3\nfour\nfive\nsix\nseven\n");
  checkout_.write("staged", "only staged\n");
  checkout_.write("both", "staged\n");
  checkout_.git({"add", "staged", "both"});
  checkout_.write("both", "unstaged\n");
  std::filesystem::remove(checkout_.path() / "deleted");
  checkout_.git({"rm", "-q", "staged deletion"});
  std::filesystem::permissions(checkout_.path() / "mode", std::filesystem::perms(0755));
  checkout_.git({"mv", "moved", "moved elsewhere"});
  std::filesystem::remove(checkout_.path() / "to link");
  std::filesystem::create_symlink("nowhere", checkout_.path() / "to link");
  std::filesystem::remove(checkout_.path() / "link");
  checkout_.write("link", "a file now\n");
  std::filesystem::remove_all(checkout_.path() / "dir");
  checkout_.write("dir", "a file now\n");
  for (const char* name : {"sp ace", "uml\xc3\xa4ut", "bad\xff name", "ta\tb"}) {
    checkout_.write(name, "changed\n");
  }
  checkout_.write("binary", kBinary + kBinary);
  checkout_.write("crlf", "a\r\nB\r\nc\nd\r\n");
  checkout_.write("no newline", "a\nb\nc");
  checkout_.write("-diff attribute", "b\n");

  checkout_.write("untracked", "new\n");
  checkout_.write("untracked binary", kBinary);
  checkout_.write("deep/er/\"quoted\"", "x\r\ny");
  checkout_.write(":(top)pathspec*", "x");
  checkout_.write("empty", "");
  checkout_.write("program", "#!/bin/sh\n");
  std::filesystem::permissions(checkout_.path() / "program", std::filesystem::perms(0755));
  std::filesystem::create_symlink("../out", checkout_.path() / "deep/link");
  checkout_.write("staged new", "1\n");
  checkout_.git({"add", "staged new"});
  checkout_.write("deep/intended", "1\n");
  checkout_.git({"add", "-N", "deep/intended"});
  expect_made_again();
}

TEST_F(GitTest, AStoreThatIsBeingMadeIsNotAChange) {
  checkout_.init();
  checkout_.write("a", "1\n");
  checkout_.commit();
  checkout_.write(".assay/assay.db", "not ignored yet");
  checkout_.write("deep/.assay/assay.db", "nor this");
  EXPECT_FALSE(state_of(checkout_).git->dirty);
}

TEST_F(GitTest, SettingsOfTheUserDoNotChangeTheDifference) {
  checkout_.init();
  checkout_.write("src/a", "1\n\n3\n");
  checkout_.write("z.txt", "one\n");
  checkout_.write(".gitattributes", "*.txt diff=shout\n");
  checkout_.commit();
  checkout_.write("src/a", "1\n\n4\n");
  checkout_.write("z.txt", "two\n");
  checkout_.write("src/new", "1\n");
  for (const auto& [key, value] :
       std::map<std::string, std::string>{{"diff.noprefix", "true"},
                                          {"diff.mnemonicPrefix", "true"},
                                          {"diff.relative", "true"},
                                          {"color.ui", "always"},
                                          {"color.diff", "always"},
                                          {"diff.external", "/bin/false"},
                                          {"diff.shout.textconv", "tr a-z A-Z <"},
                                          {"diff.context", "0"},
                                          {"diff.renames", "copies"},
                                          {"core.pager", "/bin/false"},
                                          {"diff.suppressBlankEmpty", "true"},
                                          {"diff.submodule", "log"},
                                          {"diff.wordRegex", "."},
                                          {"diff.algorithm", "patience"},
                                          {"diff.colorMoved", "zebra"},
                                          {"status.relativePaths", "true"},
                                          {"diff.stat", "true"},
                                          {"status.short", "true"},
                                          {"core.safecrlf", "true"},
                                          {"core.splitIndex", "true"},
                                          {"core.fsmonitor", "/bin/false"},
                                          {"diff.indentHeuristic", "true"},
                                          {"diff.ignoreSubmodules", "all"},
                                          {"status.showUntrackedFiles", "normal"}}) {
    checkout_.git({"config", key, value});
  }
  expect_made_again();
}

TEST_F(GitTest, ConflictsAndCommitlessRepositories) {
  checkout_.init();
  checkout_.write("a", "1\n");
  checkout_.write("b", kBinary);
  checkout_.git({"add", "a"});
  const GitState fresh = state_of(checkout_);
  ASSERT_TRUE(fresh.git) << fresh.problem;
  EXPECT_EQ(fresh.git->commit, "");
  EXPECT_EQ(made_again(checkout_, *fresh.git, folder_.path() / "fresh"), tree_of(checkout_.path()));

  checkout_.commit();
  checkout_.git({"checkout", "-q", "-b", "other"});
  checkout_.write("a", "2\n");
  checkout_.commit();
  checkout_.git({"checkout", "-q", "main"});
  checkout_.write("a", "3\n");
  checkout_.commit();
  (void)base::run_captured({.arguments = {"git", "merge", "other"},
                            .environment = checkout_.environment(),
                            .directory = checkout_.path()});
  ASSERT_THAT(checkout_.git({"status", "--porcelain"}), HasSubstr("UU a"));
  expect_made_again();
}

TEST_F(GitTest, LargeUntrackedFilesAreNamed) {
  checkout_.init();
  checkout_.commit();
  checkout_.write("a-big", std::string(2000, 'x'));
  checkout_.write("b", std::string(600, 'x'));
  checkout_.write("c", std::string(600, 'x'));
  const GitState state = state_of(checkout_, {.untracked_file = 1000, .untracked_total = 1000});
  ASSERT_TRUE(state.git);
  EXPECT_TRUE(state.git->dirty);
  EXPECT_THAT(state.git->left_out, ElementsAre(HasSubstr("a-big ("), HasSubstr("c (")));
  EXPECT_THAT(state.git->diff, HasSubstr("b/b"));
}

TEST_F(GitTest, SubmodulesAndNestedRepositoriesAreNamed) {
  const Checkout library(folder_.path() / "library");
  library.init();
  library.write("l", "1\n");
  library.commit();
  checkout_.init();
  checkout_.git({"submodule", "--quiet", "add", library.path().string(), "lib"});
  checkout_.commit();
  ASSERT_FALSE(state_of(checkout_).git->dirty);
  checkout_.write("lib/l", "2\n");
  const Checkout nested(checkout_.path() / "nested");
  nested.init();
  nested.commit();
  const GitState state = state_of(checkout_);
  ASSERT_TRUE(state.git) << state.problem;
  EXPECT_TRUE(state.git->dirty);
  EXPECT_THAT(state.git->left_out,
              ElementsAre(HasSubstr("lib (a submodule"), HasSubstr("nested/ (a repository")));
  EXPECT_EQ(state.git->diff, "");
}

TEST_F(GitTest, WorktreesAndOwnIndexFiles) {
  checkout_.init();
  checkout_.write("a", "1\n");
  checkout_.commit();
  checkout_.git({"worktree", "add", "-q", "../second", "-b", "second"});
  const Checkout second(folder_.path() / "second");
  second.write("a", "2\n");
  second.write("new", "2\n");
  const GitState state = state_of(second);
  ASSERT_TRUE(state.git) << state.problem;
  EXPECT_EQ(state.git->branch, "second");
  EXPECT_EQ(made_again(checkout_, *state.git, folder_.path() / "clone"), tree_of(second.path()));
}

// git sets these variables in hooks; they may name any repository.
TEST_F(GitTest, VariablesOfAHookNeitherRedirectNorWriteAnything) {
  const Checkout other(folder_.path() / "other");
  for (const Checkout* each : {&std::as_const(checkout_), &other}) {
    each->init();
    each->write("a", "1\n");
    each->commit();
    each->write("a", each == &other ? "other\n" : "2\n");
    each->write("new", "untracked\n");
  }
  const GitState expected = state_of(checkout_);
  ASSERT_TRUE(expected.git) << expected.problem;

  for (const Checkout* named : {&std::as_const(checkout_), &other}) {
    const auto git_folder = named->path() / ".git";
    const auto index = testing::content_of(git_folder / "index");
    const auto objects = named->git({"count-objects"});
    base::Environment hook(checkout_.environment());
    hook.set("GIT_DIR", git_folder.string());
    hook.set("GIT_WORK_TREE", named->path().string());
    hook.set("GIT_INDEX_FILE", (git_folder / "index").string());
    hook.set("GIT_OBJECT_DIRECTORY", (git_folder / "objects").string());
    hook.set("GIT_ALTERNATE_OBJECT_DIRECTORIES", (git_folder / "objects").string());
    hook.set("GIT_PREFIX", "");
    for (const bool with_repository : {true, false}) {  // many hooks get only GIT_INDEX_FILE
      const GitState state = git_state(checkout_.path(), hook.entries());
      ASSERT_TRUE(state.git) << state.problem;
      EXPECT_EQ(state.git->root, expected.git->root);
      EXPECT_EQ(state.git->commit, expected.git->commit);
      EXPECT_EQ(state.git->diff, expected.git->diff);
      EXPECT_EQ(testing::content_of(git_folder / "index"), index);
      EXPECT_EQ(named->git({"count-objects"}), objects);
      if (with_repository) {
        hook.unset("GIT_DIR");
        hook.unset("GIT_WORK_TREE");
      }
    }
    // Outside every checkout, a hook's repository is not taken for the project's.
    std::filesystem::create_directory(folder_.path() / "plain");
    hook.set("GIT_DIR", git_folder.string());
    EXPECT_FALSE(git_state(folder_.path() / "plain", hook.entries()).git);
    hook.set("GIT_WORK_TREE", named->path().string());
    EXPECT_FALSE(git_state(folder_.path() / "plain", hook.entries()).git);
    std::filesystem::remove(folder_.path() / "plain");
  }
}

// As a home directory is kept in git: no .git above, but GIT_DIR and GIT_WORK_TREE.
TEST_F(GitTest, AWorkTreeWhoseRepositoryIsElsewhere) {
  checkout_.init();
  checkout_.write("sub/a", "1\n");
  checkout_.commit();
  std::filesystem::rename(checkout_.path() / ".git", folder_.path() / "repository");
  checkout_.write("sub/new", "2\n");
  base::Environment environment(checkout_.environment());
  environment.set("GIT_DIR", "../../repository");
  environment.set("GIT_WORK_TREE", "..");
  const GitState state = git_state(checkout_.path() / "sub", environment.entries());
  ASSERT_TRUE(state.git) << state.problem;
  EXPECT_EQ(state.git->root, std::filesystem::canonical(checkout_.path()).string());
  EXPECT_THAT(state.git->diff, HasSubstr("b/sub/new"));
}

// `git diff` refreshes the index of a file that has a new time and the same content.
TEST_F(GitTest, TouchedFilesLeaveTheIndexAsItIs) {
  checkout_.init();
  checkout_.write("touched", "1\n");
  checkout_.write("changed", "1\n");
  checkout_.commit();
  const auto past = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(checkout_.path() / "touched", past);
  checkout_.write("changed", "2\n");
  expect_made_again();
}

TEST_F(GitTest, BareRepositoriesHaveNoTree) {
  checkout_.git({"init", "-q", "--bare"});
  EXPECT_FALSE(state_of(checkout_).git);
  checkout_.write(".git", "no gitdir");
  EXPECT_NE(state_of(checkout_).problem, "");
}

TEST_F(GitTest, ProblemsAreReported) {
  checkout_.init();
  checkout_.commit();
  checkout_.write("new", std::string(2000, '1') + "\n");
  const char* path = std::getenv("PATH");
  const std::string kept = path == nullptr ? "" : path;
  ::setenv("PATH", "/nonexistent", 1);
  const GitState none = state_of(checkout_);
  ::setenv("PATH", kept.c_str(), 1);
  EXPECT_FALSE(none.git);
  EXPECT_THAT(none.problem, HasSubstr("not installed"));

  const GitState slow = state_of(checkout_, {.timeout = std::chrono::milliseconds(0)});
  EXPECT_FALSE(slow.git);
  EXPECT_THAT(slow.problem, HasSubstr("too long"));

  const GitState large = state_of(checkout_, {.diff = 1000});  // enough for the other answers
  ASSERT_TRUE(large.git) << large.problem;
  EXPECT_TRUE(large.git->dirty);
  EXPECT_EQ(large.git->diff, "");
}

TEST_F(GitTest, RemoteOfTheBranch) {
  checkout_.init();
  checkout_.commit();
  checkout_.git({"remote", "add", "upstream", "git@example.org:up.git"});
  EXPECT_EQ(state_of(checkout_).git->remote, "git@example.org:up.git");
  checkout_.git({"remote", "add", "origin", "ssh://me@example.org/o.git"});
  EXPECT_EQ(state_of(checkout_).git->remote, "ssh://me@example.org/o.git");
  checkout_.git({"config", "branch.main.remote", "upstream"});
  EXPECT_EQ(state_of(checkout_).git->remote, "git@example.org:up.git");
}

// Random changes to a random tree.
RC_GTEST_PROP(GitProperty, DifferenceMakesTheTreeAgain, ()) {
  const base::testing::TempDir folder;
  const Checkout checkout(folder.path() / "project");
  checkout.init();
  const auto name = [] {
    return *rc::gen::element<std::string>("a", "b", "c d", "dir/a", "dir/b", "dir/sub/\xc3\xb6",
                                          "x\ny", "q\"t", "back\\slash");
  };
  const auto content = [] {
    return *rc::gen::oneOf(
        rc::gen::just(kBinary), rc::gen::just(std::string()),
        rc::gen::map(rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
                         "x\n", "y\n", "z\r\n", " \t\n", "\n", "end")),
                     [](const std::vector<std::string>& lines) {
                       std::string all;
                       for (const std::string& line : lines) all += line;
                       return all;
                     }));
  };
  const auto change = [&](bool may_stage) {
    const std::filesystem::path path = checkout.path() / name();
    switch (*rc::gen::inRange(0, may_stage ? 6 : 3)) {
      case 0:
      case 1:
        checkout.write(path.lexically_relative(checkout.path()).string(), content());
        break;
      case 2: {
        std::error_code ignored;
        std::filesystem::remove(path, ignored);
        std::filesystem::create_directories(path.parent_path());
        std::filesystem::create_symlink(name(), path);
        break;
      }
      case 3: {
        std::error_code ignored;
        std::filesystem::remove(path, ignored);
        break;
      }
      case 4:
        if (std::filesystem::is_regular_file(std::filesystem::symlink_status(path))) {
          std::filesystem::permissions(path, std::filesystem::perms(0755));
        }
        break;
      default:
        checkout.git({"add", "-A"});
    }
  };
  for (int i = *rc::gen::inRange(0, 6); i > 0; --i) change(false);
  checkout.commit();
  for (int i = *rc::gen::inRange(0, 8); i > 0; --i) change(true);

  const GitState state = state_of(checkout);
  RC_ASSERT(state.git.has_value());
  RC_ASSERT(made_again(checkout, *state.git, folder.path() / "clone") == tree_of(checkout.path()));
  RC_ASSERT(state.git->dirty == !checkout.git({"status", "--porcelain"}).empty());
}

TEST(SecretDiff, KeysAndTokensAreBlankedAndTheRestIsAsItWas) {
  const std::string token = std::string("ghp") + "_16C7e42F292c6912E7710c838347Ae178B4a";
  const std::string diff =
      "--- /dev/null\n+++ b/config.py\n@@ -0,0 +1,5 @@\n+T = '" + token +
      "'\n+-----BEGIN PRIVATE KEY-----\n+MIIE\n+-----END PRIVATE KEY-----\n+x = 1\n";
  std::vector<std::string> left_out;
  EXPECT_EQ(redact_diff(diff, left_out),
            "--- /dev/null\n+++ b/config.py\n@@ -0,0 +1,5 @@\n+T = '[redacted]'\n"
            "+[redacted]\n+[redacted]\n+[redacted]\n+x = 1\n");
  EXPECT_THAT(left_out, ::testing::ElementsAre("config.py (secrets in it were redacted)"));
  left_out.clear();
  const std::string plain = "+++ b/x\n-old " + token + "\n+new\n\\ No newline at end of file";
  EXPECT_EQ(redact_diff(plain, left_out), plain);
  EXPECT_TRUE(left_out.empty());
}

TEST(SecretDiff, WhatLeavesTheMachineHasNoSecretOfTheCommitEither) {
  const std::string token = std::string("ghp") + "_16C7e42F292c6912E7710c838347Ae178B4a";
  const std::string key = "MIIEvQ1BADANBgkqh5kiG9w0BAQ7EFAASC3Kcw8gSjAgEAAoIBAQ9";
  const std::string diff =
      "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,9 +1,8 @@ T = '" + token + "'\n " +
      key + "\n--- " + token + "\n+++ " + token + "\n T='" + token + "'\n-" + std::string(5, '-') +
      "BEGIN PRIVATE KEY-----\n MIIE\n" + "-" + std::string(5, '-') +
      "END PRIVATE KEY-----\n-x = 1\n" +
      "diff --git a/.env b/.env\n--- a/.env\n+++ /dev/null\n@@ -1 +0,0 @@\n"
      "-PASSWORD=tr0ub4dor\n";
  std::vector<std::string> left_out;
  EXPECT_EQ(redact_diff(diff, left_out, DiffLines::kAll),
            "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,9 +1,8 @@ T = '[redacted]'\n"
            " [redacted]\n--- [redacted]\n+++ [redacted]\n T='[redacted]'\n-[redacted]\n"
            " [redacted]\n-[redacted]\n-x = 1\n"
            "diff --git a/.env b/.env\n--- a/.env\n+++ /dev/null\n@@ -1 +0,0 @@\n-[redacted]\n");
  EXPECT_THAT(left_out, ::testing::ElementsAre("x.py (secrets in it were redacted)",
                                               ".env (secrets in it were redacted)"));
}

TEST(SecretDiff, FilesByTheirName) {
  for (const char* name : {".env", "a/.env.local", "key.pem", ".ssh/id_rsa", "prod.env"}) {
    EXPECT_TRUE(is_secret_file(name)) << name;
  }
  for (const char* name : {".env.example", "environment.yml", "env.py", "keys.py"}) {
    EXPECT_FALSE(is_secret_file(name)) << name;
  }
}

}  // namespace
}  // namespace assay::lineage
