#include "store/run_row.h"

#include <fmt/format.h>

#include "base/hex.h"
#include "store/column_encoding.h"
#include "store/document.h"

namespace assay::store {
namespace {

// "KEY=value" strings.
std::string packed_environment(const std::map<std::string, std::string>& environment) {
  std::string packed;
  for (const auto& [key, value] : environment) {
    packed += key + "=" + value;
    packed.push_back('\0');
  }
  return packed;
}

std::map<std::string, std::string> unpacked_environment(std::string_view packed) {
  std::map<std::string, std::string> environment;
  while (!packed.empty()) {
    const std::string_view word = packed.substr(0, packed.find('\0'));
    packed.remove_prefix(std::min(word.size() + 1, packed.size()));
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    environment.emplace(word.substr(0, equals), word.substr(equals + 1));
  }
  return environment;
}

struct Documents {
  std::optional<std::int64_t> environment;
  std::optional<std::int64_t> machine;
};

base::Result<Documents> keep_documents(Database& database, const Context& context) {
  Documents kept;
  ASSAY_TRY(kept.environment, keep_document(database, packed_environment(context.environment)));
  if (!context.machine.is_null()) {
    ASSAY_TRY(kept.machine, keep_document(database, base::json_text(context.machine)));
  }
  return kept;
}

base::Result<void> write_git(Database& database, RunId run, const std::optional<Git>& git) {
  if (!git) {
    ASSAY_TRY(Statement remove, database.prepare("DELETE FROM run_git WHERE run = ?1"));
    ASSAY_TRY_VOID(remove.bind(run));
    return remove.run();
  }
  ASSAY_TRY(const std::optional<std::int64_t> diff, keep_document(database, git->diff));
  ASSAY_TRY(Statement insert,
            database.prepare("INSERT OR REPLACE INTO run_git"
                             " (run, root, commit_id, branch, remote, dirty, diff, left_out)"
                             " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"));
  ASSAY_TRY_VOID(insert.bind(run, git->root, git->commit, git->branch, git->remote, git->dirty,
                             diff, packed_strings(git->left_out)));
  return insert.run();
}

base::Result<std::optional<Git>> read_git(Database& database, RunId run) {
  ASSAY_TRY(Statement select,
            database.prepare("SELECT root, commit_id, branch, remote, dirty, diff, left_out"
                             " FROM run_git WHERE run = ?1"));
  ASSAY_TRY_VOID(select.bind(run));
  ASSAY_TRY(const bool row, select.next_row());
  if (!row) return std::nullopt;
  Git git{.root = select.text(0),
          .commit = select.text(1),
          .branch = select.text(2),
          .remote = select.text(3),
          .dirty = select.integer(4) != 0,
          .diff = {},
          .left_out = strings_at(select, 6)};
  ASSAY_TRY(git.diff, read_document(database, optional_integer_at(select, 5)));
  return git;
}

RunStatus status_named(std::string_view name) {
  for (const RunStatus status : {RunStatus::kRunning, RunStatus::kDone, RunStatus::kFailed}) {
    if (name == name_of(status)) return status;
  }
  return RunStatus::kInterrupted;
}

// What insert and update have in common, from parameter 1 on.
base::Result<void> bind_row(Statement& statement, const RunRecord& run, const std::string& uid,
                            const Documents& documents) {
  return statement.bind(
      uid, packed_strings(run.command), run.directory, run.name, run.build, name_of(run.status),
      run.exit_code, run.signal, run.tracer, run.complete, run.dropped, run.started_unix_ns,
      run.duration_s, run.collector_pid, run.collector_start_ticks, run.spool, run.usage.user_s,
      run.usage.system_s, run.usage.max_rss_bytes, run.usage.read_bytes, run.usage.written_bytes,
      run.context.user, run.context.host, documents.environment, documents.machine,
      packed_strings(run.redirects), packed_strings(run.options));
}

}  // namespace

base::Result<std::string> random_uid() {
  return base::random_hex(8);
}

base::Result<RunId> run_with_uid(Database& database, const std::string& uid) {
  ASSAY_TRY(Statement find, database.prepare("SELECT id FROM run WHERE uid = ?1"));
  ASSAY_TRY_VOID(find.bind(uid));
  ASSAY_TRY(const bool found, find.next_row());
  if (found) return find.integer(0);
  return base::fail(
      base::failed_error(database.path().string(), fmt::format("there is no run {}", uid)));
}

base::Result<RunId> insert_run(Database& database, const RunRecord& run) {
  std::string uid = run.uid;
  if (uid.empty()) {
    ASSAY_TRY(uid, random_uid());
  }
  ASSAY_TRY(const Documents documents, keep_documents(database, run.context));
  ASSAY_TRY(
      Statement insert,
      database.prepare(
          "INSERT INTO run (uid, command, directory, name, build, status, exit_code, signal,"
          " tracer, complete, dropped, started_ns, duration_s, collector_pid,"
          " collector_start_ticks, spool, user_s, system_s, max_rss_bytes, read_bytes,"
          " written_bytes, user, host, environment, machine, redirects, options)"
          " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,"
          " ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27)"));
  ASSAY_TRY_VOID(bind_row(insert, run, uid, documents));
  ASSAY_TRY_VOID(insert.run());
  const RunId id = database.last_insert_rowid();
  ASSAY_TRY_VOID(write_git(database, id, run.context.git));
  return id;
}

base::Result<void> update_run(Database& database, const RunRecord& run) {
  ASSAY_TRY(const Documents documents, keep_documents(database, run.context));
  // The uid never changes; an empty one means that the caller does not have it.
  ASSAY_TRY(
      Statement update,
      database.prepare(
          "UPDATE run SET uid = CASE ?1 WHEN '' THEN uid ELSE ?1 END, command = ?2,"
          " directory = ?3, name = ?4, build = ?5, status = ?6, exit_code = ?7, signal = ?8,"
          " tracer = ?9, complete = ?10, dropped = ?11, started_ns = ?12, duration_s = ?13,"
          " collector_pid = ?14, collector_start_ticks = ?15, spool = ?16, user_s = ?17,"
          " system_s = ?18, max_rss_bytes = ?19, read_bytes = ?20, written_bytes = ?21, user = ?22,"
          " host = ?23, environment = ?24, machine = ?25, redirects = ?26, options = ?27 WHERE id "
          "= ?28"));
  ASSAY_TRY_VOID(bind_row(update, run, run.uid, documents));
  ASSAY_TRY_VOID(update.bind_integer(28, run.id));
  ASSAY_TRY_VOID(update.run());
  if (database.changes() == 0) {
    return base::fail(base::failed_error(database.path().string(),
                                         fmt::format("run {} is not in the store", run.id)));
  }
  return write_git(database, run.id, run.context.git);
}

constexpr std::string_view kColumns =
    "j.id, j.uid, j.command, j.directory, j.name, j.build, j.status, j.exit_code, j.signal,"
    " j.tracer, j.complete, j.dropped, j.started_ns, j.duration_s, j.stage, j.collector_pid,"
    " j.collector_start_ticks, j.spool, j.inputs, j.outputs, j.processes, j.user_s, j.system_s,"
    " j.max_rss_bytes, j.read_bytes, j.written_bytes,"
    " j.stage IS NOT NULL AND NOT EXISTS (SELECT 1 FROM stage s WHERE s.run = j.id), j.redirects, "
    "j.options";
const std::string_view kRunColumns = kColumns;

RunRecord run_at(const Statement& row) {
  RunRecord run;
  run.id = row.integer(0);
  run.uid = row.text(1);
  run.command = strings_at(row, 2);
  run.directory = row.text(3);
  run.name = row.text(4);
  run.build = row.integer(5) != 0;
  run.status = status_named(row.text(6));
  run.exit_code = optional_integer_at<int>(row, 7);
  run.signal = optional_integer_at<int>(row, 8);
  run.tracer = row.text(9);
  run.complete = row.integer(10) != 0;
  run.dropped = row.integer(11);
  run.started_unix_ns = row.integer(12);
  run.duration_s = row.real(13);
  run.stage = row.is_null(14) ? 0 : row.integer(14);
  run.collector_pid = row.integer(15);
  run.collector_start_ticks = row.integer(16);
  run.spool = row.text(17);
  run.input_count = row.integer(18);
  run.output_count = row.integer(19);
  run.process_count = row.integer(20);
  run.usage = {row.real(21), row.real(22), row.integer(23), row.integer(24), row.integer(25)};
  run.superseded = row.integer(26) != 0;
  run.redirects = strings_at(row, 27);
  run.options = strings_at(row, 28);
  return run;
}

base::Result<void> read_context(Database& database, RunRecord& run) {
  ASSAY_TRY(Statement select, database.prepare("SELECT user, host, environment, machine"
                                               " FROM run WHERE id = ?1"));
  ASSAY_TRY_VOID(select.bind(run.id));
  ASSAY_TRY(const bool row, select.next_row());
  if (!row) return {};
  run.context.user = select.text(0);
  run.context.host = select.text(1);
  ASSAY_TRY(const std::string environment, read_document(database, optional_integer_at(select, 2)));
  run.context.environment = unpacked_environment(environment);
  ASSAY_TRY(const std::string machine, read_document(database, optional_integer_at(select, 3)));
  if (!machine.empty()) run.context.machine = base::Json::parse(machine, nullptr, false);
  if (run.context.machine.is_discarded()) run.context.machine = nullptr;
  ASSAY_TRY(run.context.git, read_git(database, run.id));
  return {};
}

}  // namespace assay::store
