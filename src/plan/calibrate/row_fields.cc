#include "plan/calibrate/row_fields.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "plan/calibrate/row_text.h"

namespace assay::plan {
namespace {

struct NumberField {
  std::string_view column;
  std::optional<double> RowFields::*value;
  bool whole;
  double most;  // far larger than anything that exists
  bool may_be_zero = false;
};
constexpr std::array<NumberField, 29> kNumberFields = {{
    {"params", &RowFields::params, false, 1e15},
    {"layers", &RowFields::layers, true, 1e4},
    {"dim", &RowFields::dim, true, 1e6},
    {"ffn", &RowFields::ffn, true, 1e7},
    {"heads", &RowFields::heads, true, 1e4},
    {"kv_heads", &RowFields::kv_heads, true, 1e4},
    {"vocab", &RowFields::vocab, true, 1e8},
    {"seq", &RowFields::seq, true, 1e9},
    {"micro_batch", &RowFields::micro_batch, true, 1e6},
    {"grad_accum", &RowFields::grad_accum, true, 1e6},
    {"gpus", &RowFields::gpus, true, 1e7},
    {"gpus_per_node", &RowFields::gpus_per_node, true, 1e4},
    {"dp", &RowFields::dp, true, 1e7},
    {"fsdp", &RowFields::fsdp, true, 1e7},
    {"tp", &RowFields::tp, true, 1e7},
    {"pp", &RowFields::pp, true, 1e7},
    {"ep", &RowFields::ep, true, 1e7},
    {"cp", &RowFields::cp, true, 1e7},
    {"vp", &RowFields::vp, true, 1e4},
    {"experts", &RowFields::experts, true, 1e5},
    {"top_k", &RowFields::top_k, true, 1e4},
    {"expert_ffn", &RowFields::expert_ffn, true, 1e7},
    {"shared_experts", &RowFields::shared_experts, true, 1e4, true},
    {"moe_layers", &RowFields::moe_layers, true, 1e4, true},
    {"intra_bw", &RowFields::intra_bw, false, 1e5},
    {"inter_bw", &RowFields::inter_bw, false, 1e5},
    {"tok_per_s", &RowFields::tok_per_s, false, 1e12},
    {"step_s", &RowFields::step_s, false, 1e7},
    {"mem_gb", &RowFields::mem_gb, false, 1e5},
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
  if (number < 0 || (number == 0 && !known.may_be_zero))
    return nonsense(known.column, text, "is not above zero");
  if (number > known.most) return nonsense(known.column, text, "is no size that exists");
  if (known.whole && number != std::floor(number))
    return nonsense(known.column, text, "is not a whole number");
  value = number;
  return {};
}

// Policies and precisions that the model does not have.
std::string unknown_word(const RowFields& row) {
  const std::string& policy = row.recompute;
  if (!policy.empty() && policy != "no" && policy != "false" && policy != "off" &&
      !contains_any(policy, {"none", "selective", "full"})) {
    return nonsense("ac", policy, "is none of none, selective, full");
  }
  if (!row.precision.empty() &&
      !contains_any(row.precision,
                    {"bf16", "fp16", "fp8", "fp4", "float16", "float8", "half", "mixed"})) {
    return nonsense("precision", row.precision, "is none of bf16, fp16, fp8, mxfp8, nvfp4");
  }
  return {};
}

// "2025-03", "2025", or a release that is called by its month: "NeMo 25.04",
// "Megatron-Bridge 26.02".
std::optional<double> date_of(std::string_view date, const std::string& lower_source) {
  if (const auto year = number_after(date, "20", true); year && date.starts_with("20")) {
    const auto month = number_after(date, "-", false);
    const double in_year = month && *month >= 1 && *month <= 12 ? *month - 0.5 : 6;
    const double two_digits = *year >= 100 ? std::fmod(*year, 100) : *year;
    return 2000 + two_digits + in_year / 12;
  }
  for (const std::string_view name : {"nemo ", "megatron-bridge ", "dgxc-benchmarking v"}) {
    const std::size_t at = lower_source.find(name);
    if (at == std::string::npos) continue;
    const std::string_view release = std::string_view(lower_source).substr(at + name.size());
    const auto year = number_after(release, "", false);
    const auto month = number_after(release, ".", false);
    if (year && month && *year >= 20 && *year < 40 && *month >= 1 && *month <= 12)
      return 2000 + *year + (*month - 0.5) / 12;
  }
  return std::nullopt;
}

}  // namespace

RowFields row_fields(const base::CsvTable& table, const base::CsvTable::Record& record) {
  const auto text = [&](std::string_view column) {
    const std::string_view written = field(table, record, column);
    return is_unknown(written) ? std::string() : std::string(written);
  };
  RowFields row;
  row.id = field(table, record, "id");  // verbatim, whatever it is: others join by it
  if (row.id.empty()) row.id = fmt::format("line {}", record.line);
  row.source = text("source");
  row.project = text("project");
  if (row.project.empty()) row.project = family_of(row.source);
  row.doubt = text("doubt");
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
  row.framework = lower_case(text("framework"));
  row.attention = lower_case(text("attention"));
  row.optimizer = lower_case(text("optimizer"));
  row.zero = lower_case(text("zero"));
  row.schedule = lower_case(text("schedule"));
  row.async_tp = lower_case(text("async_tp"));
  row.date = date_of(text("date"), lower_case(row.source));
  if (!row.framework.empty()) row.software += ' ' + row.framework;

  for (const NumberField& known : kNumberFields) {
    const std::string_view written = field(table, record, known.column);
    if (is_unknown(written)) {
      if (known.value == &RowFields::step_s && !written.empty())
        row.remark = nonsense(known.column, written, "is not a time: the row is not scored by it");
      continue;
    }
    // The first error is reported; the other fields are read all the same.
    const std::string reason = read_number(known, written, row.*known.value);
    if (row.reason.empty()) row.reason = reason;
  }
  if (record.unclosed) row.reason = "a quote is not closed";
  if (!row.reason.empty()) return row;
  if (record.fields.size() > table.columns.size()) {
    row.reason = fmt::format("has {} fields where the table has {} columns", record.fields.size(),
                             table.columns.size());
  } else if (!row.gpus) {
    row.reason = "gpus: not stated";
  } else if (!row.seq) {
    row.reason = "seq: not stated";
  } else if (row.gpu_type.empty()) {
    row.reason = "gpu_type: not stated";
  } else {
    row.reason = unknown_word(row);
  }
  return row;
}

}  // namespace assay::plan
