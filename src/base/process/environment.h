// Environment: the variables of a program to be started.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::base {

// "NAME=value" entries in order, as the kernel keeps them. If a name occurs twice, the first one
// counts.
class Environment {
 public:
  enum class Place { kFirst, kLast };

  Environment() = default;
  Environment(std::vector<std::string> entries) : entries_(std::move(entries)) {}  // NOLINT
  Environment(std::initializer_list<std::string> entries) : entries_(entries) {}
  static Environment from_current();
  static Environment from_values(const std::map<std::string, std::string>& values);

  [[nodiscard]] std::optional<std::string_view> get(std::string_view name) const;
  void set(std::string_view name, std::string_view value);  // becomes the last entry
  void unset(std::string_view name);
  void add(std::string entry) { entries_.push_back(std::move(entry)); }  // others stay
  // Adds a value to a colon-separated list (LD_PRELOAD), which becomes the last entry.
  void add_to_list(std::string_view name, std::string_view value, Place place);

  [[nodiscard]] const std::vector<std::string>& entries() const { return entries_; }
  // Omits entries without "=".
  [[nodiscard]] std::map<std::string, std::string> values() const;
  // For exec(2); valid while this object is neither changed nor destroyed.
  [[nodiscard]] std::vector<char*> pointers() const;

 private:
  std::vector<std::string> entries_;
};

// Pointers to the strings and a null pointer, as exec(2) expects. The strings must outlive them.
std::vector<char*> null_terminated(const std::vector<std::string>& strings);

}  // namespace assay::base
