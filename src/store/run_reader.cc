#include "store/run_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/number.h"
#include "base/process/proc.h"
#include "store/column_encoding.h"
#include "store/document.h"
#include "store/labels.h"
#include "store/path_facts.h"
#include "store/run_row.h"
#include "store/stages.h"

namespace assay::store {
namespace {

constexpr std::size_t kShortestPrefix = 4;
constexpr std::size_t kUidDigits = 16;

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isxdigit(c) != 0; });
}

std::optional<std::int64_t> number_in(std::string_view text) {
  return text.starts_with('-') ? std::nullopt : base::parse_number<std::int64_t>(text);
}

// The first column of the first row.
template <class... Values>
base::Result<std::optional<RunId>> first_id(Store& store, std::string_view sql,
                                            const Values&... values) {
  ASSAY_TRY(Statement select, store.database().prepare(sql));
  ASSAY_TRY_VOID(select.bind(values...));
  ASSAY_TRY(const bool row, select.next_row());
  if (!row || select.is_null(0)) return std::nullopt;
  return select.integer(0);
}

base::Result<std::optional<RunId>> find_by_uid(Store& store, std::string_view prefix) {
  if (prefix.size() < kShortestPrefix || prefix.size() > kUidDigits || !is_hex(prefix)) {
    return std::nullopt;
  }
  std::string lower(prefix);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  ASSAY_TRY(Statement select,
            store.database().prepare("SELECT id, uid FROM run WHERE uid >= ?1 AND uid < ?1 || 'g'"
                                     " ORDER BY id DESC LIMIT 6"));
  ASSAY_TRY_VOID(select.bind(lower));
  std::vector<std::string> found;
  std::optional<RunId> id;
  ASSAY_TRY_VOID(select.each([&](const Statement& row) {
    if (!id) id = row.integer(0);
    found.push_back(fmt::format("{} (run {})", row.text(1), row.integer(0)));
  }));
  if (found.size() <= 1) return id;
  const bool more = found.size() > 5;
  if (more) found.pop_back();
  return base::fail(base::usage_error(
      fmt::format("'{}'", prefix), "several runs start with this",
      fmt::format("give more digits: {}{}", fmt::join(found, ", "), more ? ", …" : "")));
}

// The lists of one run.

// Calls `visit` with each row of `sql`, whose parameter 1 is the run.
template <class Visit>
base::Result<void> each_row(Database& database, std::string_view sql, RunId run, Visit visit) {
  ASSAY_TRY(Statement select, database.prepare(sql));
  ASSAY_TRY_VOID(select.bind(run));
  return select.each(visit);
}

OutputStatus output_status_named(std::string_view name) {
  for (const OutputStatus status : {OutputStatus::kCreated, OutputStatus::kModified,
                                    OutputStatus::kRenamed, OutputStatus::kLinked}) {
    if (name == name_of(status)) return status;
  }
  return OutputStatus::kDeleted;
}

// A row of (path, blake3, size, status, source, before).
Output output_at(const Statement& row) {
  return {row.text(0), digest_at(row, 1), row.integer(2), output_status_named(row.text(3)),
          row.text(4), digest_at(row, 5)};
}

base::Result<std::vector<ProcessRecord>> processes_of(Database& database, RunId run) {
  std::vector<ProcessRecord> processes;
  ASSAY_TRY_VOID(
      each_row(database,
               "SELECT pid, parent, arguments, program, started_ns, ended_ns, wait_status,"
               " host"
               " FROM process WHERE run = ?1 ORDER BY number",
               run, [&](const Statement& row) {
                 processes.push_back({row.integer(0), row.integer(1), strings_at(row, 2),
                                      row.text(3), row.integer(4), optional_integer_at(row, 5),
                                      optional_integer_at<int>(row, 6), row.text(7)});
               }));
  return processes;
}

base::Result<std::vector<Missed>> rows_missed(Database& database, RunId run) {
  std::vector<Missed> missed;
  ASSAY_TRY_VOID(each_row(database, "SELECT what, text FROM missed WHERE run = ?1 ORDER BY number",
                          run, [&](const Statement& row) {
                            missed.push_back({row.text(0), row.text(1)});
                          }));
  return missed;
}

base::Result<std::vector<FileRule>> rules_of(Database& database, RunId run) {
  std::vector<FileRule> rules;
  std::vector<std::optional<std::int64_t>> documents;
  ASSAY_TRY_VOID(each_row(
      database,
      "SELECT name, keep, sentence, files, paths FROM run_rule WHERE run = ?1"
      " ORDER BY keep DESC, files DESC, name",
      run, [&](const Statement& row) {
        rules.push_back({row.text(0), row.integer(1) != 0, row.text(2), row.integer(3), {}});
        documents.push_back(optional_integer_at(row, 4));
      }));
  for (std::size_t i = 0; i < rules.size(); ++i) {
    ASSAY_TRY(const std::string text, read_document(database, documents[i]));
    rules[i].paths = unpacked_strings(text);
  }
  return rules;
}

base::Result<std::vector<Package>> packages_of(Database& database, RunId run) {
  std::vector<Package> packages;
  ASSAY_TRY_VOID(each_row(database,
                          "SELECT p.manager, p.name, p.version FROM run_package j"
                          " JOIN package p ON p.id = j.package WHERE j.run = ?1"
                          " ORDER BY p.manager, p.name, p.version",
                          run, [&](const Statement& row) {
                            packages.push_back({row.text(0), row.text(1), row.text(2)});
                          }));
  return packages;
}

}  // namespace

base::Result<std::vector<RunRecord>> runs_of(Statement& select) {
  std::vector<RunRecord> runs;
  ASSAY_TRY_VOID(select.each([&](const Statement& row) { runs.push_back(run_at(row)); }));
  return runs;
}

base::Result<std::vector<RunRecord>> list_runs(Store& store, const RunFilter& filter) {
  ASSAY_TRY(Statement select, store.database().prepare(fmt::format(
                                  "SELECT {} FROM run j WHERE (?1 OR j.stage IS NULL OR"
                                  " EXISTS (SELECT 1 FROM stage s WHERE s.run = j.id))"
                                  " AND (?2 IS NULL OR j.status = ?2) ORDER BY j.id DESC LIMIT ?3",
                                  kRunColumns)));
  std::optional<std::string_view> status;
  if (filter.status) status = name_of(*filter.status);
  ASSAY_TRY_VOID(select.bind(filter.superseded, status, filter.limit));
  ASSAY_TRY(std::vector<RunRecord> runs, runs_of(select));
  for (RunRecord& run : runs) {
    ASSAY_TRY(run.labels, labels_of(store, run.id));
  }
  return runs;
}

base::Result<RunRecord> head_of(Store& store, RunId id, WithContext context) {
  Database& database = store.database();
  ASSAY_TRY(Statement select,
            database.prepare(fmt::format("SELECT {} FROM run j WHERE j.id = ?1", kRunColumns)));
  ASSAY_TRY_VOID(select.bind(id));
  ASSAY_TRY(const bool row, select.next_row());
  if (!row) {
    return base::fail(
        base::usage_error(fmt::format("run {}", id), "there is no such run", "see `assay log`"));
  }
  RunRecord run = run_at(select);
  ASSAY_TRY(run.labels, labels_of(store, id));
  if (context == WithContext::kYes) ASSAY_TRY_VOID(read_context(database, run));
  return run;
}

base::Result<std::vector<Missed>> missed_of(Store& store, RunId id) {
  return rows_missed(store.database(), id);
}

base::Result<RunRecord> load_run(Store& store, RunId id) {
  Database& database = store.database();
  ASSAY_TRY(RunRecord run, head_of(store, id, WithContext::kYes));
  ASSAY_TRY_VOID(
      each_input(store, id, -1, [&](Input input) { run.inputs.push_back(std::move(input)); }));
  ASSAY_TRY_VOID(
      each_output(store, id, -1, [&](Output output) { run.outputs.push_back(std::move(output)); }));
  ASSAY_TRY(run.streams, streams_of(store, id));
  ASSAY_TRY(run.facts, path_facts(store, id));
  ASSAY_TRY(run.processes, processes_of(database, id));
  ASSAY_TRY(run.missed, rows_missed(database, id));
  ASSAY_TRY(run.rules, rules_of(database, id));
  ASSAY_TRY(run.gpu, gpu_work_of(database, id));
  ASSAY_TRY(run.context.packages, packages_of(database, id));
  return run;
}

namespace {

Input input_at(const Statement& row) {
  return {row.text(0), digest_at(row, 1), row.integer(2)};
}

// Recorded inputs are nearly in order, and SQLite would sort them as if they were not.
base::Result<std::vector<Input>> inputs_in_order(Store& store, RunId id) {
  ASSAY_TRY(Statement select,
            store.database().prepare("SELECT i.path, i.blake3, i.size FROM run_list u"
                                     " JOIN listed_input i ON i.list = u.list WHERE u.run = ?1"
                                     " ORDER BY u.before, i.number"));
  ASSAY_TRY_VOID(select.bind(id));
  std::vector<Input> inputs;
  ASSAY_TRY_VOID(select.each([&](const Statement& row) { inputs.push_back(input_at(row)); }));
  if (!std::ranges::is_sorted(inputs, {}, &Input::path)) {
    std::ranges::sort(inputs, {}, &Input::path);
  }
  return inputs;
}

}  // namespace

base::Result<void> each_input(Store& store, RunId id, std::int64_t limit,
                              const std::function<void(Input)>& visit) {
  if (limit < 0) {
    ASSAY_TRY(std::vector<Input> inputs, inputs_in_order(store, id));
    for (Input& input : inputs) visit(std::move(input));
    return {};
  }
  ASSAY_TRY(Statement select,
            store.database().prepare("SELECT path, blake3, size FROM run_input WHERE run = ?1"
                                     " ORDER BY path LIMIT ?2"));
  ASSAY_TRY_VOID(select.bind(id, limit));
  return select.each([&](const Statement& row) { visit(input_at(row)); });
}

base::Result<void> each_output(Store& store, RunId id, std::int64_t limit,
                               const std::function<void(Output)>& visit) {
  ASSAY_TRY(Statement select,
            store.database().prepare("SELECT path, blake3, size, status, source, before"
                                     " FROM run_output WHERE run = ?1 AND stream = 0"
                                     " ORDER BY path LIMIT ?2"));
  ASSAY_TRY_VOID(select.bind(id, limit));
  return select.each([&](const Statement& row) { visit(output_at(row)); });
}

base::Result<std::vector<Output>> streams_of(Store& store, RunId id) {
  std::vector<Output> streams;
  ASSAY_TRY(Statement select,
            store.database().prepare("SELECT path, blake3, size, status, source, before"
                                     " FROM run_output WHERE run = ?1 AND stream = 1"
                                     " ORDER BY path"));
  ASSAY_TRY_VOID(select.bind(id));
  ASSAY_TRY_VOID(select.each([&](const Statement& row) { streams.push_back(output_at(row)); }));
  return streams;
}

base::Result<std::optional<RunId>> find_run(Store& store, std::string_view text) {
  if (text.empty()) return std::nullopt;
  if (text == "last") return first_id(store, "SELECT max(id) FROM run");
  if (text.front() == '@') {
    const auto number = number_in(text.substr(1));
    if (!number) return std::nullopt;
    return first_id(store, "SELECT run FROM stage WHERE number = ?1", *number);
  }
  if (const auto number = number_in(text)) {
    ASSAY_TRY(const auto id, first_id(store, "SELECT id FROM run WHERE id = ?1", *number));
    if (id) return id;
  }
  ASSAY_TRY(const auto labelled,
            first_id(store, "SELECT run FROM label WHERE name = ?1 AND run IS NOT NULL", text));
  if (labelled) return labelled;
  ASSAY_TRY(const auto named,
            first_id(store, "SELECT max(id) FROM run WHERE name = ?1 AND name <> ''", text));
  if (named) return named;
  return find_by_uid(store, text);
}

bool is_alive(std::int64_t pid, std::int64_t start_ticks) {
  if (pid <= 0) return false;
  const auto stat = base::process_stat(static_cast<pid_t>(pid));
  return stat && !stat->has_ended() && stat->start_ticks == start_ticks;
}

base::Result<std::vector<RunRecord>> stale_running_runs(Store& store) {
  ASSAY_TRY(std::vector<RunRecord> runs, list_runs(store, {.status = RunStatus::kRunning}));
  std::erase_if(runs, [](const RunRecord& run) {
    return is_alive(run.collector_pid, run.collector_start_ticks);
  });
  return runs;
}

}  // namespace assay::store
