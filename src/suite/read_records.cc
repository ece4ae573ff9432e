#include "suite/read_records.h"

#include <fmt/format.h>

#include "spec/table_keys.h"

namespace assay::suite {
namespace {

using spec::TableKeys;
using spec::Value;
using spec::wrong_value;

base::Result<void> read_bounds(const Value& value, TableKeys& keys, RecordedValue& recorded) {
  double low = 0;
  double high = 0;
  ASSAY_TRY_VOID(keys.number("low", low));
  ASSAY_TRY_VOID(keys.number("high", high));
  const bool has_low = value.find("low") != nullptr;
  if (has_low != (value.find("high") != nullptr) || low > high) {
    return base::fail(
        base::usage_error(value.origin().text(), "a recorded interval has two ends, low and high"));
  }
  if (!has_low) return {};
  recorded.low = low;
  recorded.high = high;
  return {};
}

base::Result<void> read_record(TableKeys& keys, RecordedValue& recorded) {
  ASSAY_TRY_VOID(keys.text("machine", recorded.machine));
  ASSAY_TRY_VOID(keys.text("commit", recorded.commit));
  ASSAY_TRY_VOID(keys.text("command", recorded.command));
  const Value* date = keys.take("date");
  if (date == nullptr) return {};
  const auto* day = date->get<base::Date>();
  if (day == nullptr) return base::fail(wrong_value(*date, "date", "a date"));
  recorded.date = base::to_text(*day);
  return {};
}

}  // namespace

base::Result<std::optional<RecordedValue>> RecordBook::recorded_of(const Value* value) {
  if (value == nullptr) return std::nullopt;
  if (value->get<Value::Table>() == nullptr) {
    return base::fail(wrong_value(*value, "recorded", "a table: { value = …, from = … }"));
  }
  RecordedValue recorded;
  TableKeys keys(*value);
  std::string from;
  ASSAY_TRY_VOID(keys.text("from", from));
  if (!from.empty()) {
    const Value* record = records_ == nullptr ? nullptr : records_->find(from);
    if (record == nullptr || record->get<Value::Table>() == nullptr) {
      return base::fail(
          base::usage_error(value->origin().text(), fmt::format("there is no [record.{}]", from)));
    }
    TableKeys common(*record);
    ASSAY_TRY_VOID(read_record(common, recorded));
    ASSAY_TRY_VOID(common.no_others());
    used_.insert(from);
  }
  ASSAY_TRY_VOID(read_record(keys, recorded));
  const bool has_value = value->find("value") != nullptr;
  ASSAY_TRY_VOID(keys.number("value", recorded.value));
  ASSAY_TRY_VOID(read_bounds(*value, keys, recorded));
  ASSAY_TRY_VOID(keys.text("note", recorded.note));
  ASSAY_TRY_VOID(keys.no_others());
  if (!has_value || recorded.machine.empty() || recorded.date.empty() || recorded.commit.empty() ||
      recorded.command.empty()) {
    return base::fail(base::usage_error(
        value->origin().text(), "a recorded figure does not say where it comes from",
        "value, machine, date, commit and command, or from = NAME of a [record.NAME]"));
  }
  return recorded;
}

base::Result<void> RecordBook::all_used() const {
  const auto* all = records_ == nullptr ? nullptr : records_->get<Value::Table>();
  if (all == nullptr) return {};
  for (const auto& [name, record] : *all) {
    if (used_.contains(name)) continue;
    return base::fail(base::usage_error(record.origin().text(),
                                        fmt::format("no figure uses [record.{}]", name),
                                        "remove it, or use it: from = …"));
  }
  return {};
}

}  // namespace assay::suite
