#include "store/run_dependencies.h"

#include <algorithm>
#include <unordered_set>

#include "store/column_encoding.h"
#include "store/run_reader.h"

namespace assay::store {
namespace {

constexpr std::int64_t kUnknownSize = -1;

}  // namespace

std::set<std::string> stream_paths(const std::vector<std::string>& redirects) {
  std::set<std::string> paths;
  for (const std::string& redirect : redirects) {
    const std::size_t path = redirect.find('/');
    if (path != std::string::npos) paths.insert(redirect.substr(path));
  }
  return paths;
}

std::set<std::string> stream_paths(const RunRecord& run) {
  return stream_paths(run.redirects);
}

std::set<std::string> log_paths(const RunRecord& run) {
  if (run.redirects.empty()) return {};
  const std::set<std::string> streams = stream_paths(run);
  std::set<std::string> logs;
  bool leaves_files = false;
  for (const Output& output : run.outputs) {
    const bool stream = streams.contains(output.path);
    if (stream) logs.insert(output.path);
    if (!stream && output.status != OutputStatus::kDeleted) leaves_files = true;
  }
  if (!leaves_files) return {};
  for (const Input& input : run.inputs) logs.erase(input.path);
  return logs;
}

base::Result<std::set<std::string>> load_log_paths(Database& database, RunId run,
                                                   const std::vector<std::string>& redirects) {
  std::set<std::string> logs;
  const std::set<std::string> streams = stream_paths(redirects);
  if (streams.empty()) return logs;
  // Of more files than it has streams, one is not a stream.
  ASSAY_TRY(Statement left, database.prepare("SELECT path FROM run_output WHERE run = ?1"
                                             " AND status <> 'deleted' LIMIT ?2"));
  ASSAY_TRY_VOID(left.bind(run, static_cast<std::int64_t>(streams.size() + 1)));
  bool leaves_files = false;
  ASSAY_TRY_VOID(left.each([&](const Statement& row) {
    leaves_files = leaves_files || !streams.contains(row.text(0));
  }));
  if (!leaves_files) return logs;
  ASSAY_TRY(Statement written,
            database.prepare("SELECT 1 FROM run_output o WHERE o.run = ?1 AND o.path = ?2 AND NOT"
                             " EXISTS (SELECT 1 FROM run_input i WHERE i.path = ?2"
                             " AND i.run = ?1)"));
  for (const std::string& stream : streams) {
    ASSAY_TRY_VOID(written.bind(run, stream));
    ASSAY_TRY_VOID(written.each([&](const Statement&) { logs.insert(stream); }));
  }
  return logs;
}

std::vector<Input> dependencies_of(const RunRecord& run, Logs logs) {
  std::vector<Input> dependencies = run.inputs;
  const bool any = std::any_of(run.outputs.begin(), run.outputs.end(),
                               [](const Output& output) { return output.before.has_value(); });
  if (!any) return dependencies;
  const std::set<std::string> left_out =
      logs == Logs::kNo ? log_paths(run) : std::set<std::string>();
  std::unordered_set<std::string_view> read;
  for (const Input& input : run.inputs) read.insert(input.path);
  for (const Output& output : run.outputs) {
    if (!output.before || read.contains(output.path) || left_out.contains(output.path)) continue;
    dependencies.push_back({output.path, output.before, kUnknownSize});
  }
  return dependencies;
}

std::vector<Input> dependencies_for(const RunRecord& run, const std::string& artifact) {
  std::vector<Input> dependencies = dependencies_of(run, Logs::kNo);
  const std::set<std::string> logs = log_paths(run);
  for (const Output& output : run.outputs) {
    if (output.before && output.path == artifact && logs.contains(artifact)) {
      dependencies.push_back({artifact, output.before, kUnknownSize});
    }
  }
  return dependencies;
}

base::Result<std::vector<Input>> load_dependencies(Store& store, RunId run,
                                                   const std::optional<std::string>& artifact) {
  if (artifact) {
    ASSAY_TRY(RunRecord whole, head_of(store, run));
    // Only a run with redirected output has logs.
    if (!whole.redirects.empty()) {
      ASSAY_TRY_VOID(each_input(store, run, -1,
                                [&](Input input) { whole.inputs.push_back(std::move(input)); }));
      ASSAY_TRY_VOID(each_output(
          store, run, -1, [&](Output output) { whole.outputs.push_back(std::move(output)); }));
      return dependencies_for(whole, *artifact);
    }
  }
  std::vector<Input> dependencies;
  ASSAY_TRY_VOID(
      each_input(store, run, -1, [&](Input input) { dependencies.push_back(std::move(input)); }));
  ASSAY_TRY(Statement select,
            store.database().prepare(
                "SELECT o.path, o.before FROM run_output o WHERE o.run = ?1 AND o.before IS NOT"
                " NULL AND NOT EXISTS (SELECT 1 FROM listed_input i CROSS JOIN run_list u"
                " ON u.list = i.list WHERE i.path = o.path AND u.run = ?1) ORDER BY o.path"));
  ASSAY_TRY_VOID(select.bind(run));
  ASSAY_TRY_VOID(select.each([&](const Statement& row) {
    dependencies.push_back({row.text(0), digest_at(row, 1), kUnknownSize});
  }));
  return dependencies;
}

}  // namespace assay::store
