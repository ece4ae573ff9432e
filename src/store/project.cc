#include "store/project.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/hex.h"
#include "base/path_map.h"
#include "store/column_encoding.h"
#include "store/document.h"
#include "store/sqlite_error.h"

namespace assay::store {
namespace {

// ?1 the old root, ?2 the new one. '0' is the character after '/': an index finds the range.
constexpr std::array kBelow = {
    "UPDATE OR IGNORE listed_input SET path = ?2 || substr(path, length(?1) + 1)"
    " WHERE path > ?1 || '/' AND path < ?1 || '0'",
    // A list that has other paths now is not the one that a run in the old place would share.
    "UPDATE input_list SET blake3 = NULL WHERE ?1 <> ?2",
    "UPDATE OR IGNORE run_output SET path = ?2 || substr(path, length(?1) + 1)"
    " WHERE path > ?1 || '/' AND path < ?1 || '0'",
    "UPDATE run_output SET source = ?2 || substr(source, length(?1) + 1)"
    " WHERE source > ?1 || '/' AND source < ?1 || '0'",
    "UPDATE OR IGNORE path_fact SET path = ?2 || substr(path, length(?1) + 1)"
    " WHERE path = ?1 OR path > ?1 || '/' AND path < ?1 || '0'",
    "UPDATE path_fact SET target = ?2 || substr(target, length(?1) + 1)"
    " WHERE target = ?1 OR target > ?1 || '/' AND target < ?1 || '0'",
    "UPDATE run SET directory = ?2 || substr(directory, length(?1) + 1)"
    " WHERE directory = ?1 OR directory > ?1 || '/' AND directory < ?1 || '0'",
    "UPDATE run_git SET root = ?2 || substr(root, length(?1) + 1)"
    " WHERE root = ?1 OR root > ?1 || '/' AND root < ?1 || '0'",
};

// What SQL cannot search, because it is a list of strings in a blob: commands, options such as
// "--keep=/project/x" and redirections such as "1>>/project/log". A command that named the old
// place would read and write there when its stage is repeated here.
base::Result<void> relocate_commands(Database& database, const base::PathMap& map) {
  struct Row {
    std::int64_t run = 0;
    std::vector<std::string> command, options, redirects;
    bool operator==(const Row&) const = default;
  };
  ASSAY_TRY(Statement select, database.prepare("SELECT id, command, options, redirects FROM run"));
  std::vector<Row> changed;
  ASSAY_TRY_VOID(select.each([&](const Statement& row) {
    Row now{row.integer(0), strings_at(row, 1), strings_at(row, 2), strings_at(row, 3)};
    const Row before = now;
    for (auto* list : {&now.command, &now.options}) {
      for (std::string& word : *list) word = map.argument(word);
    }
    for (std::string& redirect : now.redirects) {
      const std::size_t path = std::min(redirect.find('/'), redirect.size());
      redirect = redirect.substr(0, path) + map.path(redirect.substr(path));
    }
    if (now != before) changed.push_back(std::move(now));
  }));
  ASSAY_TRY(Statement update,
            database.prepare("UPDATE run SET command = ?2, options = ?3, redirects = ?4"
                             " WHERE id = ?1"));
  for (const Row& row : changed) {
    ASSAY_TRY_VOID(update.bind(row.run, packed_strings(row.command), packed_strings(row.options),
                               packed_strings(row.redirects)));
    ASSAY_TRY_VOID(update.run());
  }
  return {};
}

// Variables such as "PYTHONPATH=/project/lib", which `reproduce` sets again.
base::Result<void> relocate_environments(Database& database, const base::PathMap& map) {
  std::vector<std::int64_t> environments;
  ASSAY_TRY(Statement select, database.prepare("SELECT DISTINCT environment FROM run"
                                               " WHERE environment IS NOT NULL"));
  ASSAY_TRY_VOID(
      select.each([&](const Statement& row) { environments.push_back(row.integer(0)); }));
  ASSAY_TRY(Statement update,
            database.prepare("UPDATE run SET environment = ?2 WHERE environment = ?1"));
  for (const std::int64_t id : environments) {
    ASSAY_TRY(const std::string before, read_document(database, id));
    std::vector<std::string> variables = unpacked_strings(before);
    for (std::string& variable : variables) {
      const std::size_t value = std::min(variable.find('='), variable.size() - 1) + 1;
      variable = variable.substr(0, value) + map.argument(std::string_view(variable).substr(value));
    }
    const auto packed = packed_strings(variables);
    const std::string_view after(reinterpret_cast<const char*>(packed.data()), packed.size());
    if (after == before) continue;
    ASSAY_TRY(const auto moved, keep_document(database, after));
    ASSAY_TRY_VOID(update.bind(id, moved));
    ASSAY_TRY_VOID(update.run());
  }
  return {};
}

}  // namespace

base::Result<void> insert_project(Database& database, const std::filesystem::path& root,
                                  const std::string& program_version) {
  ASSAY_TRY(const std::string id, base::random_hex(16));
  ASSAY_TRY(Statement insert,
            database.prepare("INSERT INTO project (only_row, id, created_at, created_by, root)"
                             " VALUES (1, ?1, ?2, ?3, ?4)"));
  const std::string now = base::utc_text(base::system_clock().wall_ns());
  ASSAY_TRY_VOID(insert.bind(id, now, program_version, root.native()));
  return insert.run();
}

base::Result<Project> read_project(Database& database) {
  ASSAY_TRY(Statement select,
            database.prepare("SELECT id, created_at, created_by, root FROM project"));
  ASSAY_TRY(const bool row, select.next_row());
  if (!row) {
    return base::fail(damaged_error(database.path().string(), "the project's row is missing"));
  }
  return Project{select.text(0), select.text(1), select.text(2), select.text(3)};
}

base::Result<void> relocate(Database& database, const std::string& from, const std::string& to) {
  ASSAY_TRY(Transaction transaction, Transaction::begin(database));
  // Read again now that the lock is held: another process may have relocated it.
  ASSAY_TRY(const Project project, read_project(database));
  if (project.root != from) return {};
  for (const char* sql : kBelow) {
    ASSAY_TRY(Statement update, database.prepare(sql));
    ASSAY_TRY_VOID(update.bind(from, to));
    ASSAY_TRY_VOID(update.run());
  }
  const base::PathMap map(from, to);
  ASSAY_TRY_VOID(relocate_commands(database, map));
  ASSAY_TRY_VOID(relocate_environments(database, map));
  ASSAY_TRY(Statement root, database.prepare("UPDATE project SET root = ?1"));
  ASSAY_TRY_VOID(root.bind(to));
  ASSAY_TRY_VOID(root.run());
  return transaction.commit();
}

}  // namespace assay::store
