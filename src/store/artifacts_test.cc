#include "store/artifacts.h"

#include "store/labels.h"
#include "store/run_reader.h"
#include "store/run_writer.h"
#include "store/testing/runs.h"
#include "store/testing/runs_fixture.h"

namespace assay::store {
namespace {

using testing::digest_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::line_of;
using testing::record;
using testing::run_of;

class ArtifactsTest : public testing::RunsTest {
 protected:
  // "RUN path" of each.
  static std::vector<std::string> text(const std::vector<FileAt>& files) {
    std::vector<std::string> lines;
    for (const FileAt& file : files) lines.push_back(fmt::format("{} {}", file.run, file.path));
    return lines;
  }
  // "RUN path" of the producer of the run's only input, or "".
  std::string producer(RunId reader) {
    Producers producers = *Producers::prepare(store_);
    const RunRecord run = *load_run(store_, reader);
    const auto found = *producers.of(run, run.inputs.at(0));
    return found ? fmt::format("{} {}", found->run, found->path) : "";
  }
  std::string same_content(RunId reader) {
    Producers producers = *Producers::prepare(store_);
    const RunRecord run = *load_run(store_, reader);
    const auto found = *producers.same_content(run, run.inputs.at(0));
    return found ? fmt::format("{} {}", found->run, found->path) : "";
  }
  std::vector<std::string> readers(RunId writer) {
    Producers producers = *Producers::prepare(store_);
    const RunRecord run = *load_run(store_, writer);
    return text(*producers.readers(run, run.outputs.at(0)));
  }
};

TEST_F(ArtifactsTest, ContentsAreFoundByTheirFirstDigits) {
  record(store_, "x a=1 b=2 -> c=3 d=1");
  const std::string hex = digest_of("3").hex();
  for (const std::size_t digits : {1U, 2U, 4U, 5U, 16U, 17U, 63U, 64U}) {
    const auto found = *contents_starting(store_, hex.substr(0, digits), 9);
    EXPECT_THAT(found, ::testing::Contains(digest_of("3"))) << digits;
    for (const hash::Digest& one : found) {
      EXPECT_EQ(one.hex().substr(0, digits), hex.substr(0, digits));
    }
  }
  // Independent: of all 3 contents, those that start with each digit.
  std::size_t all = 0;
  for (const char digit : std::string("0123456789abcdef")) {
    all += contents_starting(store_, std::string(1, digit), 9)->size();
  }
  EXPECT_EQ(all, 3U);
  std::string upper = hex.substr(0, 8);
  for (char& c : upper) c = static_cast<char>(std::toupper(c));
  EXPECT_THAT(*contents_starting(store_, upper, 9), ElementsAre(digest_of("3")));
}

TEST_F(ArtifactsTest, WhoLeftAndWhoReadAContent) {
  record(store_, "x -> a=1");
  record(store_, "x a=1 -> b=1");
  record(store_, "x b=1");
  EXPECT_THAT(text(*producers_of(store_, digest_of("1"))),
              ElementsAre("2 /project/b", "1 /project/a"));
  EXPECT_THAT(text(*consumers_of(store_, digest_of("1"))),
              ElementsAre("3 /project/b", "2 /project/a"));
  EXPECT_TRUE(producers_of(store_, digest_of("2"))->empty());
}

TEST_F(ArtifactsTest, APathMeansItsNewestOutputAndElseItsNewestInput) {
  record(store_, "x in=1 -> out=1");
  record(store_, "x in=2 -> out=2");
  record(store_, "x out=1");
  EXPECT_EQ((*latest_at(store_, "/project/out"))->blake3, digest_of("2"));
  EXPECT_EQ((*latest_at(store_, "/project/in"))->blake3, digest_of("2"));
  EXPECT_EQ(*latest_at(store_, "/project/none"), std::nullopt);
  record(store_, "rm -> -out");
  EXPECT_EQ((*latest_at(store_, "/project/out"))->blake3, std::nullopt);
}

TEST_F(ArtifactsTest, AProducerIsTheNewestBeforeTheReader) {
  record(store_, "make -> a=1");  // 1
  record(store_, "make -> a=1");  // 2
  record(store_, "use a=1");      // 3
  record(store_, "make -> a=2");  // 4
  record(store_, "use a=1");      // 5: the file was put back by hand; 2 made this content
  record(store_, "use a=3");      // 6: no run made it
  record(store_, "make -> a=3");  // 7: too late
  EXPECT_EQ(producer(3), "2 /project/a");
  EXPECT_EQ(producer(5), "2 /project/a");
  EXPECT_EQ(producer(6), "");
  EXPECT_THAT(readers(2), ElementsAre("3 /project/a", "5 /project/a"));
  EXPECT_THAT(readers(1), ElementsAre());
}

TEST_F(ArtifactsTest, TheSameContentElsewhereIsARemarkAndNoProducer) {
  record(store_, "make -> a=1");
  record(store_, "use moved=1");
  EXPECT_EQ(producer(2), "");
  EXPECT_EQ(same_content(2), "1 /project/a");
  EXPECT_THAT(readers(1), ElementsAre());
  record(store_, "make -> empty=");
  record(store_, "use other-empty=");
  record(store_, "use empty=");
  EXPECT_EQ(producer(4) + same_content(4), "");
  EXPECT_EQ(producer(5), "3 /project/empty");
}

TEST_F(ArtifactsTest, NoRemarkOnCopiesFailedRunsAndWhatCameLater) {
  record(store_, "cp raw=1 -> copy=1");
  record(store_, "cp raw=1 -> copy=1");
  EXPECT_EQ(producer(2) + same_content(2), "");
  RunRecord failed = run_of("x -> other=2");
  failed.status = RunStatus::kFailed;
  ASSERT_TRUE(record_run(store_, failed));
  record(store_, "use raw=2");
  record(store_, "x -> another=2");
  EXPECT_EQ(same_content(4), "");
}

TEST_F(ArtifactsTest, AFileThatIsWrittenIntoCountsAsRead) {
  record(store_, "make -> log=1");
  record(store_, "append -> ~log<1=2");
  record(store_, "edit log=2 -> ~log<2=3");
  EXPECT_THAT(readers(1), ElementsAre("2 /project/log"));
  EXPECT_THAT(readers(2), ElementsAre("3 /project/log"));
}

TEST_F(ArtifactsTest, TheSamePathIsPreferredToANewerCopy) {
  record(store_, "make -> a=1");
  record(store_, "copy a=1 -> b=1");
  record(store_, "use a=1");
  EXPECT_EQ(producer(3), "1 /project/a");
}

TEST_F(ArtifactsTest, AnUnhashedInputGoesByItsPath) {
  record(store_, "make -> a=1");
  RunRecord run = run_of("use a=1");
  run.inputs[0].blake3.reset();
  ASSERT_TRUE(record_run(store_, run));
  EXPECT_EQ(producer(2), "1 /project/a");
  EXPECT_THAT(readers(1), ElementsAre("2 /project/a"));
}

TEST_F(ArtifactsTest, RunsThatRanAtTheSameTimeCountToo) {
  RunRecord server = run_of("serve a=1");
  server.duration_s = 3600;
  ASSERT_TRUE(record_run(store_, server));
  record(store_, "make -> a=1");  // began a minute later, while it ran
  EXPECT_EQ(producer(1), "2 /project/a");
  EXPECT_THAT(readers(2), ElementsAre("1 /project/a"));
}

TEST_F(ArtifactsTest, LabelsNameOneThing) {
  record(store_, "make -> a=1");
  record(store_, "make -> b=2");
  EXPECT_EQ(*set_label(store_, "best", RunId{1}), std::nullopt);
  EXPECT_EQ(*set_label(store_, "best", RunId{2}), Labelled{RunId{1}});
  EXPECT_EQ(*set_label(store_, "data", digest_of("1")), std::nullopt);
  EXPECT_EQ(*find_label(store_, "data"), Labelled{digest_of("1")});
  EXPECT_EQ(find_run(store_, "best")->value_or(0), 2);
  EXPECT_EQ(find_run(store_, "data")->value_or(0), 0);
  EXPECT_THAT(head_of(store_, 2)->labels, ElementsAre("best"));
  EXPECT_THAT(*labels_of(store_, digest_of("1")), ElementsAre("data"));
  EXPECT_EQ(all_labels(store_)->size(), 2U);
  EXPECT_TRUE(*remove_label(store_, "best"));
  EXPECT_FALSE(*remove_label(store_, "best"));
}

TEST_F(ArtifactsTest, LabelsCannotBeTakenForSomethingElse) {
  record(store_, "make -> a=1");
  for (const std::string& bad :
       {std::string(), std::string("last"), std::string("12"), std::string("@1"), std::string("-x"),
        std::string("a/b"), std::string("a b"), std::string("a\nb"), std::string(".x"),
        std::string(101, 'x')}) {
    EXPECT_THAT(line_of(set_label(store_, bad, RunId{1})), HasSubstr("use a word")) << bad;
  }
  EXPECT_TRUE(set_label(store_, "über-best_2", RunId{1}));
}

}  // namespace
}  // namespace assay::store
