// A store that an older program wrote is migrated, keeps every row, and is read like a new one.
#include <fmt/format.h>
#include <unistd.h>

#include <map>

#include "store/artifacts.h"
#include "store/column_encoding.h"
#include "store/files.h"
#include "store/hash_cache.h"
#include "store/labels.h"
#include "store/metrics.h"
#include "store/run_reader.h"
#include "store/run_writer.h"
#include "store/stages.h"
#include "store/testing/runs.h"
#include "store/testing/runs_fixture.h"

namespace assay::store {
namespace {

using ::testing::ElementsAre;
using testing::line_of;

constexpr std::string_view kRecordedRoot = "/home/user/project";

// Tables of version 7 by their names today.
const std::map<std::string, std::string> kTables = {{"package", "package"},
                                                    {"document", "document"},
                                                    {"job", "run"},
                                                    {"job_git", "run_git"},
                                                    {"job_input", "run_input"},
                                                    {"job_output", "run_output"},
                                                    {"process", "process"},
                                                    {"missed", "missed"},
                                                    {"job_package", "run_package"},
                                                    {"job_rule", "run_rule"},
                                                    {"label", "label"},
                                                    {"step", "stage"},
                                                    {"metric_series", "metric_series"},
                                                    {"metric_point", "metric_point"},
                                                    {"gpu_use", "gpu_use"},
                                                    {"gpu_memory", "gpu_memory"},
                                                    {"gpu_collective", "gpu_collective"},
                                                    {"gpu_share", "gpu_share"},
                                                    {"project", "project"}};

class OldStoreTest : public testing::ProjectTest {
 protected:
  void SetUp() override {
    std::string sql = testing::read(ASSAY_STORE_V7);
    const std::string root = location_.project.string();
    for (std::size_t at = 0; (at = sql.find(kRecordedRoot, at)) != sql.npos; at += root.size()) {
      sql.replace(at, kRecordedRoot.size(), root);
    }
    ASSERT_EQ(line_of(make_directory(location_)), "");
    ASSERT_EQ(line_of(make_private_file(location_.database)), "");
    auto database = Database::open(location_.database);
    ASSERT_EQ(line_of(database->exec(sql)), "");
  }

  static int columns_of_table(Database& database, const std::string& table) {
    Statement columns = *database.prepare("SELECT count(*) FROM pragma_table_info(?1)");
    EXPECT_TRUE(columns.bind(table));
    EXPECT_TRUE(*columns.next_row());
    return static_cast<int>(columns.integer(0));
  }

  // All rows of a table with its first columns, as SQL literals.
  static std::vector<std::string> rows_of_table(Database& database, const std::string& table,
                                                int count) {
    EXPECT_GT(count, 0) << table;
    EXPECT_LE(count, columns_of_table(database, table)) << table;
    std::vector<std::string> rows;
    Statement select = *database.prepare(fmt::format("SELECT * FROM {} ORDER BY 1, 2", table));
    EXPECT_TRUE(select.each([&](const Statement& row) {
      std::string text;
      for (int i = 0; i < count; ++i) {
        const std::vector<std::byte> bytes = row.blob(i);
        text += row.is_null(i)
                    ? "NULL"
                    : std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        text += "|";
      }
      rows.push_back(text);
    }));
    return rows;
  }
};

TEST_F(OldStoreTest, KeepsEveryRow) {
  std::map<std::string, std::vector<std::string>> before;
  std::map<std::string, int> columns;  // newer ones come after them
  {
    auto old = Database::open(location_.database);
    for (const auto& [name, now] : kTables) {
      columns[name] = columns_of_table(*old, name);
      before[name] = rows_of_table(*old, name, columns[name]);
      EXPECT_FALSE(before[name].empty()) << name << ": the fixture has no row to keep";
    }
  }
  auto store = Store::open(location_, {});
  ASSERT_EQ(line_of(store), "");
  EXPECT_EQ(store->schema_version(), static_cast<int>(embedded_migrations().size()));
  EXPECT_EQ(line_of(store->check()), "");
  EXPECT_EQ(store->project().root, location_.project);
  for (const auto& [name, now] : kTables) {
    EXPECT_EQ(rows_of_table(store->database(), now, columns[name]), before[name]) << name;
  }
  // Nothing is called by its old name; a plan is of a job.
  EXPECT_EQ(
      *store->database().integer("SELECT count(*) FROM sqlite_schema WHERE tbl_name <> 'plan' AND"
                                 " (name LIKE '%job%' OR sql LIKE '%job%' OR name LIKE '%step%')"),
      0);
}

// The rows of the hash cache have another form now; what they say is kept.
TEST_F(OldStoreTest, KeepsTheHashCache) {
  std::vector<HashedFile> files;
  {
    auto old = Database::open(location_.database);
    Statement select = *old->prepare(
        "SELECT device, inode, size, mtime_ns, ctime_ns, blake3"
        " FROM hash_cache");
    EXPECT_TRUE(select.each([&](const Statement& row) {
      files.push_back(
          {{static_cast<std::uint64_t>(row.integer(0)), static_cast<std::uint64_t>(row.integer(1)),
            row.integer(2), row.integer(3), row.integer(4)},
           *digest_at(row, 5)});
    }));
  }
  EXPECT_GE(files.size(), 5U);
  auto store = Store::open(location_, {});
  ASSERT_EQ(line_of(store), "");
  HashCache cache = *HashCache::prepare(*store);
  for (const HashedFile& file : files) EXPECT_EQ(*cache.find(file.stamp), file.digest);
}

TEST_F(OldStoreTest, IsReadLikeANewOne) {
  auto store = Store::open(location_, {});
  ASSERT_EQ(line_of(store), "");
  const auto runs = *list_runs(*store);
  ASSERT_EQ(runs.size(), 8U);
  std::vector<std::string> outcomes;
  for (const RunRecord& run : runs) {
    outcomes.push_back(fmt::format("{} {} {} {}{}", run.id, name_of(run.status),
                                   run.exit_code.value_or(-1), run.stage,
                                   run.superseded ? " superseded" : ""));
  }
  EXPECT_THAT(outcomes,
              ElementsAre("8 done 0 4", "7 interrupted -1 0", "6 done 0 3", "5 failed 143 0",
                          "4 done 0 1", "3 failed 3 0", "2 done 0 2", "1 done 0 1 superseded"));
  const auto live = *live_runs(*store);
  std::vector<RunId> current;
  for (const RunRecord& run : live) current.push_back(run.id);
  EXPECT_THAT(current, ElementsAre(4, 2, 6, 8));
  for (const auto& [name, id] :
       std::map<std::string, RunId>{{"@1", 4}, {"good", 2}, {"train", 2}, {"last", 8}}) {
    EXPECT_EQ(*find_run(*store, name), id) << name;
  }

  const RunRecord killed = *load_run(*store, 5);
  EXPECT_EQ(killed.signal, 15);
  EXPECT_EQ(killed.command[0], "sh");
  EXPECT_EQ(killed.directory, location_.project);
  ASSERT_EQ(killed.processes.size(), 4U);
  EXPECT_THAT(killed.processes[2].arguments, ElementsAre("mv", "model.txt", "model2.txt"));
  ASSERT_EQ(killed.outputs.size(), 2U);
  EXPECT_EQ(killed.outputs[1].status, OutputStatus::kRenamed);
  EXPECT_EQ(killed.outputs[1].from, killed.outputs[0].path);
  EXPECT_TRUE(killed.context.git->dirty);
  EXPECT_NE(killed.context.git->diff.find("+print(2)"), std::string::npos);
  EXPECT_EQ(killed.context.environment.at("LANG"), "C.UTF-8");
  EXPECT_FALSE(killed.context.packages.empty());

  const auto labels = *all_labels(*store);
  ASSERT_EQ(labels.size(), 2U);
  EXPECT_EQ(labels[0].name, "data");
  EXPECT_EQ(*latest_at(*store, (location_.project / "clean.txt").native()).value()->blake3,
            std::get<hash::Digest>(labels[0].target));

  EXPECT_EQ(load_metrics(*store, 6)->size(), 11U);
  const auto loss = *load_series(*store, 6, "loss");
  ASSERT_EQ(loss.size(), 3U);
  EXPECT_NEAR(*loss[2].value, 5.16358, 1e-5);
  const GpuWork gpu = load_run(*store, 6)->gpu;
  ASSERT_EQ(gpu.shares.size(), 1U);
  EXPECT_EQ(gpu.shares[0].busy_ns, 7'000'000);
  EXPECT_EQ(gpu.collectives.size(), 1U);
}

// The old program has the store open and will write its run to tables that would be renamed.
TEST_F(OldStoreTest, IsNotMigratedWhileAnOldProgramRecordsARun) {
  const auto make_running = [&](std::int64_t pid, std::int64_t ticks) {
    auto old = Database::open(location_.database);
    ASSERT_EQ(line_of(old->exec(fmt::format("UPDATE job SET status = 'running', collector_pid = {},"
                                            " collector_start_ticks = {} WHERE id = 7",
                                            pid, ticks))),
              "");
  };
  make_running(::getpid(), testing::own_start_ticks());
  const auto refused = Store::open(location_, {});
  EXPECT_EQ(
      line_of(refused),
      fmt::format("{}: run 7 is being recorded by an older assay (process {}), which could "
                  "not write to the store after its upgrade; wait until the run has ended, or "
                  "use the older assay until then",
                  location_.database.string(), ::getpid()));
  EXPECT_EQ(refused.error().code, base::ExitCode::kUnfit);
  EXPECT_FALSE(std::filesystem::exists(location_.database.string() + ".v7"));
  {
    auto old = Database::open(location_.database);
    EXPECT_EQ(*old->integer("PRAGMA user_version"), 7);
    EXPECT_EQ(rows_of_table(*old, "job", 1).size(), 8U);
  }
  // Its collector was killed, and another process has its number now: the run will be recovered.
  make_running(::getpid(), testing::own_start_ticks() + 1);
  auto store = Store::open(location_, {});
  ASSERT_EQ(line_of(store), "");
  EXPECT_EQ(stale_running_runs(*store)->size(), 1U);
}

TEST_F(OldStoreTest, GoesOnWithNewRuns) {
  auto store = Store::open(location_, {});
  ASSERT_EQ(line_of(store), "");
  // The same command again is the same stage, and numbers go on.
  RunRecord again = *load_run(*store, 4);
  again.uid.clear();
  again.labels.clear();
  const auto id = record_run(*store, again);
  ASSERT_EQ(line_of(id), "");
  EXPECT_EQ(*id, 9);
  EXPECT_EQ(*find_run(*store, "@1"), 9);
  EXPECT_TRUE(head_of(*store, 4)->superseded);
}

}  // namespace
}  // namespace assay::store
