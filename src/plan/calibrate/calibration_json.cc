// A calibration as a file: numbers by their names, in the order of their tables.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/json.h"
#include "base/suggestion.h"
#include "base/text.h"
#include "plan/calibrate/calibration.h"

namespace assay::plan {
namespace {

using base::Json;
using base::Result;

constexpr double kMostOff = 1e9;  // as a factor
constexpr double kMostInRanges = 1e30;
constexpr std::array kRangeNames = {"parameters", "ranks", "sequence", "card_flops"};
constexpr std::array kRangeMembers = {&SeenRanges::parameters, &SeenRanges::ranks,
                                      &SeenRanges::sequence, &SeenRanges::card_flops};

std::string class_name(std::size_t index) {
  return std::string(to_text(static_cast<SoftwareClass>(index)));
}

template <class Values, class Table>
Json constants_json(const Values& values, const Table& table) {
  Json json = Json::object();
  for (const auto& info : table) json[std::string(info.name)] = values.*info.value;
  return json;
}

Json intervals_json(const IntervalTable& table) {
  Json json = Json::object();
  for (std::size_t c = 0; c < kSoftwareClasses; ++c) {
    const ErrorInterval& interval = table.by_class[c];
    json[class_name(c)] = {{"low", interval.low}, {"high", interval.high}, {"rows", interval.rows}};
  }
  return json;
}

// Of classes that have rows.
Json ranges_json(const RangeTable& table) {
  Json json = Json::object();
  for (std::size_t c = 0; c < kSoftwareClasses; ++c) {
    if (!table[c].any()) continue;
    for (std::size_t k = 0; k < kRangeNames.size(); ++k) {
      const SeenRange& range = table[c].*kRangeMembers[k];
      json[class_name(c)][kRangeNames[k]] = {{"low", range.low}, {"high", range.high}};
    }
  }
  return json;
}

// An object of the file and where it is: "constants.json: intervals.known_source".
struct Place {
  const Json* json = nullptr;
  std::string where;

  [[nodiscard]] base::Error error(std::string what, std::string hint = {}) const {
    return base::usage_error(where, std::move(what), std::move(hint));
  }
  [[nodiscard]] Place below(const Json* part, std::string_view key, bool top = false) const {
    return {part, fmt::format("{}{}{}", where, top ? ": " : ".", key)};
  }
};

// Fails unless it is an object with no other keys than these.
Result<void> check_keys(const Place& place, const std::vector<std::string>& keys) {
  if (!place.json->is_object())
    return base::fail(place.error("expected an object", "such files come from --calibrate"));
  for (const auto& item : place.json->items()) {
    if (std::find(keys.begin(), keys.end(), item.key()) == keys.end()) {
      return base::fail(place.error(fmt::format("unknown key '{}'", item.key()),
                                    base::suggestion(item.key(), keys)));
    }
  }
  return {};
}

Result<double> number_at(const Place& place, const std::string& key, double low, double high) {
  const std::string expected = fmt::format("expected a number from {} to {}", low, high);
  const auto found = place.json->find(key);
  if (found == place.json->end())
    return base::fail(place.below(nullptr, key).error("missing", expected));
  const double value = found->is_number() ? found->template get<double>() : std::nan("");
  if (!(value >= low && value <= high)) {
    return base::fail(
        place.below(nullptr, key)
            .error(base::shortened(base::trim(base::json_line(*found)), 40), expected));
  }
  return value;
}

Result<Place> object_at(const Place& place, const std::string& key, bool top = false) {
  const auto found = place.json->find(key);
  if (found == place.json->end())
    return base::fail(place.below(nullptr, key, top).error("missing", "expected an object"));
  return place.below(&*found, key, top);
}

template <class Values, class Table>
Result<Values> constants_from(const Place& place, const Table& table) {
  std::vector<std::string> names;
  for (const auto& info : table) names.emplace_back(info.name);
  ASSAY_TRY_VOID(check_keys(place, names));
  Values values;
  for (const auto& info : table) {
    ASSAY_TRY(values.*info.value, number_at(place, std::string(info.name), info.low, info.high));
  }
  return values;
}

std::vector<std::string> class_names() {
  std::vector<std::string> names;
  for (std::size_t c = 0; c < kSoftwareClasses; ++c) names.push_back(class_name(c));
  return names;
}

Result<IntervalTable> intervals_from(const Place& place) {
  ASSAY_TRY_VOID(check_keys(place, class_names()));
  IntervalTable table;
  for (std::size_t c = 0; c < kSoftwareClasses; ++c) {
    ASSAY_TRY(const Place one, object_at(place, class_name(c)));
    ASSAY_TRY_VOID(check_keys(one, {"low", "high", "rows"}));
    ErrorInterval& interval = table.by_class[c];
    ASSAY_TRY(interval.low, number_at(one, "low", 1 / kMostOff, kMostOff));
    ASSAY_TRY(interval.high, number_at(one, "high", interval.low, kMostOff));
    ASSAY_TRY(const double rows, number_at(one, "rows", 0, 1e12));
    interval.rows = std::llround(rows);
  }
  return table;
}

Result<RangeTable> ranges_from(const Place& place) {
  ASSAY_TRY_VOID(check_keys(place, class_names()));
  RangeTable table;
  for (std::size_t c = 0; c < kSoftwareClasses; ++c) {
    if (!place.json->contains(class_name(c))) continue;
    ASSAY_TRY(const Place one, object_at(place, class_name(c)));
    ASSAY_TRY_VOID(check_keys(one, {kRangeNames.begin(), kRangeNames.end()}));
    for (std::size_t k = 0; k < kRangeNames.size(); ++k) {
      ASSAY_TRY(const Place ends, object_at(one, kRangeNames[k]));
      ASSAY_TRY_VOID(check_keys(ends, {"low", "high"}));
      SeenRange& range = table[c].*kRangeMembers[k];
      ASSAY_TRY(range.low, number_at(ends, "low", 0, kMostInRanges));
      ASSAY_TRY(range.high, number_at(ends, "high", range.low, kMostInRanges));
    }
  }
  return table;
}

Result<std::vector<std::string>> families_from(const Place& top) {
  const auto found = top.json->find("families");
  std::vector<std::string> families;
  bool good = found != top.json->end() && found->is_array();
  for (std::size_t i = 0; good && i < found->size(); ++i) {
    good = (*found)[i].is_string();
    if (good) families.push_back((*found)[i].get<std::string>());
  }
  if (good) return families;
  return base::fail(top.below(nullptr, "families", true).error("expected an array of names"));
}

}  // namespace

std::string to_json(const Calibration& calibration) {
  Json json;
  json["constants"] = constants_json(calibration.constants, constant_table());
  json["memory"] = constants_json(calibration.memory, memory_constant_table());
  json["known_source"] = intervals_json(calibration.known_source);
  json["unknown_source"] = intervals_json(calibration.unknown_source);
  json["ranges"] = ranges_json(calibration.ranges);
  json["families"] = calibration.families;
  return base::json_text(json);
}

Result<Calibration> calibration_from_json(std::string_view text, const std::string& name) {
  const Json json = Json::parse(text, nullptr, false);
  const Place top{&json, name};
  if (json.is_discarded())
    return base::fail(top.error("not JSON", "such files come from --calibrate"));
  ASSAY_TRY_VOID(check_keys(
      top, {"constants", "memory", "known_source", "unknown_source", "ranges", "families"}));
  Calibration read;
  ASSAY_TRY(const Place constants, object_at(top, "constants", true));
  ASSAY_TRY(read.constants, constants_from<Constants>(constants, constant_table()));
  ASSAY_TRY(const Place memory, object_at(top, "memory", true));
  ASSAY_TRY(read.memory, constants_from<MemoryConstants>(memory, memory_constant_table()));
  ASSAY_TRY(const Place known, object_at(top, "known_source", true));
  ASSAY_TRY(read.known_source, intervals_from(known));
  ASSAY_TRY(const Place unknown, object_at(top, "unknown_source", true));
  ASSAY_TRY(read.unknown_source, intervals_from(unknown));
  ASSAY_TRY(const Place ranges, object_at(top, "ranges", true));
  ASSAY_TRY(read.ranges, ranges_from(ranges));
  ASSAY_TRY(read.families, families_from(top));
  return read;
}

}  // namespace assay::plan
