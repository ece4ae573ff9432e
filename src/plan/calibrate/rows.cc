#include "plan/calibrate/rows.h"

#include <fmt/format.h>

#include "base/csv.h"
#include "base/text.h"
#include "plan/calibrate/row_fields.h"
#include "plan/calibrate/row_text.h"
#include "plan/calibrate/row_work.h"
#include "plan/model/step_time.h"

namespace assay::plan {
namespace {

// Of a card's memory, what PyTorch's allocator does not count: the context, and NCCL's buffers.
constexpr double kOutsideAllocatorGib = 1.5;

// What a step of the batch that was taken would last at the measured rate.
std::optional<double> step_of_rate(const Row& row, double tokens_per_s) {
  if (row.candidates.size() != 1) return std::nullopt;
  const Batch& batch = row.candidates[0].batch;
  const Degrees& degrees = row.candidates[0].degrees;
  return batch.sequence * batch.micro_batch * batch.micros * degrees.dp * degrees.fsdp /
         tokens_per_s;
}

}  // namespace

base::Result<std::vector<Row>> parse_rows(std::string_view csv, const std::string& name) {
  ASSAY_TRY(base::CsvTable table, base::parse_csv(csv, name));
  for (std::string& column : table.columns) column = lower_case(base::trim(column));
  for (const std::string_view needed : {"gpus", "gpu_type", "seq"}) {
    if (!table.column(needed)) {
      return base::fail(base::usage_error(
          name, fmt::format("has no column '{}', without which no step can be predicted", needed),
          "the first line names the columns: docs/plan.md"));
    }
  }
  std::vector<Row> rows;
  rows.reserve(table.records.size());
  for (const base::CsvTable::Record& record : table.records) {
    RowFields fields = row_fields(table, record);
    Row row{.id = std::move(fields.id),
            .source = fields.source,
            .project = std::move(fields.project),
            .step_s = fields.step_s,
            .memory_gib = fields.mem_gb};
    if (row.memory_gib && contains_any(fields.lower_notes, {"peak allocated", "max allocated",
                                                            "gib allocated", "gb allocated"}))
      *row.memory_gib += kOutsideAllocatorGib;
    // The first counts the allocator's cache, too, which grows to what the card has.
    row.memory_counted =
        !contains_any(fields.lower_notes, {"nvidia-smi", "what memory counts is not said"});
    // Terms that the tables use for rows that did not measure a normal step.
    row.flagged = contains_any(fields.notes, {"pathol", "IMPOSSIBLE", "OOM", "framework-bound"}) ||
                  !fields.doubt.empty();
    row.reason = std::move(fields.reason);
    if (row.reason.empty()) {
      RowWork work = row_work(fields);
      row.candidates = std::move(work.candidates);
      row.reason = std::move(work.reason);
      if (!fields.remark.empty())
        row.reason = fields.remark + (row.reason.empty() ? "" : "; ") + row.reason;
      row.assumed = work.assumed;
      row.flagged = row.flagged || work.batch_unknown;
      row.by_rate = work.by_rate;
      if (work.micro_unknown) row.memory_gib.reset();
      if (!row.step_s && fields.tok_per_s && !work.batch_unknown)
        row.step_s = step_of_rate(row, *fields.tok_per_s);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::optional<FastestCandidate> predict(const Row& row, const Constants& constants) {
  std::optional<FastestCandidate> best;
  double least = 0;  // seconds per sequence
  for (const Work& work : row.candidates) {
    const double seconds = step_seconds(work, constants).count();
    const Degrees& d = work.degrees;
    const double each = seconds / (work.batch.micro_batch * work.batch.micros * d.dp * d.fsdp);
    if (best && each >= least) continue;
    best = FastestCandidate{seconds, &work};
    least = each;
  }
  return best;
}

}  // namespace assay::plan
