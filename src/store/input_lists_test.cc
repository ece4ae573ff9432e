// Inputs that runs share: what is read of each run is what was recorded of it.
#include "store/input_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>

#include "store/cleaning.h"
#include "store/run_reader.h"
#include "store/run_writer.h"
#include "store/testing/runs.h"
#include "store/testing/runs_fixture.h"

namespace assay::store {
namespace {

using testing::digest_of;
using testing::line_of;
using testing::run_of;

std::string line_of_input(const Input& input) {
  return fmt::format("{} {} {}", input.path, input.blake3 ? input.blake3->hex() : "-", input.size);
}

std::vector<std::string> lines_of(std::vector<Input> inputs) {
  std::ranges::sort(inputs, {}, &Input::path);
  std::vector<std::string> lines;
  for (const Input& input : inputs) lines.push_back(line_of_input(input));
  return lines;
}

// `files` files in each of `folders` folders.
std::vector<Input> tree(const std::string& root, int folders, int files) {
  std::vector<Input> inputs;
  for (int folder = 0; folder < folders; ++folder) {
    for (int file = 0; file < files; ++file) {
      const std::string path = fmt::format("{}/d{:03}/f{:04}", root, folder, file);
      inputs.push_back({path, digest_of(path), file});
    }
  }
  return inputs;
}

class InputListsTest : public testing::RunsTest {
 protected:
  RunId record(std::vector<Input> inputs) {
    RunRecord run = run_of("read");
    run.inputs = std::move(inputs);
    const auto id = record_run(store_, run);
    EXPECT_TRUE(id) << line_of(id);
    return *id;
  }
  std::vector<std::string> inputs_of(RunId run) { return lines_of(load_run(store_, run)->inputs); }
  std::int64_t rows(const std::string& table) {
    return *store_.database().integer("SELECT count(*) FROM " + table);
  }
};

TEST_F(InputListsTest, ASecondRunOverTheSameFilesAddsNone) {
  const std::vector<Input> inputs = tree("/data", 20, 100);
  const RunId first = record(inputs);
  EXPECT_EQ(rows("listed_input"), 2000);
  const RunId second = record(inputs);
  EXPECT_EQ(rows("listed_input"), 2000);
  EXPECT_EQ(rows("run_input"), 4000);
  for (const RunId run : {first, second}) EXPECT_EQ(inputs_of(run), lines_of(inputs));
  EXPECT_EQ(load_run(store_, second)->input_count, 2000);
}

TEST_F(InputListsTest, OnlyTheFolderOfAChangedFileIsWrittenAgain) {
  std::vector<Input> inputs = tree("/data", 20, 100);
  record(inputs);
  inputs[777].blake3 = digest_of("changed");
  inputs.insert(inputs.begin(), {"/bin/new", std::nullopt, 3});
  const RunId second = record(inputs);
  EXPECT_LE(rows("listed_input"), 2000 + 100 + 101);
  EXPECT_EQ(inputs_of(second), lines_of(inputs));
}

TEST_F(InputListsTest, OfAPathThatIsAddedTwiceTheFirstCounts) {
  const std::vector<Input> inputs = {{"/a", digest_of("1"), 1}, {"/c", digest_of("2"), 2},
                                     {"/c", digest_of("3"), 3}, {"/b", digest_of("4"), 4},
                                     {"/a", digest_of("5"), 5}, {"/b", digest_of("6"), 6}};
  EXPECT_EQ(inputs_of(record(inputs)), lines_of({inputs[0], inputs[1], inputs[3]}));
  std::vector<Input> many = tree("/data", 40, 100);
  const std::vector<Input> once = many;
  for (std::size_t i = 0; i < 50; ++i) many.push_back({once[i * 77].path, digest_of("again"), 9});
  EXPECT_EQ(inputs_of(record(many)), lines_of(once));
}

// Random runs over a few trees, with changes, removed in random order.
TEST_F(InputListsTest, EveryRunKeepsItsOwnWhateverIsRecordedAndRemoved) {
  std::mt19937 random(20'261'120);
  const auto draw = [&](int below) {
    return static_cast<std::size_t>(random() % static_cast<unsigned>(below));
  };
  std::vector<Input> files = tree("/a", 3, 200);
  for (const Input& input : tree("/b", 60, 2)) files.push_back(input);
  std::map<RunId, std::vector<std::string>> expected;
  for (int round = 0; round < 60; ++round) {
    if (draw(3) == 0 && !expected.empty()) {
      const auto removed =
          std::next(expected.begin(), static_cast<long>(draw(static_cast<int>(expected.size()))));
      ASSERT_TRUE(remove_run(store_, removed->first));
      expected.erase(removed);
    } else {
      files[draw(static_cast<int>(files.size()))].blake3 = digest_of(fmt::format("{}", round));
      const std::size_t from = draw(300);
      const std::vector<Input> read(files.begin() + static_cast<long>(from), files.end());
      expected[record(read)] = lines_of(read);
    }
    for (const auto& [run, inputs] : expected) ASSERT_EQ(inputs_of(run), inputs) << round;
  }
  while (!expected.empty()) {
    ASSERT_TRUE(remove_run(store_, expected.begin()->first));
    expected.erase(expected.begin());
  }
  for (const char* table : {"input_list", "listed_input", "run_list"}) {
    EXPECT_EQ(rows(table), 0) << table;
  }
}

class MovedProjectTest : public testing::ProjectTest {};

// A list of the project in its old place has other paths after the move, so a run that reads the
// old paths must not get it.
TEST_F(MovedProjectTest, AListIsNotSharedWithTheOldPlace) {
  const std::string old = location_.project.string();
  const std::string copy = (scratch() / "copy").string();
  RunRecord run = run_of("read", old);
  run.inputs = tree(old, 1, 3);
  {
    auto store = Store::create(location_, {});
    ASSERT_TRUE(record_run(*store, run));
  }
  std::filesystem::copy(old, copy, std::filesystem::copy_options::recursive);
  auto store = Store::open(location_in(copy), {});
  ASSERT_TRUE(store) << line_of(store);
  const auto again = record_run(*store, run);
  ASSERT_TRUE(again) << line_of(again);
  EXPECT_EQ(lines_of(load_run(*store, *again)->inputs), lines_of(run.inputs));
  std::vector<Input> moved = run.inputs;
  for (Input& input : moved) input.path.replace(0, old.size(), copy);
  EXPECT_EQ(lines_of(load_run(*store, 1)->inputs), lines_of(moved));
}

}  // namespace
}  // namespace assay::store
