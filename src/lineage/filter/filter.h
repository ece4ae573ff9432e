// Filter: which files belong to a run's lineage. Every decision is a rule with a name and a
// sentence, so that `--explain` can say why a file was kept or left out.
//
// The user's patterns come first, the last match wins; then the rules of filter.cc, in order.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "lineage/filter/glob.h"

namespace assay::lineage {

struct FilterRule {
  std::string name;  // one word, for programs
  bool keep = false;
  std::string sentence;  // completes "it was kept/left out because …"
};

using RuleId = std::uint16_t;

class Filter {
 public:
  struct UserRule {
    std::string pattern;  // see glob.h
    bool keep = false;
  };
  struct Options {
    std::filesystem::path root;  // of the project
    std::filesystem::path home;  // empty: none
    std::vector<UserRule> user_rules;
  };

  explicit Filter(const Options& options);

  // `path` is absolute and canonical.
  RuleId rule_for(std::string_view path);
  // The same in two parts, for callers that cache the first: the rule for all files of the folder
  // ("" is the root), and from that, the rule for one of them.
  RuleId rule_for_folder(std::string_view folder);
  RuleId rule_for_name(RuleId folder_rule, std::string_view folder, std::string_view name) const;

  // Whether files kept by this rule are downloads: a model in a download cache is an input even of
  // the run that downloads it.
  [[nodiscard]] bool is_downloaded(RuleId id) const;

  // Clears the cache of which folders are virtual environments: one may have been created since.
  void forget() { environments_.clear(); }

  [[nodiscard]] const FilterRule& rule(RuleId id) const { return rules_[id]; }
  [[nodiscard]] std::span<const FilterRule> rules() const { return rules_; }

 private:
  RuleId inside(std::string_view below_root) const;
  RuleId outside(std::string_view folder) const;
  bool in_environment(std::string_view folder, std::size_t above);

  std::string root_;
  std::string home_;
  std::vector<FilterRule> rules_;
  std::vector<std::pair<Glob, RuleId>> user_rules_;
  std::unordered_map<std::string, bool> environments_;  // folders that are one, or are inside one
};

// A project's own rules: the file `.assayignore` in its root, in the manner of .gitignore. A line
// is a pattern (glob.h) of files to leave out, or after "!" to keep; "#" begins a comment.
inline constexpr const char* kFilterFile = ".assayignore";

// In the order of the file; none if there is no such file.
base::Result<std::vector<Filter::UserRule>> read_filter_file(const std::filesystem::path& project);

}  // namespace assay::lineage
