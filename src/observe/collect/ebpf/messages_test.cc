#include "observe/collect/ebpf/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/testing/temp_dir.h"

namespace assay::collect {
namespace {

using ::testing::ElementsAre;
using wire::RecordOp;

TEST(TurnRound, NamesBecomeAPath) {
  std::string path = "left over";
  reversed_path("file/inner/outer/", path);
  EXPECT_EQ(path, "/outer/inner/file");
  reversed_path("file/", path);
  EXPECT_EQ(path, "/file");
  reversed_path("", path);
  EXPECT_EQ(path, "");
}

RC_GTEST_PROP(TurnRound, IsThePathOfTheNames, ()) {
  const auto names = *rc::gen::container<std::vector<std::string>>(
      rc::gen::nonEmpty(rc::gen::string<std::string>()));
  std::string given;
  std::string expected;
  for (std::string name : names) {
    std::replace(name.begin(), name.end(), '/', '_');
    given += name + "/";
    expected = "/" + name + expected;
  }
  std::string path;
  reversed_path(given, path);
  RC_ASSERT(path == expected);
}

struct SampleMessage {
  RecordOp op;
  std::string path, other;
  bool operator==(const SampleMessage&) const = default;
};

class EbpfMessagesTest : public ::testing::Test {
 protected:
  void receive(assay_message message, const std::string& names, const std::string& other = {}) {
    message.process = message.thread = 42;
    messages_.receive(message, names, other, [&](const Event& event) {
      told_.push_back({event.op, std::string(event.path), std::string(event.other)});
    });
  }
  static std::string reversed(const std::filesystem::path& path) {
    std::string out;
    for (const auto& name : path.relative_path()) out.insert(0, name.string() + "/");
    return out;
  }

  base::testing::TempDir folder_;
  EbpfMessages messages_;
  std::vector<SampleMessage> told_;
};

TEST_F(EbpfMessagesTest, AScriptIsReportedWithItsInterpreters) {
  const auto script = folder_.path() / "script";
  const auto between = folder_.path() / "between";
  std::ofstream(script) << "#! " << between.string() << " -x\nbody";
  std::ofstream(between) << "#!/bin/sh\n";
  receive({.kind = kAssayScript}, reversed(folder_.path()), "script");
  receive({.kind = kAssayExec}, "sh/bin/", std::string("sh\0-x\0", 6));
  ASSERT_GE(told_.size(), 4U);
  EXPECT_EQ(told_[0], (SampleMessage{RecordOp::kExec, script, std::string("sh\0-x", 5)}));
  EXPECT_EQ(told_[1], (SampleMessage{RecordOp::kRead, script, ""}));
  EXPECT_EQ(told_[2], (SampleMessage{RecordOp::kRead, between, ""}));
  EXPECT_EQ(told_[3], (SampleMessage{RecordOp::kRead, "/bin/sh", ""}));
  // then the shell's loader, if it has one
}

TEST_F(EbpfMessagesTest, AScriptThatIsGoneLeavesItsInterpreter) {
  receive({.kind = kAssayScript}, reversed(folder_.path()), "gone");
  receive({.kind = kAssayExec}, "sh/bin/", "sh");
  ASSERT_GE(told_.size(), 3U);
  EXPECT_EQ(told_[0], (SampleMessage{RecordOp::kExec, folder_.path() / "gone", "sh"}));
  EXPECT_EQ(told_[2], (SampleMessage{RecordOp::kRead, "/bin/sh", ""}));
}

TEST_F(EbpfMessagesTest, AnUnnamedFileIsReportedByItsDirectory) {
  receive({.kind = kAssayOpen, .access = kAssayCreateUnnamed}, "#123/tmp/");
  EXPECT_THAT(told_, ElementsAre(SampleMessage{RecordOp::kCreate, "/tmp", ""}));
}

TEST_F(EbpfMessagesTest, CountsFilesWhosePathsLeadElsewhere) {
  receive({.kind = kAssayOpen, .access = kAssayRead, .hints = kAssayOtherNamespace},
          reversed(folder_.path() / "absent"));
  EXPECT_EQ(messages_.foreign_opens(), 1U);
}

TEST_F(EbpfMessagesTest, InvalidMessagesAreDropped) {
  receive({.kind = 77}, "file/");
  receive({.kind = kAssayOpen, .access = 77}, "file/");
  EXPECT_TRUE(told_.empty());
}

}  // namespace
}  // namespace assay::collect
