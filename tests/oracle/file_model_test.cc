// The model against lineages written by hand. The calls are made up, so that strace is not needed.
#include "oracle/file_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::oracle {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// A folder /t with files a and b, a folder d with file c, and a link l to d.
Snapshot before() {
  using enum Snapshot::Kind;
  Snapshot snapshot;
  snapshot.entries = {{"a", {kFile, 1, 5, 100, ""}},
                      {"b", {kFile, 2, 5, 100, ""}},
                      {"d", {kFolder, 3, 0, 100, ""}},
                      {"d/c", {kFile, 4, 5, 100, ""}},
                      {"l", {kLink, 5, 1, 100, "d"}}};
  return snapshot;
}

Argument text(const std::string& words) {
  return {.text = words};
}
Argument path(const std::string& name) {
  return {.quoted = name};
}
Argument fd(const std::string& target, const std::string& number = "3") {
  return {.text = number, .path = target};
}

Call call(const std::string& name, std::vector<Argument> arguments, Argument result = text("0")) {
  return {7, name, std::move(arguments), std::move(result)};
}
Call open_call(const std::string& absolute, const std::string& flags) {
  return call("open", {path(absolute), text(flags)}, fd(absolute));
}

Lineage lineage_of(const std::vector<Call>& calls, const Snapshot& after = before()) {
  FileModel model("/t", before());
  model.replay(calls, "/t");
  EXPECT_THAT(model.problems(), IsEmpty());
  return model.result(after);
}

TEST(FileModel, ReadsAndWrites) {
  const Lineage lineage =
      lineage_of({open_call("/t/a", "O_RDONLY"), open_call("/t/new", "O_WRONLY|O_CREAT"),
                  open_call("/t/b", "O_WRONLY|O_TRUNC"), open_call("/elsewhere", "O_RDONLY")});
  EXPECT_THAT(lineage.inputs, ElementsAre("a"));
  EXPECT_THAT(lineage.outputs, ElementsAre(Pair("b", "modified"), Pair("new", "created")));
}

TEST(FileModel, WhatTheCommandMadeIsNoInput) {
  const Lineage lineage =
      lineage_of({open_call("/t/new", "O_WRONLY|O_CREAT"), open_call("/t/new", "O_RDONLY"),
                  open_call("/t/b", "O_WRONLY|O_TRUNC"), open_call("/t/b", "O_RDONLY")});
  EXPECT_THAT(lineage.inputs, IsEmpty());
}

TEST(FileModel, OpenForWritingIsNotWriting) {
  const std::vector<Call> calls = {open_call("/t/a", "O_RDWR"), open_call("/t/b", "O_WRONLY")};
  const Lineage same = lineage_of(calls);
  EXPECT_THAT(same.inputs, ElementsAre("a"));
  EXPECT_THAT(same.outputs, IsEmpty());
  Snapshot after = before();
  after.entries["a"].mtime_ns = 200;  // through a mapping, say
  EXPECT_THAT(lineage_of(calls, after).outputs, ElementsAre(Pair("a", "modified")));
}

TEST(FileModel, FollowsNames) {
  const Lineage lineage = lineage_of({
      call("chdir", {path("l")}),
      call("rename", {path("c"), path("../e")}),
      call("rename", {path("../e"), path("f")}),
      call("unlinkat", {fd("/t", "4"), path("b"), text("0")}),
  });
  EXPECT_THAT(lineage.inputs, ElementsAre("d/c"));
  EXPECT_THAT(lineage.outputs, ElementsAre(Pair("b", "deleted"), Pair("d/f", "renamed")));
}

TEST(FileModel, ThereAndBackIsNothing) {
  const Lineage lineage =
      lineage_of({call("rename", {path("a"), path("z")}), call("rename", {path("z"), path("a")})});
  EXPECT_THAT(lineage.inputs, IsEmpty());
  EXPECT_THAT(lineage.outputs, IsEmpty());
}

TEST(FileModel, RenameOverLinkExchangeAndFolder) {
  EXPECT_THAT(lineage_of({call("rename", {path("a"), path("b")})}).outputs,
              ElementsAre(Pair("b", "renamed")));
  const Lineage linked = lineage_of({call("link", {path("a"), path("z")})});
  EXPECT_THAT(linked.inputs, ElementsAre("a"));
  EXPECT_THAT(linked.outputs, ElementsAre(Pair("z", "linked")));
  const Lineage exchanged =
      lineage_of({call("renameat2", {text("AT_FDCWD"), path("a"), text("AT_FDCWD"), path("b"),
                                     text("RENAME_EXCHANGE")})});
  EXPECT_THAT(exchanged.inputs, ElementsAre("a", "b"));
  EXPECT_THAT(exchanged.outputs, ElementsAre(Pair("a", "renamed"), Pair("b", "renamed")));
  const Lineage folder =
      lineage_of({open_call("/t/d/c", "O_RDONLY"), call("rename", {path("d"), path("x")})});
  EXPECT_THAT(folder.outputs, ElementsAre(Pair("x/c", "renamed")));
}

TEST(FileModel, TemporaryFilesLeaveNothing) {
  const Lineage lineage = lineage_of(
      {open_call("/t/new", "O_WRONLY|O_CREAT"), call("rename", {path("new"), path("newer")}),
       call("unlink", {path("newer")}), open_call("/t/save", "O_WRONLY|O_CREAT"),
       call("rename", {path("save"), path("a")})});
  EXPECT_THAT(lineage.outputs, ElementsAre(Pair("a", "modified")));
}

TEST(FileModel, InheritedDescriptorsAreKnownByTheirUse) {
  const Lineage lineage =
      lineage_of({call("read", {fd("/t/a", "0"), text("x"), text("1")}, text("1")),
                  call("write", {fd("/t/out", "1"), text("x"), text("1")}, text("1"))});
  EXPECT_THAT(lineage.inputs, ElementsAre("a"));
  EXPECT_THAT(lineage.outputs, ElementsAre(Pair("out", "created")));
}

TEST(FileModel, ReportsWhatItCannotFollow) {
  FileModel model("/t", before());
  model.replay({open_call("/t/unheard_of", "O_RDONLY")}, "/t");
  EXPECT_EQ(model.problems().size(), 1U);
}

}  // namespace
}  // namespace assay::oracle
