#include "plan/calibrate/row_fields.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "plan/calibrate/row_text.h"

namespace assay::plan {
namespace {

// Larger than anything that exists: a model of 10^15 parameters, a sequence of as many tokens.
constexpr double kMostOfAnything = 1e15;

struct NumberField {
  std::string_view column;
  std::optional<double> RowFields::*value;
  bool whole;
};
constexpr std::array<NumberField, 21> kNumberFields = {{
    {"params", &RowFields::params, false},
    {"layers", &RowFields::layers, true},
    {"dim", &RowFields::dim, true},
    {"ffn", &RowFields::ffn, true},
    {"heads", &RowFields::heads, true},
    {"kv_heads", &RowFields::kv_heads, true},
    {"vocab", &RowFields::vocab, true},
    {"seq", &RowFields::seq, true},
    {"micro_batch", &RowFields::micro_batch, true},
    {"grad_accum", &RowFields::grad_accum, true},
    {"gpus", &RowFields::gpus, true},
    {"gpus_per_node", &RowFields::gpus_per_node, true},
    {"dp", &RowFields::dp, true},
    {"fsdp", &RowFields::fsdp, true},
    {"tp", &RowFields::tp, true},
    {"pp", &RowFields::pp, true},
    {"ep", &RowFields::ep, true},
    {"intra_bw", &RowFields::intra_bw, false},
    {"inter_bw", &RowFields::inter_bw, false},
    {"step_s", &RowFields::step_s, false},
    {"mem_gb", &RowFields::mem_gb, false},
}};

std::string_view field(const base::CsvTable& table, const base::CsvTable::Record& record,
                       std::string_view column) {
  const auto at = table.column(column);
  if (!at || *at >= record.fields.size()) return {};
  return base::trim(record.fields[*at]);
}

// As tables write what they do not know.
bool is_unknown(std::string_view text) {
  const std::string lower = lower_case(text);
  for (const std::string_view word :
       {"", "nan", "na", "n/a", "none", "null", "-", "?", "unknown"}) {
    if (lower == word) return true;
  }
  return false;
}

std::string nonsense(std::string_view column, std::string_view text, std::string_view why) {
  return fmt::format("{}: '{}' {}", column, base::shortened(base::printable(text), 40), why);
}

// The number, or why it is none.
std::string read_number(const NumberField& known, std::string_view text,
                        std::optional<double>& value) {
  double number = 0;
  const std::string_view unsigned_text = text.starts_with('+') ? text.substr(1) : text;
  const auto [end, error] =
      std::from_chars(unsigned_text.data(), unsigned_text.data() + unsigned_text.size(), number);
  if (error == std::errc::result_out_of_range)
    return nonsense(known.column, text, "is no size that exists");
  if (error != std::errc() || end != unsigned_text.data() + unsigned_text.size() ||
      std::isnan(number)) {
    return nonsense(known.column, text, "is not a number");
  }
  if (number <= 0) return nonsense(known.column, text, "is not above zero");
  if (number > kMostOfAnything) return nonsense(known.column, text, "is no size that exists");
  if (known.whole && number != std::floor(number))
    return nonsense(known.column, text, "is not a whole number");
  value = number;
  return {};
}

}  // namespace

RowFields row_fields(const base::CsvTable& table, const base::CsvTable::Record& record) {
  const auto text = [&](std::string_view column) {
    const std::string_view written = field(table, record, column);
    return is_unknown(written) ? std::string() : std::string(written);
  };
  RowFields row;
  row.id = text("id");
  if (row.id.empty()) row.id = fmt::format("line {}", record.line);
  row.source = text("source");
  row.model = lower_case(text("model"));
  row.gpu_type = text("gpu_type");
  row.notes = text("notes");
  row.lower_notes = lower_case(row.notes);
  row.software = lower_case(row.source) + ' ' + row.lower_notes;
  // "none" is a policy, not an unknown one.
  row.recompute = lower_case(field(table, record, "ac"));
  if (row.recompute != "none" && is_unknown(row.recompute)) row.recompute.clear();
  row.precision = lower_case(text("precision"));
  row.compile = lower_case(text("compile"));

  for (const NumberField& known : kNumberFields) {
    const std::string_view written = field(table, record, known.column);
    if (is_unknown(written)) continue;
    // The first that is wrong is told; the others are read all the same.
    const std::string reason = read_number(known, written, row.*known.value);
    if (row.reason.empty()) row.reason = reason;
  }
  if (!row.reason.empty()) return row;
  if (record.fields.size() > table.columns.size()) {
    row.reason = fmt::format("has {} fields where the table has {} columns", record.fields.size(),
                             table.columns.size());
  } else if (!row.gpus) {
    row.reason = "gpus: not said";
  } else if (!row.seq) {
    row.reason = "seq: not said";
  } else if (row.gpu_type.empty()) {
    row.reason = "gpu_type: not said";
  }
  return row;
}

}  // namespace assay::plan
