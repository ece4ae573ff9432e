#include "store/run_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "store/rows.h"
#include "store/run_lists.h"
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
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.front() == '-') return {};
  return number;
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
    ASSAY_TRY(run.labels, labels_of_run(store.database(), run.id));
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
  ASSAY_TRY(run.labels, labels_of_run(database, id));
  if (context == WithContext::kYes) ASSAY_TRY_VOID(read_context(database, run));
  return run;
}

base::Result<RunRecord> load_run(Store& store, RunId id) {
  Database& database = store.database();
  ASSAY_TRY(RunRecord run, head_of(store, id, WithContext::kYes));
  ASSAY_TRY_VOID(
      each_input(store, id, -1, [&](Input input) { run.inputs.push_back(std::move(input)); }));
  ASSAY_TRY_VOID(
      each_output(store, id, -1, [&](Output output) { run.outputs.push_back(std::move(output)); }));
  ASSAY_TRY(run.processes, processes_of(database, id));
  ASSAY_TRY(run.missed, missed_of(database, id));
  ASSAY_TRY(run.rules, rules_of(database, id));
  ASSAY_TRY(run.gpu, gpu_work_of(database, id));
  ASSAY_TRY(run.context.packages, packages_of(database, id));
  return run;
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

}  // namespace assay::store
