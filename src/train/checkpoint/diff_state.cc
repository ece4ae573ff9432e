// The training states of two checkpoints, compared key by key.
#include <algorithm>
#include <set>
#include <string_view>

#include "base/text.h"
#include "train/checkpoint/diff.h"

namespace assay::checkpoint {
namespace {

using base::Json;

// Of a text or of nothing.
std::vector<std::string> lines_of(const Json& text) {
  std::vector<std::string> lines;
  if (!text.is_string()) return lines;
  base::for_each_line(text.get<std::string>(),
                      [&](std::string_view line) { lines.emplace_back(line); });
  return lines;
}

// In their order.
Json lines_without(const std::vector<std::string>& lines, const std::vector<std::string>& others) {
  const std::set<std::string_view> known(others.begin(), others.end());
  Json rest = Json::array();
  for (const std::string& line : lines) {
    if (!known.contains(line)) rest.push_back(line);
  }
  return rest;
}

// Model, layout and algorithms are stored as texts of many lines, of which few differ.
bool add_lines(const std::string& key, const Json& a, const Json& b,
               std::vector<StateDifference>& found) {
  const auto may_be_text = [](const Json& one) { return one.is_string() || one.is_null(); };
  if (!may_be_text(a) || !may_be_text(b)) return false;
  const std::vector<std::string> in_a = lines_of(a);
  const std::vector<std::string> in_b = lines_of(b);
  if (std::max(in_a.size(), in_b.size()) < 2) return false;
  const Json only_a = lines_without(in_a, in_b);
  const Json only_b = lines_without(in_b, in_a);
  if (only_a.empty() && only_b.empty()) return false;  // another order: both are shown whole
  found.push_back({key, only_a, only_b});
  return true;
}

void add(const std::string& key, const Json& a, const Json& b,
         std::vector<StateDifference>& found) {
  if (a == b) return;
  if (!a.is_object() || !b.is_object()) {
    if (!add_lines(key, a, b, found)) found.push_back({key, a, b});
    return;
  }
  const std::string prefix = key.empty() ? "" : key + ".";
  for (const auto& [name, value] : a.items()) {
    add(prefix + name, value, b.value(name, Json()), found);
  }
  for (const auto& [name, value] : b.items()) {
    if (!a.contains(name)) add(prefix + name, Json(), value, found);
  }
}

}  // namespace

std::vector<StateDifference> diff_state(const TrainingState& a, const TrainingState& b) {
  std::vector<StateDifference> found;
  add("", state_json(a), state_json(b), found);
  return found;
}

}  // namespace assay::checkpoint
