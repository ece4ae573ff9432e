#include "base/process/environment.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace assay::base {
namespace {

bool is_entry_of(std::string_view entry, std::string_view name) {
  return entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name);
}

}  // namespace

Environment Environment::from_current() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    entries.emplace_back(*entry);
  }
  return entries;
}

Environment Environment::from_values(const std::map<std::string, std::string>& values) {
  Environment environment;
  for (const auto& [name, value] : values) environment.entries_.push_back(name + "=" + value);
  return environment;
}

std::optional<std::string_view> Environment::get(std::string_view name) const {
  for (const std::string& entry : entries_) {
    if (is_entry_of(entry, name)) return std::string_view(entry).substr(name.size() + 1);
  }
  return std::nullopt;
}

void Environment::set(std::string_view name, std::string_view value) {
  unset(name);
  entries_.push_back(std::string(name).append("=").append(value));
}

void Environment::unset(std::string_view name) {
  std::erase_if(entries_, [name](const std::string& entry) { return is_entry_of(entry, name); });
}

void Environment::add_to_list(std::string_view name, std::string_view value, Place place) {
  std::string list(value);
  for (const std::string& entry : entries_) {
    if (!is_entry_of(entry, name) || entry.size() == name.size() + 1) continue;
    const std::string before = entry.substr(name.size() + 1);
    list = place == Place::kFirst ? list + ":" + before : before + ":" + list;
  }
  set(name, list);
}

std::map<std::string, std::string> Environment::values() const {
  std::map<std::string, std::string> values;
  for (const std::string& entry : entries_) {
    const std::size_t equals = entry.find('=');
    if (equals != std::string::npos) {
      values.emplace(entry.substr(0, equals), entry.substr(equals + 1));
    }
  }
  return values;
}

std::vector<char*> Environment::pointers() const {
  return null_terminated(entries_);
}

std::vector<char*> null_terminated(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  // exec(2) takes pointers to mutable text for historical reasons and changes nothing.
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace assay::base
