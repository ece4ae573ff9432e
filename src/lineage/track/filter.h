// Filter: which files belong to a run's lineage. Every decision is a rule with a name and a
// sentence, so that `--explain` can say why a file was kept or left out.
//
// The user's patterns come first, the last that matches wins; then the rules of filter.cc, in
// order.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lineage/track/glob.h"

namespace assay::lineage {

struct Rule {
  std::string name;  // one word, for programs
  bool keep = false;
  std::string sentence;  // completes "it was kept/left out because …"
};

using RuleId = std::uint16_t;

class Filter {
 public:
  struct Choice {
    std::string pattern;  // see glob.h
    bool keep = false;
  };
  struct Options {
    std::filesystem::path root;  // of the project
    std::filesystem::path home;  // empty: none
    std::vector<Choice> choices;
  };

  explicit Filter(const Options& options);

  // `path` is absolute and canonical.
  RuleId judge(std::string_view path);
  // The same in two stages, for callers who remember the first: what holds for all files in the
  // folder ("" is the root), and from that, what holds for one of them.
  RuleId judge_folder(std::string_view folder);
  RuleId judge_name(RuleId folder_rule, std::string_view folder, std::string_view name) const;

  // What was seen on the disk may have changed: an environment may have been made meanwhile.
  void forget() { environments_.clear(); }

  [[nodiscard]] const Rule& rule(RuleId id) const { return rules_[id]; }
  [[nodiscard]] std::span<const Rule> rules() const { return rules_; }

 private:
  RuleId inside(std::string_view below_root) const;
  RuleId outside(std::string_view folder) const;
  bool in_environment(std::string_view folder, std::size_t above);

  std::string root_;
  std::string home_;
  std::vector<Rule> rules_;
  std::vector<std::pair<Glob, RuleId>> choices_;
  std::unordered_map<std::string, bool> environments_;  // folders that are one, or are inside one
};

}  // namespace assay::lineage
