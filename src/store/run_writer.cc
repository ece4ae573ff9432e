#include "store/run_writer.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "store/column_encoding.h"
#include "store/document.h"
#include "store/input_lists.h"
#include "store/path_facts.h"
#include "store/run_row.h"
#include "store/shared_outputs.h"
#include "store/stage_identity.h"
#include "store/stages.h"
#include "store/streams.h"

namespace assay::store {
namespace {

// The index by content is written in random order; with SQLite's default cache of 2 MB, a run with
// a million files would write its pages many times. Freed when the transaction ends.
constexpr const char* kLargeCache = "PRAGMA cache_size = -49152";
constexpr const char* kSmallCache = "PRAGMA cache_size = -2000";

// Long, because another process may be writing a million files, and the run must not be lost.
constexpr std::chrono::seconds kBeginTimeout{60};

// What a killed or failed recording of this run may have left.
constexpr const char* kClearLists[] = {
    "DELETE FROM run_list WHERE run = ?1",    "DELETE FROM run_output WHERE run = ?1",
    "DELETE FROM process WHERE run = ?1",     "DELETE FROM missed WHERE run = ?1",
    "DELETE FROM run_package WHERE run = ?1", "DELETE FROM run_rule WHERE run = ?1",
    "DELETE FROM path_fact WHERE run = ?1"};

}  // namespace

base::Result<RunId> begin_run(Store& store, const RunRecord& run) {
  Database& database = store.database();
  ASSAY_TRY_VOID(database.set_busy_timeout(kBeginTimeout));
  ASSAY_TRY(Transaction transaction, Transaction::begin(database));
  ASSAY_TRY(const RunId id, insert_run(database, run));
  ASSAY_TRY_VOID(transaction.commit());
  ASSAY_TRY_VOID(database.set_busy_timeout(kBusyTimeout));
  return id;
}

struct RunWriter::State {
  Database& database;
  RunId run;
  Transaction transaction;
  InputLists input_lists;
  Statement insert_output;
  Statement insert_process;
  Statement insert_missed;
  Statement insert_package;
  Statement insert_run_package;
  PathSet read;
  PathSet left;  // what is there after the run
  RunStreams streams;
  std::set<std::string> stream_files;
  std::vector<Output> held;  // files of streams, until all other files are known
  std::int64_t outputs = 0;
  std::int64_t files_of_streams = 0;
  std::int64_t processes = 0;
  std::int64_t missed = 0;
};

RunWriter::RunWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
RunWriter::RunWriter(RunWriter&&) noexcept = default;
RunWriter& RunWriter::operator=(RunWriter&&) noexcept = default;
RunWriter::~RunWriter() {
  if (state_ == nullptr) return;
  Database& database = state_->database;
  state_.reset();
  // Only a performance setting, so errors are ignored.
  static_cast<void>(database.exec(kSmallCache));
  static_cast<void>(database.set_busy_timeout(kBusyTimeout));
}

base::Result<RunWriter> RunWriter::begin(Store& store, RunId run) {
  Database& database = store.database();
  ASSAY_TRY_VOID(database.exec(kLargeCache));
  ASSAY_TRY_VOID(database.set_busy_timeout(kBeginTimeout));
  ASSAY_TRY(Transaction transaction, Transaction::begin(database));
  for (const char* sql : kClearLists) {
    ASSAY_TRY(Statement clear, database.prepare(sql));
    ASSAY_TRY_VOID(clear.bind(run));
    ASSAY_TRY_VOID(clear.run());
  }
  ASSAY_TRY(Statement output,
            database.prepare("INSERT INTO run_output (run, number, path, blake3, size, status,"
                             " source, before, stream) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
                             " ON CONFLICT DO NOTHING"));
  ASSAY_TRY(Statement process,
            database.prepare("INSERT INTO process (run, number, pid, parent, program, arguments,"
                             " started_ns, ended_ns, wait_status, host)"
                             " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"));
  ASSAY_TRY(Statement missed, database.prepare("INSERT INTO missed (run, number, what, text)"
                                               " VALUES (?1, ?2, ?3, ?4)"));
  ASSAY_TRY(Statement package,
            database.prepare("INSERT INTO package (manager, name, version) VALUES (?1, ?2, ?3)"
                             " ON CONFLICT DO NOTHING"));
  ASSAY_TRY(Statement run_package,
            database.prepare("INSERT INTO run_package (run, package) SELECT ?1, id FROM package"
                             " WHERE manager = ?2 AND name = ?3 AND version = ?4"
                             " ON CONFLICT DO NOTHING"));
  RunStreams streams{.run = run, .redirects = {}};
  ASSAY_TRY(Statement redirects, database.prepare("SELECT redirects FROM run WHERE id = ?1"));
  ASSAY_TRY_VOID(redirects.bind(run));
  ASSAY_TRY_VOID(
      redirects.each([&](const Statement& row) { streams.redirects = strings_at(row, 0); }));
  std::set<std::string> files = stream_paths(streams.redirects);
  const std::string root = store.location().project.string();
  return RunWriter(std::unique_ptr<State>(new State{database,
                                                    run,
                                                    std::move(transaction),
                                                    InputLists(database, run),
                                                    std::move(output),
                                                    std::move(process),
                                                    std::move(missed),
                                                    std::move(package),
                                                    std::move(run_package),
                                                    PathSet(root),
                                                    PathSet(root),
                                                    std::move(streams),
                                                    std::move(files),
                                                    {}}));
}

base::Result<void> RunWriter::add_input(const Input& input) {
  ASSAY_TRY(const bool is_new, state_->input_lists.add(input));
  if (is_new) state_->read.add(input.path);
  return {};
}

base::Result<void> RunWriter::add_output(const Output& output) {
  State& state = *state_;
  const bool gone = output.status == OutputStatus::kDeleted;
  if (!gone && state.stream_files.contains(output.path)) {
    state.held.push_back(output);
    return {};
  }
  state.streams.leaves_files = state.streams.leaves_files || !gone;
  return insert_output(output, false);
}

// Whether the files of streams are outputs depends on all other files, and that of standard error
// on that of standard output as well.
base::Result<void> RunWriter::settle_streams() {
  State& state = *state_;
  std::vector<Output> held = std::exchange(state.held, {});
  std::ranges::stable_partition(held, [&](const Output& file) {
    return is_standard_output(state.streams.redirects, file.path);
  });
  for (const Output& file : held) {
    ASSAY_TRY(const bool output, is_output(state.database, state.streams, file));
    ASSAY_TRY_VOID(insert_output(file, !output));
    state.streams.leaves_files = state.streams.leaves_files || output;
  }
  return {};
}

base::Result<void> RunWriter::insert_output(const Output& output, bool stream) {
  State& state = *state_;
  Statement& insert = state.insert_output;
  ASSAY_TRY_VOID(insert.bind_integer(1, state.run));
  ASSAY_TRY_VOID(insert.bind_integer(2, state.outputs + state.files_of_streams + 1));
  ASSAY_TRY_VOID(insert.bind_borrowed(3, output.path));
  ASSAY_TRY_VOID(output.blake3 ? insert.bind_borrowed(4, output.blake3->bytes)
                               : insert.bind_null(4));
  ASSAY_TRY_VOID(insert.bind_integer(5, output.size));
  ASSAY_TRY_VOID(insert.bind_borrowed(6, name_of(output.status)));
  ASSAY_TRY_VOID(output.from.empty() ? insert.bind_null(7) : insert.bind_borrowed(7, output.from));
  ASSAY_TRY_VOID(output.before ? insert.bind_borrowed(8, output.before->bytes)
                               : insert.bind_null(8));
  ASSAY_TRY_VOID(insert.bind_integer(9, stream ? 1 : 0));
  ASSAY_TRY_VOID(insert.run());
  if (state.database.changes() == 0) return {};
  if (stream) {
    ++state.files_of_streams;
    return {};
  }
  ++state.outputs;
  if (output.status != OutputStatus::kDeleted) state.left.add(output.path);
  return {};
}

base::Result<void> RunWriter::add_fact(const PathFact& fact) {
  return insert_path_fact(state_->database, state_->run, fact);
}

base::Result<void> RunWriter::add_process(const ProcessRecord& process) {
  ASSAY_TRY_VOID(state_->insert_process.bind(
      state_->run, ++state_->processes, process.pid, process.parent, process.program,
      packed_strings(process.arguments), process.started_ns, process.ended_ns, process.wait_status,
      process.host.empty() ? std::nullopt : std::optional(process.host)));
  return state_->insert_process.run();
}

base::Result<void> RunWriter::add_missed(const Missed& missed) {
  ASSAY_TRY_VOID(
      state_->insert_missed.bind(state_->run, ++state_->missed, missed.what, missed.text));
  return state_->insert_missed.run();
}

base::Result<void> RunWriter::add_package(const Package& package) {
  State& state = *state_;
  ASSAY_TRY_VOID(state.insert_package.bind(package.manager, package.name, package.version));
  ASSAY_TRY_VOID(state.insert_package.run());
  ASSAY_TRY_VOID(
      state.insert_run_package.bind(state.run, package.manager, package.name, package.version));
  return state.insert_run_package.run();
}

base::Result<void> RunWriter::add_rule(const FileRule& rule) {
  State& state = *state_;
  const auto packed = packed_strings(rule.paths);
  const std::string_view text(reinterpret_cast<const char*>(packed.data()), packed.size());
  ASSAY_TRY(const auto paths, keep_document(state.database, text));
  ASSAY_TRY(Statement insert,
            state.database.prepare("INSERT OR REPLACE INTO run_rule (run, name, keep, sentence,"
                                   " files, paths) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"));
  ASSAY_TRY_VOID(insert.bind(state.run, rule.name, rule.keep, rule.sentence, rule.files, paths));
  return insert.run();
}

base::Result<void> RunWriter::add_gpu(const GpuWork& work) {
  return insert_gpu_work(state_->database, state_->run, work);
}

base::Result<void> RunWriter::note_shared_outputs(RunRecord& run,
                                                  const std::vector<RunId>& earlier) {
  ASSAY_TRY_VOID(state_->input_lists.write());
  ASSAY_TRY_VOID(settle_streams());
  if (state_->outputs == 0) return {};
  ASSAY_TRY(const std::vector<Missed> shared,
            store::note_shared_outputs(state_->database, run, earlier));
  for (const Missed& missed : shared) ASSAY_TRY_VOID(add_missed(missed));
  run.complete = run.complete && shared.empty();
  return {};
}

base::Result<std::int64_t> RunWriter::finish(const RunRecord& run) {
  ASSAY_CHECK(run.id == state_->run, "a writer finishes the run it began");
  Database& database = state_->database;
  // Streams become outputs by what runs read.
  ASSAY_TRY_VOID(state_->input_lists.write());
  ASSAY_TRY_VOID(settle_streams());
  ASSAY_TRY_VOID(note_read_streams(database, run.id, state_->input_lists.inputs()));
  ASSAY_TRY_VOID(update_run(database, run));
  ASSAY_TRY(Statement count,
            database.prepare("UPDATE run SET inputs = ?2, outputs = ?3, processes = ?4"
                             " WHERE id = ?1"));
  ASSAY_TRY_VOID(
      count.bind(run.id, state_->input_lists.inputs(), state_->outputs, state_->processes));
  ASSAY_TRY_VOID(count.run());
  std::int64_t stage = 0;
  if (run.status == RunStatus::kDone && !is_about_runs(run)) {
    ASSAY_TRY(const auto files, files_identity(database, run, state_->read, state_->left));
    ASSAY_TRY(stage, take_stage(database, run, files));
  } else {
    ASSAY_TRY_VOID(leave_stage(database, run.id));
  }
  ASSAY_TRY_VOID(state_->transaction.commit());
  return stage;
}

std::int64_t RunWriter::outputs() const {
  return state_->outputs;
}

base::Result<RunId> record_run(Store& store, const RunRecord& run) {
  RunRecord recorded = run;
  recorded.status = RunStatus::kRunning;
  ASSAY_TRY(const RunId id, begin_run(store, recorded));
  recorded.id = id;
  recorded.status = run.status;
  ASSAY_TRY(RunWriter writer, RunWriter::begin(store, id));
  for (const Input& input : run.inputs) ASSAY_TRY_VOID(writer.add_input(input));
  for (const Output& output : run.outputs) ASSAY_TRY_VOID(writer.add_output(output));
  for (const Output& stream : run.streams) ASSAY_TRY_VOID(writer.add_output(stream));
  for (const PathFact& fact : run.facts) ASSAY_TRY_VOID(writer.add_fact(fact));
  for (const ProcessRecord& process : run.processes) ASSAY_TRY_VOID(writer.add_process(process));
  for (const Missed& missed : run.missed) ASSAY_TRY_VOID(writer.add_missed(missed));
  for (const FileRule& rule : run.rules) ASSAY_TRY_VOID(writer.add_rule(rule));
  for (const Package& package : run.context.packages) ASSAY_TRY_VOID(writer.add_package(package));
  ASSAY_TRY_VOID(writer.add_gpu(run.gpu));
  ASSAY_TRY_VOID(writer.finish(recorded));
  return id;
}

}  // namespace assay::store
