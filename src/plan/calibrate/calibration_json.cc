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
constexpr std::array kKindNames = {"dense", "mixtures"};
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
    if (!std::isfinite(interval.high)) continue;  // nothing is known of it
    json[class_name(c)] = {{"low", interval.low},
                           {"high", interval.high},
                           {"rows", interval.rows},
                           {"projects", interval.projects}};
  }
  return json;
}

Json projects_json(const SeenProjects& projects) {
  Json json = Json::object();
  for (std::size_t kind = 0; kind < kKindNames.size(); ++kind) {
    for (std::size_t g = 0; g < kGenerations; ++g) {
      Json& cell = json[kKindNames[kind]][std::string(to_text(static_cast<Generation>(g)))];
      for (std::size_t k = 0; k < kPrecisions; ++k)
        cell[std::string(to_text(static_cast<SeenPrecision>(k)))] = projects[kind][g][k];
    }
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

// An object of the file and where it is: "constants.json: intervals.moe".
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
    if (!place.json->contains(class_name(c))) continue;
    ASSAY_TRY(const Place one, object_at(place, class_name(c)));
    ASSAY_TRY_VOID(check_keys(one, {"low", "high", "rows", "projects"}));
    ErrorInterval& interval = table.by_class[c];
    ASSAY_TRY(interval.low, number_at(one, "low", 1 / kMostOff, kMostOff));
    ASSAY_TRY(interval.high, number_at(one, "high", interval.low, kMostOff));
    ASSAY_TRY(const double rows, number_at(one, "rows", 0, 1e12));
    interval.rows = std::llround(rows);
    ASSAY_TRY(const double projects, number_at(one, "projects", 0, 1e12));
    interval.projects = std::llround(projects);
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

Result<SeenProjects> projects_from(const Place& place) {
  ASSAY_TRY_VOID(check_keys(place, {kKindNames.begin(), kKindNames.end()}));
  SeenProjects projects{};
  for (std::size_t kind = 0; kind < kKindNames.size(); ++kind) {
    ASSAY_TRY(const Place cells, object_at(place, kKindNames[kind]));
    for (std::size_t g = 0; g < kGenerations; ++g) {
      const std::string generation(to_text(static_cast<Generation>(g)));
      ASSAY_TRY(const Place of_cards, object_at(cells, generation));
      for (std::size_t k = 0; k < kPrecisions; ++k) {
        const std::string precision(to_text(static_cast<SeenPrecision>(k)));
        ASSAY_TRY(const double count, number_at(of_cards, precision, 0, 1e9));
        projects[kind][g][k] = std::llround(count);
      }
    }
  }
  return projects;
}

}  // namespace

std::string to_json(const Calibration& calibration) {
  Json json;
  json["constants"] = constants_json(calibration.constants, constant_table());
  json["memory"] = constants_json(calibration.memory, memory_constant_table());
  json["intervals"] = intervals_json(calibration.intervals);
  json["ranges"] = ranges_json(calibration.seen.ranges);
  json["projects"] = projects_json(calibration.seen.projects);
  return base::json_text(json);
}

Result<Calibration> calibration_from_json(std::string_view text, const std::string& name) {
  const Json json = Json::parse(text, nullptr, false);
  const Place top{&json, name};
  if (json.is_discarded())
    return base::fail(top.error("not JSON", "such files come from --calibrate"));
  ASSAY_TRY_VOID(check_keys(top, {"constants", "memory", "intervals", "ranges", "projects"}));
  Calibration read;
  ASSAY_TRY(const Place constants, object_at(top, "constants", true));
  ASSAY_TRY(read.constants, constants_from<Constants>(constants, constant_table()));
  ASSAY_TRY(const Place memory, object_at(top, "memory", true));
  ASSAY_TRY(read.memory, constants_from<MemoryConstants>(memory, memory_constant_table()));
  ASSAY_TRY(const Place intervals, object_at(top, "intervals", true));
  ASSAY_TRY(read.intervals, intervals_from(intervals));
  ASSAY_TRY(const Place ranges, object_at(top, "ranges", true));
  ASSAY_TRY(read.seen.ranges, ranges_from(ranges));
  ASSAY_TRY(const Place projects, object_at(top, "projects", true));
  ASSAY_TRY(read.seen.projects, projects_from(projects));
  return read;
}

}  // namespace assay::plan
