#include "store/project.h"

#include <array>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/hex.h"
#include "store/column_encoding.h"
#include "store/sqlite_error.h"

namespace assay::store {
namespace {

// ?1 the old root, ?2 the new one. '0' is the character after '/': an index finds the range.
constexpr std::array kBelow = {
    "UPDATE OR IGNORE run_input SET path = ?2 || substr(path, length(?1) + 1)"
    " WHERE path > ?1 || '/' AND path < ?1 || '0'",
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

// Strings such as "1>>/project/log" are packed into a blob, which SQL cannot search.
base::Result<void> relocate_redirects(Database& database, const std::string& from,
                                      const std::string& to) {
  ASSAY_TRY(Statement select,
            database.prepare("SELECT id, redirects FROM run WHERE length(redirects) > 0"));
  std::vector<std::pair<std::int64_t, std::vector<std::string>>> changed;
  ASSAY_TRY_VOID(select.each([&](const Statement& row) {
    std::vector<std::string> redirects = strings_at(row, 1);
    for (std::string& redirect : redirects) {
      const std::size_t at = redirect.find('/');
      if (at != redirect.npos && redirect.compare(at, from.size() + 1, from + "/") == 0) {
        redirect.replace(at, from.size(), to);
      }
    }
    changed.emplace_back(row.integer(0), std::move(redirects));
  }));
  ASSAY_TRY(Statement update, database.prepare("UPDATE run SET redirects = ?2 WHERE id = ?1"));
  for (const auto& [id, redirects] : changed) {
    ASSAY_TRY_VOID(update.bind(id, packed_strings(redirects)));
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
  ASSAY_TRY_VOID(relocate_redirects(database, from, to));
  ASSAY_TRY(Statement root, database.prepare("UPDATE project SET root = ?1"));
  ASSAY_TRY_VOID(root.bind(to));
  ASSAY_TRY_VOID(root.run());
  return transaction.commit();
}

}  // namespace assay::store
