#include "store/run_dependencies.h"

#include <string_view>
#include <unordered_set>

#include "store/column_encoding.h"
#include "store/run_reader.h"

namespace assay::store {
namespace {

constexpr std::int64_t kUnknownSize = -1;

}  // namespace

std::vector<Input> dependencies_of(const RunRecord& run) {
  return dependencies_for(run, "");
}

std::vector<Input> dependencies_for(const RunRecord& run, const std::string& artifact) {
  std::vector<Input> dependencies = run.inputs;
  std::unordered_set<std::string_view> read;
  const auto add = [&](const Output& output) {
    if (!output.before) return;
    if (read.empty()) {
      for (const Input& input : run.inputs) read.insert(input.path);
    }
    if (read.contains(output.path)) return;
    dependencies.push_back({output.path, output.before, kUnknownSize});
  };
  for (const Output& output : run.outputs) add(output);
  for (const Output& log : run.streams) {
    if (log.path == artifact) add(log);
  }
  return dependencies;
}

base::Result<std::vector<Input>> load_dependencies(Store& store, RunId run,
                                                   const std::optional<std::string>& artifact) {
  std::vector<Input> dependencies;
  ASSAY_TRY_VOID(
      each_input(store, run, -1, [&](Input input) { dependencies.push_back(std::move(input)); }));
  ASSAY_TRY(Statement select,
            store.database().prepare(
                "SELECT o.path, o.before FROM run_output o WHERE o.run = ?1 AND o.before IS NOT"
                " NULL AND (o.stream = 0 OR ?2 IS NULL OR o.path = ?2) AND NOT EXISTS (SELECT 1"
                " FROM listed_input i CROSS JOIN run_list u ON u.list = i.list"
                " WHERE i.path = o.path AND u.run = ?1) ORDER BY o.path"));
  ASSAY_TRY_VOID(select.bind(run, artifact));
  ASSAY_TRY_VOID(select.each([&](const Statement& row) {
    dependencies.push_back({row.text(0), digest_at(row, 1), kUnknownSize});
  }));
  return dependencies;
}

}  // namespace assay::store
