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
constexpr std::array kRangeNames = {"parameters", "ranks", "sequence", "card_flops",
                                    "local_experts"};
constexpr std::array kRangeMembers = {&SeenRanges::parameters, &SeenRanges::ranks,
                                      &SeenRanges::sequence, &SeenRanges::card_flops,
                                      &SeenRanges::local_experts};

std::string class_name(std::size_t index) {
  return std::string(to_text(static_cast<SoftwareClass>(index)));
}

template <class Values, class Table>
Json constants_json(const Values& values, const Table& table) {
  Json json = Json::object();
  for (const auto& info : table) json[std::string(info.name)] = values.*info.value;
  return json;
}

Json interval_json(const ErrorInterval& interval) {
  return {{"low", interval.low},
          {"high", interval.high},
          {"rows", interval.rows},
          {"projects", interval.projects}};
}

// Those of other constants are not in the file.
Json memory_intervals_json(const MemoryIntervals& intervals) {
  Json json = Json::object();
  if (!intervals.needed_of_others) json["needed"] = interval_json(intervals.needed);
  if (!intervals.shown_of_others) json["shown"] = interval_json(intervals.shown);
  return json;
}

Json intervals_json(const IntervalTable& table) {
  Json json = Json::object();
  for (std::size_t c = 0; c < kSoftwareClasses; ++c) {
    const ErrorInterval& interval = table.by_class[c];
    if (!std::isfinite(interval.high)) continue;  // nothing is known of it
    json[class_name(c)] = interval_json(interval);
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

struct Case {
  std::string name;  // "dense Hopper bf16"
  std::uint64_t bit = 0;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (std::size_t kind = 0; kind < kKindNames.size(); ++kind)
    for (std::size_t g = 0; g < kGenerations; ++g)
      for (std::size_t k = 0; k < kPrecisions; ++k) {
        const auto generation = static_cast<Generation>(g);
        const auto precision = static_cast<SeenPrecision>(k);
        cases.push_back(
            {fmt::format("{} {} {}", kKindNames[kind], to_text(generation), to_text(precision)),
             seen_case(kind == 1, generation, precision)});
      }
  return cases;
}

// The cases that each framework was measured in.
Json software_json(const SeenSoftware& software) {
  Json json = Json::object();
  for (std::size_t f = 0; f < kFrameworks; ++f) {
    Json names = Json::array();
    for (const Case& one : all_cases())
      if ((software[f] & one.bit) != 0) names.push_back(one.name);
    if (!names.empty()) json[std::string(to_text(static_cast<Framework>(f)))] = std::move(names);
  }
  return json;
}

Json mfu_json(const SeenMfu& mfu) {
  Json json = Json::object();
  for (std::size_t g = 0; g < kGenerations; ++g)
    for (std::size_t k = 0; k < kPrecisions; ++k)
      json[std::string(to_text(static_cast<Generation>(g)))]
          [std::string(to_text(static_cast<SeenPrecision>(k)))] = mfu[g][k];
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

Result<ErrorInterval> interval_from(const Place& place) {
  ASSAY_TRY_VOID(check_keys(place, {"low", "high", "rows", "projects"}));
  ErrorInterval interval;
  ASSAY_TRY(interval.low, number_at(place, "low", 1 / kMostOff, kMostOff));
  ASSAY_TRY(interval.high, number_at(place, "high", interval.low, kMostOff));
  ASSAY_TRY(const double rows, number_at(place, "rows", 0, 1e12));
  interval.rows = std::llround(rows);
  ASSAY_TRY(const double projects, number_at(place, "projects", 0, 1e12));
  interval.projects = std::llround(projects);
  return interval;
}

Result<MemoryIntervals> memory_intervals_from(const Place& place) {
  ASSAY_TRY_VOID(check_keys(place, {"needed", "shown"}));
  MemoryIntervals intervals{.needed_of_others = !place.json->contains("needed"),
                            .shown_of_others = !place.json->contains("shown")};
  if (!intervals.needed_of_others) {
    ASSAY_TRY(const Place needed, object_at(place, "needed"));
    ASSAY_TRY(intervals.needed, interval_from(needed));
  }
  if (!intervals.shown_of_others) {
    ASSAY_TRY(const Place shown, object_at(place, "shown"));
    ASSAY_TRY(intervals.shown, interval_from(shown));
  }
  return intervals;
}

Result<IntervalTable> intervals_from(const Place& place) {
  ASSAY_TRY_VOID(check_keys(place, class_names()));
  IntervalTable table;
  for (std::size_t c = 0; c < kSoftwareClasses; ++c) {
    if (!place.json->contains(class_name(c))) continue;
    ASSAY_TRY(const Place one, object_at(place, class_name(c)));
    ASSAY_TRY(table.by_class[c], interval_from(one));
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

Result<SeenSoftware> software_from(const Place& place) {
  ASSAY_TRY_VOID(check_keys(place, framework_names()));
  SeenSoftware software{};
  const std::vector<Case> cases = all_cases();
  for (const auto& item : place.json->items()) {
    const auto framework = static_cast<std::size_t>(*parse_framework(item.key()));
    for (const Json& name : item.value()) {
      const auto found = std::find_if(cases.begin(), cases.end(), [&](const Case& one) {
        return name.is_string() && one.name == name.get<std::string>();
      });
      if (found == cases.end()) {
        return base::fail(place.below(nullptr, item.key())
                              .error(base::shortened(base::trim(base::json_line(name)), 40),
                                     "expected a case like \"dense Hopper bf16\""));
      }
      software[framework] |= found->bit;
    }
  }
  return software;
}

Result<SeenMfu> mfu_from(const Place& place) {
  SeenMfu mfu{};
  for (std::size_t g = 0; g < kGenerations; ++g) {
    ASSAY_TRY(const Place cell, object_at(place, std::string(to_text(static_cast<Generation>(g)))));
    for (std::size_t k = 0; k < kPrecisions; ++k) {
      const std::string precision(to_text(static_cast<SeenPrecision>(k)));
      ASSAY_TRY(mfu[g][k], number_at(cell, precision, 0, 1e3));
    }
  }
  return mfu;
}

Json left_out_json(const KindScore& kind) {
  return {{"projects", kind.projects}, {"mean", kind.mean}};
}

Result<KindScore> left_out_from(const Place& place) {
  ASSAY_TRY_VOID(check_keys(place, {"projects", "mean"}));
  KindScore kind;
  ASSAY_TRY(const double projects, number_at(place, "projects", 0, 1e9));
  kind.projects = static_cast<std::size_t>(std::llround(projects));
  ASSAY_TRY(kind.mean, number_at(place, "mean", 0, 1e12));
  return kind;
}

Json fitted_json(const FittedTo& fitted) {
  Json json{{"rows", fitted.rows}, {"projects", fitted.projects}};
  if (fitted.own_error) {
    json["own_error"] = *fitted.own_error;
  } else {
    json["left_out"] = {{"dense", left_out_json(fitted.dense)},
                        {"mixtures", left_out_json(fitted.mixtures)}};
  }
  return json;
}

Result<FittedTo> fitted_from(const Place& place) {
  ASSAY_TRY_VOID(check_keys(place, {"rows", "projects", "own_error", "left_out"}));
  FittedTo fitted;
  ASSAY_TRY(const double rows, number_at(place, "rows", 0, 1e12));
  fitted.rows = std::llround(rows);
  const auto projects = place.json->find("projects");
  if (projects == place.json->end() || !projects->is_array())
    return base::fail(place.below(nullptr, "projects").error("missing", "expected names"));
  for (const Json& name : *projects) {
    if (!name.is_string())
      return base::fail(place.below(nullptr, "projects").error("not names", "expected names"));
    fitted.projects.push_back(name.get<std::string>());
  }
  if (place.json->contains("own_error")) {
    ASSAY_TRY(fitted.own_error, number_at(place, "own_error", 0, 1e12));
  }
  if (!place.json->contains("left_out")) return fitted;
  ASSAY_TRY(const Place left_out, object_at(place, "left_out"));
  ASSAY_TRY_VOID(check_keys(left_out, {"dense", "mixtures"}));
  ASSAY_TRY(const Place dense, object_at(left_out, "dense"));
  ASSAY_TRY(fitted.dense, left_out_from(dense));
  ASSAY_TRY(const Place mixtures, object_at(left_out, "mixtures"));
  ASSAY_TRY(fitted.mixtures, left_out_from(mixtures));
  return fitted;
}

}  // namespace

std::string to_json(const Calibration& calibration) {
  Json json;
  json["constants"] = constants_json(calibration.constants, constant_table());
  json["memory"] = constants_json(calibration.memory, memory_constant_table());
  json["intervals"] = intervals_json(calibration.intervals);
  json["memory_intervals"] = memory_intervals_json(calibration.memory_intervals);
  json["ranges"] = ranges_json(calibration.seen.ranges);
  json["projects"] = projects_json(calibration.seen.projects);
  json["software"] = software_json(calibration.seen.software);
  json["mfu"] = mfu_json(calibration.seen.most_mfu);
  if (calibration.fitted_to) json["fitted_to"] = fitted_json(*calibration.fitted_to);
  return base::json_text(json);
}

Result<Calibration> calibration_from_json(std::string_view text, const std::string& name) {
  const Json json = Json::parse(text, nullptr, false);
  const Place top{&json, name};
  if (json.is_discarded())
    return base::fail(top.error("not JSON", "such files come from --calibrate"));
  ASSAY_TRY_VOID(check_keys(top, {"constants", "memory", "intervals", "memory_intervals", "ranges",
                                  "projects", "software", "mfu", "fitted_to"}));
  Calibration read;
  ASSAY_TRY(const Place constants, object_at(top, "constants", true));
  ASSAY_TRY(read.constants, constants_from<Constants>(constants, constant_table()));
  ASSAY_TRY(const Place memory, object_at(top, "memory", true));
  ASSAY_TRY(read.memory, constants_from<MemoryConstants>(memory, memory_constant_table()));
  ASSAY_TRY(const Place intervals, object_at(top, "intervals", true));
  ASSAY_TRY(read.intervals, intervals_from(intervals));
  read.memory_intervals = {.needed_of_others = true, .shown_of_others = true};
  if (json.contains("memory_intervals")) {
    ASSAY_TRY(const Place of_memory, object_at(top, "memory_intervals", true));
    ASSAY_TRY(read.memory_intervals, memory_intervals_from(of_memory));
  }
  ASSAY_TRY(const Place ranges, object_at(top, "ranges", true));
  ASSAY_TRY(read.seen.ranges, ranges_from(ranges));
  ASSAY_TRY(const Place projects, object_at(top, "projects", true));
  ASSAY_TRY(read.seen.projects, projects_from(projects));
  ASSAY_TRY(const Place software, object_at(top, "software", true));
  ASSAY_TRY(read.seen.software, software_from(software));
  ASSAY_TRY(const Place mfu, object_at(top, "mfu", true));
  ASSAY_TRY(read.seen.most_mfu, mfu_from(mfu));
  if (json.contains("fitted_to")) {
    ASSAY_TRY(const Place fitted, object_at(top, "fitted_to", true));
    ASSAY_TRY(read.fitted_to, fitted_from(fitted));
  }
  return read;
}

}  // namespace assay::plan
