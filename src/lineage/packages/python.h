// Python distributions: what is known of one that is installed, and which ones a run used, from the
// modules that it loaded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "store/run.h"

namespace assay::lineage {

// One installed distribution, as its .dist-info or .egg-info describes it.
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

// The distributions whose modules were loaded: found by the folder (site-packages) and its
// *.dist-info.
class PythonPackages {
 public:
  explicit PythonPackages(std::filesystem::path root) : root_(std::move(root)) {}

  // `end` is the offset of the part below site-packages; 0 if the path is not in one.
  void add(std::string_view path, std::size_t end);
  [[nodiscard]] std::vector<store::Package> packages();
  // Call after packages(): whether one of them installed this file, which must have been added.
  [[nodiscard]] bool owns(std::string_view path, std::size_t end) const;

 private:
  // Site folder -> the modules that were opened: "numpy/core", "six.py". Two path components,
  // because several distributions share a first one (google, nvidia).
  std::map<std::string, std::set<std::string>, std::less<>> sites_;
  std::set<std::string, std::less<>> owned_;  // site folder and module
  std::unordered_set<std::uint64_t> seen_;    // hashes of site and module: most files add nothing
  // Folders of modules elsewhere, for editable installations.
  std::set<std::string, std::less<>> folders_;
  std::string last_folder_;
  std::filesystem::path root_;
};

}  // namespace assay::lineage