#include "store/run_lists.h"

#include "store/document.h"
#include "store/rows.h"
#include "store/run_reader.h"

namespace assay::store {
namespace {

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

}  // namespace

Output output_at(const Statement& row) {
  return {row.text(0), digest_at(row, 1), row.integer(2), output_status_named(row.text(3)),
          row.text(4), digest_at(row, 5)};
}

base::Result<void> each_input(Store& store, RunId id, std::int64_t limit,
                              const std::function<void(Input)>& visit) {
  ASSAY_TRY(Statement select,
            store.database().prepare("SELECT path, blake3, size FROM run_input WHERE run = ?1"
                                     " ORDER BY path LIMIT ?2"));
  ASSAY_TRY_VOID(select.bind(id, limit));
  return select.each([&](const Statement& row) {
    visit({row.text(0), digest_at(row, 1), row.integer(2)});
  });
}

base::Result<void> each_output(Store& store, RunId id, std::int64_t limit,
                               const std::function<void(Output)>& visit) {
  ASSAY_TRY(Statement select,
            store.database().prepare("SELECT path, blake3, size, status, source, before"
                                     " FROM run_output WHERE run = ?1 ORDER BY path LIMIT ?2"));
  ASSAY_TRY_VOID(select.bind(id, limit));
  return select.each([&](const Statement& row) { visit(output_at(row)); });
}

base::Result<std::vector<Process>> processes_of(Database& database, RunId run) {
  std::vector<Process> processes;
  ASSAY_TRY_VOID(each_row(database,
                          "SELECT pid, parent, words, program, started_ns, ended_ns, wait_status"
                          " FROM process WHERE run = ?1 ORDER BY number",
                          run, [&](const Statement& row) {
                            processes.push_back({row.integer(0), row.integer(1), words_at(row, 2),
                                                 row.text(3), row.integer(4),
                                                 optional_integer_at(row, 5),
                                                 optional_integer_at<int>(row, 6)});
                          }));
  return processes;
}

base::Result<std::vector<Missed>> missed_of(Database& database, RunId run) {
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
    rules[i].paths = unpacked_words(text);
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

base::Result<std::vector<std::string>> labels_of_run(Database& database, RunId run) {
  std::vector<std::string> labels;
  ASSAY_TRY_VOID(each_row(database, "SELECT name FROM label WHERE run = ?1 ORDER BY name", run,
                          [&](const Statement& row) { labels.push_back(row.text(0)); }));
  return labels;
}

}  // namespace assay::store
