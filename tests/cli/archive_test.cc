// assay archive, run --archive, restore, and what gc does with the archive.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/shell_project.h"

namespace assay {
namespace {

using base::Json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ArchiveCli : public support::ShellProject {
 protected:
  // How many contents there are, by find(1).
  std::string objects() {
    return shell("find .assay/archive -mindepth 2 -type f 2>/dev/null | wc -l").out;
  }
};

TEST_F(ArchiveCli, NothingIsKeptUnlessAskedFor) {
  shell("$A run -- sh -c 'echo 1 > out'");
  EXPECT_EQ(objects(), "0\n");
  EXPECT_THAT(shell("$A archive").out, StartsWith("the archive holds 0 B in 0 contents"));
}

TEST_F(ArchiveCli, AnOldResultComesBack) {
  shell("echo one > in; $A run -- cp in model; $A label model first; $A archive model");
  const std::string hash = json("lineage model")["subject"].dump();
  shell("echo two > in; $A run @1");
  ASSERT_EQ(content("model"), "two\n");
  EXPECT_EQ(shell("$A restore first -o old/model").exit_code, 0);
  EXPECT_EQ(content("old/model"), "one\n");
  const auto refused = shell("$A restore first");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("model: has different content and is not overwritten"));
  EXPECT_EQ(content("model"), "two\n");
  EXPECT_THAT(shell("$A restore first --force").out, HasSubstr("replaced"));
  EXPECT_EQ(content("model"), "one\n");
}

TEST_F(ArchiveCli, ARunIsKeptAndRestoredAsAWhole) {
  const auto ran =
      shell("mkdir d; $A run --archive -- sh -c 'echo a > x; echo b > d/y; echo b > same'");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.err, HasSubstr("assay: archived 2 contents"));
  EXPECT_EQ(objects(), "2\n");
  shell("rm -r x d same");
  EXPECT_EQ(shell("$A status").exit_code, 1);
  EXPECT_EQ(shell("$A restore last").exit_code, 0);
  EXPECT_EQ(content("x") + content("d/y") + content("same"), "a\nb\nb\n");
  EXPECT_EQ(shell("$A status").exit_code, 0);
  EXPECT_EQ(shell("$A restore 1 -o elsewhere").exit_code, 0);
  EXPECT_EQ(content("elsewhere/d/y"), "b\n");
  // Repeated with the stage.
  shell("$A run @1 2> again");
  EXPECT_THAT(content("again"), HasSubstr("2 there already"));
}

TEST_F(ArchiveCli, ALogIsNotAResult) {
  shell("$A run --archive -- sh -c 'echo a > x; echo said' > log; rm x; echo more >> log");
  EXPECT_EQ(objects(), "1\n");
  EXPECT_EQ(shell("$A restore last").exit_code, 0);
  EXPECT_EQ(content("log"), "said\nmore\n");
  EXPECT_EQ(content("x"), "a\n");
}

TEST_F(ArchiveCli, ARunIsRestoredWhollyOrNotAtAll) {
  shell("$A run --archive -- sh -c 'echo a > x; echo b > y'; rm x; echo mine > y");
  EXPECT_EQ(shell("$A restore last").exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(project_.path() / "x"));
  EXPECT_EQ(content("y"), "mine\n");
}

TEST_F(ArchiveCli, WhatChangedSinceIsNotKept) {
  shell("$A run -- sh -c 'echo a > x; echo b > y'; echo changed > x");
  const auto outcome = shell("$A archive last");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out,
              HasSubstr("not archived: x has changed since it was recorded, or is gone"));
  EXPECT_EQ(objects(), "1\n");
  // It is still at another recorded path.
  shell("$A run -- sh -c 'echo c > p'; $A run -- cp p q; echo changed > p");
  EXPECT_EQ(shell("$A archive p").exit_code, 0) << "its content is at q";
}

TEST_F(ArchiveCli, ALimitIsKept) {
  shell("$A run -- sh -c 'head -c 3000 /dev/zero > x'");
  EXPECT_EQ(shell("$A archive --limit 2KiB").exit_code, 0);
  const auto refused = shell("$A archive last");
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("would exceed its limit of 2.00 KiB"));
  EXPECT_EQ(objects(), "0\n");
  const auto ran = shell("$A run --archive -- sh -c 'head -c 4000 /dev/zero > y'");
  EXPECT_EQ(ran.exit_code, 0) << "the command is not affected";
  EXPECT_THAT(ran.err, HasSubstr("nothing was archived"));
  EXPECT_EQ(shell("$A archive --limit none; $A archive last").exit_code, 0);
}

TEST_F(ArchiveCli, GcRemovesWhatNothingRefersTo) {
  shell("echo 1 > in; $A run --archive -- cp in out; echo 2 > in; $A run --archive -- cp in out");
  EXPECT_EQ(objects(), "2\n");
  const Json dry = json("gc --dry-run");
  EXPECT_EQ(dry["archived_contents"], 1);
  EXPECT_EQ(objects(), "2\n");
  EXPECT_EQ(json("gc")["archived_bytes"], 2);
  EXPECT_EQ(objects(), "1\n");
  EXPECT_EQ(shell("rm out; $A restore @1").exit_code, 0);
  EXPECT_EQ(content("out"), "2\n");
}

TEST_F(ArchiveCli, BadInputIsOneLine) {
  shell("$A run -- true; echo x > file");
  const auto line = [&](const std::string& arguments, int code) {
    const auto outcome = shell("$A " + arguments);
    EXPECT_EQ(outcome.exit_code, code) << arguments;
    return outcome.err;
  };
  EXPECT_THAT(line("archive nothing", 64), HasSubstr("neither a run nor a file"));
  EXPECT_THAT(line("archive file", 64), HasSubstr("neither a run nor a file"));
  EXPECT_EQ(line("archive 1", 64), "assay: archive '1': has no recorded content to archive\n");
  EXPECT_EQ(line("restore 1", 64), "assay: restore '1': has no recorded content to restore\n");
  EXPECT_THAT(line("archive --limit much", 64), HasSubstr("'much' is not a size"));
  EXPECT_THAT(line("restore", 64), HasSubstr("NAME"));
  shell("$A run -- sh -c 'echo 1 > out'");
  EXPECT_THAT(line("restore out -o else", 1), HasSubstr("is not archived"));
}

}  // namespace
}  // namespace assay
