#include "store/job_row.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cerrno>

#include "store/document.h"
#include "store/rows.h"

namespace assay::store {
namespace {

// "KEY=value" words.
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

base::Result<void> write_git(Database& database, JobId job, const std::optional<Git>& git) {
  if (!git) {
    ASSAY_TRY(Statement remove, database.prepare("DELETE FROM job_git WHERE job = ?1"));
    ASSAY_TRY_VOID(remove.bind(job));
    return remove.run();
  }
  ASSAY_TRY(const std::optional<std::int64_t> diff, keep_document(database, git->diff));
  ASSAY_TRY(Statement insert,
            database.prepare("INSERT OR REPLACE INTO job_git"
                             " (job, root, commit_id, branch, remote, dirty, diff, left_out)"
                             " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"));
  ASSAY_TRY_VOID(insert.bind(job, git->root, git->commit, git->branch, git->remote, git->dirty,
                             diff, packed_words(git->left_out)));
  return insert.run();
}

base::Result<std::optional<Git>> read_git(Database& database, JobId job) {
  ASSAY_TRY(Statement select,
            database.prepare("SELECT root, commit_id, branch, remote, dirty, diff, left_out"
                             " FROM job_git WHERE job = ?1"));
  ASSAY_TRY_VOID(select.bind(job));
  ASSAY_TRY(const bool row, select.step());
  if (!row) return std::nullopt;
  Git git{.root = select.text(0),
          .commit = select.text(1),
          .branch = select.text(2),
          .remote = select.text(3),
          .dirty = select.integer(4) != 0,
          .diff = {},
          .left_out = words_at(select, 6)};
  ASSAY_TRY(git.diff, read_document(database, optional_integer_at(select, 5)));
  return git;
}

JobStatus status_named(std::string_view name) {
  for (const JobStatus status : {JobStatus::kRunning, JobStatus::kDone, JobStatus::kFailed}) {
    if (name == name_of(status)) return status;
  }
  return JobStatus::kInterrupted;
}

// What insert and update have in common, from parameter 1 on.
base::Result<void> bind_row(Statement& statement, const Job& job, const std::string& uid,
                            const Documents& documents) {
  return statement.bind(uid, packed_words(job.command), job.directory, job.name, job.build,
                        name_of(job.status), job.exit_code, job.signal, job.tracer, job.complete,
                        job.dropped, job.started_unix_ns, job.duration_s, job.collector_pid,
                        job.collector_start_ticks, job.spool, job.usage.user_s, job.usage.system_s,
                        job.usage.max_rss_bytes, job.usage.read_bytes, job.usage.written_bytes,
                        job.context.user, job.context.host, documents.environment,
                        documents.machine, packed_words(job.redirects), packed_words(job.options));
}

}  // namespace

base::Result<std::string> random_uid() {
  std::array<unsigned char, 8> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return base::fail(base::system_error("getrandom", "no random numbers", errno));
  }
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

base::Result<JobId> insert_job(Database& database, const Job& job) {
  std::string uid = job.uid;
  if (uid.empty()) {
    ASSAY_TRY(uid, random_uid());
  }
  ASSAY_TRY(const Documents documents, keep_documents(database, job.context));
  ASSAY_TRY(
      Statement insert,
      database.prepare(
          "INSERT INTO job (uid, command, directory, name, build, status, exit_code, signal,"
          " tracer, complete, dropped, started_ns, duration_s, collector_pid,"
          " collector_start_ticks, spool, user_s, system_s, max_rss_bytes, read_bytes,"
          " written_bytes, user, host, environment, machine, redirects, options)"
          " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,"
          " ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27)"));
  ASSAY_TRY_VOID(bind_row(insert, job, uid, documents));
  ASSAY_TRY_VOID(insert.run());
  const JobId id = database.last_insert_rowid();
  ASSAY_TRY_VOID(write_git(database, id, job.context.git));
  return id;
}

base::Result<void> update_job(Database& database, const Job& job) {
  ASSAY_TRY(const Documents documents, keep_documents(database, job.context));
  // The uid is the row's for good; an empty one here means that the caller never asked for it.
  ASSAY_TRY(
      Statement update,
      database.prepare(
          "UPDATE job SET uid = CASE ?1 WHEN '' THEN uid ELSE ?1 END, command = ?2,"
          " directory = ?3, name = ?4, build = ?5, status = ?6, exit_code = ?7, signal = ?8,"
          " tracer = ?9, complete = ?10, dropped = ?11, started_ns = ?12, duration_s = ?13,"
          " collector_pid = ?14, collector_start_ticks = ?15, spool = ?16, user_s = ?17,"
          " system_s = ?18, max_rss_bytes = ?19, read_bytes = ?20, written_bytes = ?21, user = ?22,"
          " host = ?23, environment = ?24, machine = ?25, redirects = ?26, options = ?27 WHERE id "
          "= ?28"));
  ASSAY_TRY_VOID(bind_row(update, job, job.uid, documents));
  ASSAY_TRY_VOID(update.bind_integer(28, job.id));
  ASSAY_TRY_VOID(update.run());
  if (database.changes() == 0) {
    return base::fail(base::failed_error(database.path().string(),
                                         fmt::format("job {} is not in the store", job.id)));
  }
  return write_git(database, job.id, job.context.git);
}

constexpr std::string_view kColumns =
    "j.id, j.uid, j.command, j.directory, j.name, j.build, j.status, j.exit_code, j.signal,"
    " j.tracer, j.complete, j.dropped, j.started_ns, j.duration_s, j.step, j.collector_pid,"
    " j.collector_start_ticks, j.spool, j.inputs, j.outputs, j.processes, j.user_s, j.system_s,"
    " j.max_rss_bytes, j.read_bytes, j.written_bytes,"
    " j.step IS NOT NULL AND NOT EXISTS (SELECT 1 FROM step s WHERE s.job = j.id), j.redirects, "
    "j.options";
const std::string_view kJobColumns = kColumns;

Job job_at(const Statement& row) {
  Job job;
  job.id = row.integer(0);
  job.uid = row.text(1);
  job.command = words_at(row, 2);
  job.directory = row.text(3);
  job.name = row.text(4);
  job.build = row.integer(5) != 0;
  job.status = status_named(row.text(6));
  job.exit_code = optional_integer_at<int>(row, 7);
  job.signal = optional_integer_at<int>(row, 8);
  job.tracer = row.text(9);
  job.complete = row.integer(10) != 0;
  job.dropped = row.integer(11);
  job.started_unix_ns = row.integer(12);
  job.duration_s = row.real(13);
  job.step = row.is_null(14) ? 0 : row.integer(14);
  job.collector_pid = row.integer(15);
  job.collector_start_ticks = row.integer(16);
  job.spool = row.text(17);
  job.input_count = row.integer(18);
  job.output_count = row.integer(19);
  job.process_count = row.integer(20);
  job.usage = {row.real(21), row.real(22), row.integer(23), row.integer(24), row.integer(25)};
  job.superseded = row.integer(26) != 0;
  job.redirects = words_at(row, 27);
  job.options = words_at(row, 28);
  return job;
}

base::Result<void> read_context(Database& database, Job& job) {
  ASSAY_TRY(Statement select, database.prepare("SELECT user, host, environment, machine"
                                               " FROM job WHERE id = ?1"));
  ASSAY_TRY_VOID(select.bind(job.id));
  ASSAY_TRY(const bool row, select.step());
  if (!row) return {};
  job.context.user = select.text(0);
  job.context.host = select.text(1);
  ASSAY_TRY(const std::string environment, read_document(database, optional_integer_at(select, 2)));
  job.context.environment = unpacked_environment(environment);
  ASSAY_TRY(const std::string machine, read_document(database, optional_integer_at(select, 3)));
  if (!machine.empty()) job.context.machine = base::Json::parse(machine, nullptr, false);
  if (job.context.machine.is_discarded()) job.context.machine = nullptr;
  ASSAY_TRY(job.context.git, read_git(database, job.id));
  return {};
}

}  // namespace assay::store
