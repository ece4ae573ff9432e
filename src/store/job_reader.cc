#include "store/job_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "store/job_lists.h"
#include "store/job_row.h"
#include "store/rows.h"
#include "store/steps.h"

namespace assay::store {
namespace {

constexpr std::size_t kShortestPrefix = 4;
constexpr std::size_t kUidDigits = 16;

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isxdigit(c) != 0; });
}

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.front() == '-') return {};
  return number;
}

// The first column of the first row.
template <class... Values>
base::Result<std::optional<JobId>> first_id(Store& store, std::string_view sql,
                                            const Values&... values) {
  ASSAY_TRY(Statement select, store.database().prepare(sql));
  ASSAY_TRY_VOID(select.bind(values...));
  ASSAY_TRY(const bool row, select.step());
  if (!row || select.is_null(0)) return std::nullopt;
  return select.integer(0);
}

base::Result<std::optional<JobId>> find_by_uid(Store& store, std::string_view prefix) {
  if (prefix.size() < kShortestPrefix || prefix.size() > kUidDigits || !is_hex(prefix)) {
    return std::nullopt;
  }
  std::string lower(prefix);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  ASSAY_TRY(Statement select,
            store.database().prepare("SELECT id, uid FROM job WHERE uid >= ?1 AND uid < ?1 || 'g'"
                                     " ORDER BY id DESC LIMIT 6"));
  ASSAY_TRY_VOID(select.bind(lower));
  std::vector<std::string> found;
  std::optional<JobId> id;
  ASSAY_TRY_VOID(select.each([&](const Statement& row) {
    if (!id) id = row.integer(0);
    found.push_back(fmt::format("{} (job {})", row.text(1), row.integer(0)));
  }));
  if (found.size() <= 1) return id;
  const bool more = found.size() > 5;
  if (more) found.pop_back();
  return base::fail(base::usage_error(
      fmt::format("'{}'", prefix), "several jobs start with this",
      fmt::format("give more digits: {}{}", fmt::join(found, ", "), more ? ", …" : "")));
}

}  // namespace

base::Result<std::vector<Job>> jobs_of(Statement& select) {
  std::vector<Job> jobs;
  ASSAY_TRY_VOID(select.each([&](const Statement& row) { jobs.push_back(job_at(row)); }));
  return jobs;
}

base::Result<std::vector<Job>> list_jobs(Store& store, const JobFilter& filter) {
  ASSAY_TRY(Statement select, store.database().prepare(fmt::format(
                                  "SELECT {} FROM job j WHERE (?1 OR j.step IS NULL OR"
                                  " EXISTS (SELECT 1 FROM step s WHERE s.job = j.id))"
                                  " AND (?2 IS NULL OR j.status = ?2) ORDER BY j.id DESC LIMIT ?3",
                                  kJobColumns)));
  std::optional<std::string_view> status;
  if (filter.status) status = name_of(*filter.status);
  ASSAY_TRY_VOID(select.bind(filter.superseded, status, filter.limit));
  ASSAY_TRY(std::vector<Job> jobs, jobs_of(select));
  for (Job& job : jobs) {
    ASSAY_TRY(job.labels, labels_of_job(store.database(), job.id));
  }
  return jobs;
}

base::Result<Job> head_of(Store& store, JobId id, WithContext context) {
  Database& database = store.database();
  ASSAY_TRY(Statement select,
            database.prepare(fmt::format("SELECT {} FROM job j WHERE j.id = ?1", kJobColumns)));
  ASSAY_TRY_VOID(select.bind(id));
  ASSAY_TRY(const bool row, select.step());
  if (!row) {
    return base::fail(
        base::usage_error(fmt::format("job {}", id), "there is no such job", "see `assay log`"));
  }
  Job job = job_at(select);
  ASSAY_TRY(job.labels, labels_of_job(database, id));
  if (context == WithContext::kYes) ASSAY_TRY_VOID(read_context(database, job));
  return job;
}

base::Result<Job> load_job(Store& store, JobId id) {
  Database& database = store.database();
  ASSAY_TRY(Job job, head_of(store, id, WithContext::kYes));
  ASSAY_TRY_VOID(
      each_input(store, id, -1, [&](Input input) { job.inputs.push_back(std::move(input)); }));
  ASSAY_TRY_VOID(
      each_output(store, id, -1, [&](Output output) { job.outputs.push_back(std::move(output)); }));
  ASSAY_TRY(job.processes, processes_of(database, id));
  ASSAY_TRY(job.missed, missed_of(database, id));
  ASSAY_TRY(job.rules, rules_of(database, id));
  ASSAY_TRY(job.gpu, gpu_work_of(database, id));
  ASSAY_TRY(job.context.packages, packages_of(database, id));
  return job;
}

base::Result<std::optional<JobId>> find_job(Store& store, std::string_view text) {
  if (text.empty()) return std::nullopt;
  if (text == "last") return first_id(store, "SELECT max(id) FROM job");
  if (text.front() == '@') {
    const auto number = number_in(text.substr(1));
    if (!number) return std::nullopt;
    return first_id(store, "SELECT job FROM step WHERE number = ?1", *number);
  }
  if (const auto number = number_in(text)) {
    ASSAY_TRY(const auto id, first_id(store, "SELECT id FROM job WHERE id = ?1", *number));
    if (id) return id;
  }
  ASSAY_TRY(const auto labelled,
            first_id(store, "SELECT job FROM label WHERE name = ?1 AND job IS NOT NULL", text));
  if (labelled) return labelled;
  ASSAY_TRY(const auto named,
            first_id(store, "SELECT max(id) FROM job WHERE name = ?1 AND name <> ''", text));
  if (named) return named;
  return find_by_uid(store, text);
}

}  // namespace assay::store
