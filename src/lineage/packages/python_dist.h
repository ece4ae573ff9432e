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
  // All below a site-packages folder. Their files are read only when needed.
  static std::vector<PythonDist> all_in(const std::filesystem::path& site);
  explicit PythonDist(std::filesystem::path info);

  // Whether the distribution has the module's name: numpy does, PyYAML (module yaml) does not.
  // `name` is normal_name() of the module's first component.
  [[nodiscard]] bool is_named(std::string_view name) const { return name_ == name; }
  // Whether top_level.txt, which many distributions have, lists the module.
  [[nodiscard]] bool lists(std::string_view first_part);
  // Whether it installed this: "numpy/core", or "numpy" for any part of it.
  [[nodiscard]] bool has(const std::string& module);
  // Installed by conda, so CondaPackages reports it.
  [[nodiscard]] bool is_conda() const;
  // The source folder of an editable installation.
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

// The first one or two components of a path below site-packages, which identify a module; for
// compiled files, the name of the source. Empty: not a module.
std::string module_of(std::string_view path);

// PEP 503: case and the choice among "-_." do not matter.
std::string normal_name(std::string_view name);

}  // namespace assay::lineage
