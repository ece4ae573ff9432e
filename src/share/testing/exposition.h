// A strict parser of Prometheus' text format, written from its specification and independent of the
// code that writes it: what this accepts, Prometheus accepts.
#pragma once

#include <cctype>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace assay::share::testing {

struct Exposition {
  using Labels = std::map<std::string, std::string>;
  struct Family {
    std::string type;
    std::string help;
    std::map<Labels, double> samples;
  };
  std::map<std::string, Family> families;
  std::string error;  // the first, with its line

  [[nodiscard]] std::optional<double> value(const std::string& name, const Labels& wanted) const {
    const auto family = families.find(name);
    if (family == families.end()) return std::nullopt;
    for (const auto& [labels, number] : family->second.samples) {
      bool fits = true;
      for (const auto& [key, text] : wanted) {
        const auto found = labels.find(key);
        fits = fits && found != labels.end() && found->second == text;
      }
      if (fits) return number;
    }
    return std::nullopt;
  }
};

namespace exposition_detail {

inline bool is_name(const std::string& name, bool colons) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) return false;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && !(colons && c == ':'))
      return false;
  }
  return true;
}

// `at` is the position after the opening brace; on return, after the closing one.
inline bool read_labels(const std::string& line, std::size_t& at, Exposition::Labels& labels) {
  while (at < line.size() && line[at] != '}') {
    const std::size_t equals = line.find('=', at);
    if (equals == std::string::npos || equals + 1 >= line.size() || line[equals + 1] != '"') {
      return false;
    }
    const std::string name = line.substr(at, equals - at);
    std::string value;
    for (at = equals + 2; at < line.size() && line[at] != '"'; ++at) {
      if (line[at] != '\\') {
        value += line[at];
        continue;
      }
      const char next = ++at < line.size() ? line[at] : '\0';
      if (next != '\\' && next != '"' && next != 'n') return false;
      value += next == 'n' ? '\n' : next;
    }
    if (at >= line.size() || !is_name(name, false) || !labels.emplace(name, value).second) {
      return false;
    }
    ++at;
    if (at < line.size() && line[at] == ',') ++at;
  }
  return at++ < line.size();
}

}  // namespace exposition_detail

inline Exposition read_exposition(const std::string& text) {
  Exposition out;
  std::string current;  // samples of a family must be adjacent
  std::set<std::string> closed;
  const auto fail = [&](const std::string& line) {
    if (out.error.empty()) out.error = "'" + line + "'";
  };
  if (text.empty() || text.back() != '\n') fail("no newline at the end");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# HELP ") || line.starts_with("# TYPE ")) {
      const std::size_t end = line.find(' ', 7);
      const std::string name = line.substr(7, end - 7);
      const std::string rest = end == std::string::npos ? "" : line.substr(end + 1);
      if (name != current) {
        if (!closed.insert(name).second) fail(line);
        current = name;
      }
      Exposition::Family& family = out.families[name];
      std::string& place = line[2] == 'H' ? family.help : family.type;
      if (!place.empty() || !family.samples.empty() || rest.empty()) fail(line);
      if (line[2] == 'T' && rest != "gauge" && rest != "counter") fail(line);
      place = rest;
      continue;
    }
    std::size_t at = line.find_first_of("{ ");
    const std::string name = line.substr(0, at);
    Exposition::Labels labels;
    if (at == std::string::npos || !exposition_detail::is_name(name, true) || name != current ||
        out.families[name].type.empty() || out.families[name].help.empty()) {
      fail(line);
      continue;
    }
    if (line[at] == '{' && !exposition_detail::read_labels(line, ++at, labels)) {
      fail(line);
      continue;
    }
    std::size_t used = 0;
    const std::string number = at < line.size() && line[at] == ' ' ? line.substr(at + 1) : "";
    double value = 0;
    if (number.empty() || number[0] == ' ') {
      fail(line);
    } else {
      char* stop = nullptr;
      value = std::strtod(number.c_str(), &stop);
      used = static_cast<std::size_t>(stop - number.c_str());
      if (used != number.size()) fail(line);
    }
    if (!out.families[name].samples.emplace(labels, value).second) fail(line);
    if (out.families[name].type == "counter" && (!name.ends_with("_total") || value < 0))
      fail(line);
  }
  for (const auto& [name, family] : out.families) {
    if (family.samples.empty()) fail(name + " has no sample");
  }
  return out;
}

}  // namespace assay::share::testing
