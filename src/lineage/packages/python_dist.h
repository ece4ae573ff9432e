// PythonDist: one installed distribution, as its .dist-info or .egg-info describes it.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "store/run.h"

namespace assay::lineage {

class PythonDist {
 public:
  // All below a site-packages folder. Names only: nothing is read before it is asked for.
  static std::vector<PythonDist> all_in(const std::filesystem::path& site);
  explicit PythonDist(std::filesystem::path info);

  // Whether the folder's name says it is the distribution of this module: PyYAML no, numpy yes.
  // `name` is normal_name() of the module's first part.
  [[nodiscard]] bool is_named(std::string_view name) const { return name_ == name; }
  // Whether the short list that many distributions have besides says so.
  [[nodiscard]] bool lists(std::string_view first_part);
  // Whether it installed this: "numpy/core", or "numpy" for any part of it.
  [[nodiscard]] bool has(const std::string& module);
  // Put there by conda, whose own list has it.
  [[nodiscard]] bool is_conda() const;
  // The source folder, when installed as a link to it.
  [[nodiscard]] std::optional<std::string> editable_source() const;
  [[nodiscard]] store::Package package() const;

 private:
  void read_modules();

  std::filesystem::path info_;
  std::string name_;  // normal
  std::optional<std::string> top_level_;
  bool read_ = false;
  std::set<std::string, std::less<>> modules_;
};

// The first one or two parts of a path below site-packages, by which modules are told apart; the
// source's name for what was compiled from it. Empty for what is no module.
std::string module_of(std::string_view path);

// PEP 503: case, and which of "-_." is used, do not matter.
std::string normal_name(std::string_view name);

}  // namespace assay::lineage
