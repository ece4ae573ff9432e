#include "control/slurm_lists.h"

#include <charconv>
#include <cstddef>

namespace assay::control {
namespace {

// One bracket holds a name's digits: "01-03,7". Its first number, zeros included.
std::optional<std::string_view> first_number(std::string_view bracket) {
  const std::string_view number = bracket.substr(0, bracket.find_first_of(",-"));
  if (number.empty() || number.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  if (bracket.find_first_not_of("0123456789,-") != std::string_view::npos) return std::nullopt;
  return number;
}

// The number at the start of `text`, which is taken from it.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(stopped - text.data()));
  return number;
}

bool take(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

}  // namespace

std::optional<std::string> first_host(std::string_view list) {
  // A name may have several brackets ("rack[1-2]node[3-4]"), and what follows the last one belongs
  // to it. Commas inside brackets do not end it.
  std::string host;
  while (!list.empty() && list.front() != ',') {
    if (list.front() == '[') {
      const std::size_t close = list.find(']');
      if (close == std::string_view::npos) return std::nullopt;
      const auto number = first_number(list.substr(1, close - 1));
      if (!number) return std::nullopt;
      host += *number;
      list.remove_prefix(close + 1);
    } else if (list.front() == ']') {
      return std::nullopt;
    } else {
      host += list.front();
      list.remove_prefix(1);
    }
  }
  // Anything that is not a host name ("(null)") means that this is not a list of hosts.
  if (host.empty() || host.find_first_of("() \t\n/") != std::string::npos) return std::nullopt;
  return host;
}

std::optional<int> tasks_on_node(std::string_view tasks_per_node, int node) {
  if (node < 0) return std::nullopt;
  std::int64_t first = 0;  // the node that the current entry begins with
  while (!tasks_per_node.empty()) {
    const auto tasks = take_number(tasks_per_node);
    if (!tasks) return std::nullopt;
    int nodes = 1;
    if (take(tasks_per_node, "(x")) {
      const auto repeated = take_number(tasks_per_node);
      if (!repeated || *repeated == 0 || !take(tasks_per_node, ")")) return std::nullopt;
      nodes = *repeated;
    }
    if (node < first + nodes) return tasks;
    first += nodes;
    if (!tasks_per_node.empty() && !take(tasks_per_node, ",")) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace assay::control
