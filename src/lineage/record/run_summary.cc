#include "lineage/record/run_summary.h"

#include <fmt/format.h>

#include <optional>

#include "base/json.h"
#include "base/units.h"

namespace assay::lineage {

std::string summary_text(SummaryFormat summary, const store::RunRecord& run, std::int64_t inputs,
                         std::int64_t outputs, bool used_network) {
  if (summary == SummaryFormat::kJson) {
    const auto or_null = [](const std::optional<int>& value) {
      return value ? base::Json(*value) : base::Json(nullptr);
    };
    return base::Json{{"run", run.id},
                      {"uid", run.uid},
                      {"status", store::name_of(run.status)},
                      {"exit_code", or_null(run.exit_code)},
                      {"signal", or_null(run.signal)},
                      {"inputs", inputs},
                      {"outputs", outputs},
                      {"complete", run.complete},
                      {"network", used_network},
                      {"tracer", run.tracer}}
        .dump();
  }
  if (summary == SummaryFormat::kNone) return {};
  return fmt::format("assay: run {}: {}, {}, {} ({}){}; see `assay show {}`", run.id,
                     base::counted(inputs, "input"), base::counted(outputs, "output"),
                     run.complete ? "complete" : "NOT complete", run.tracer,
                     used_network ? ", except data from the network" : "", run.id);
}

}  // namespace assay::lineage
