// LiveStages: the current runs of a project's stages and which stage feeds which, by path: the
// question is not what a run read (dag.h follows contents) but what it would read if it ran now.
// Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/run.h"

namespace assay::lineage {

class LiveStages {
 public:
  // Runs with their inputs and outputs, one per stage, in the order of the stages' numbers.
  explicit LiveStages(std::vector<store::RunRecord> runs);
  LiveStages(LiveStages&&) = default;
  LiveStages& operator=(LiveStages&&) = default;
  LiveStages(const LiveStages&) = delete;
  LiveStages& operator=(const LiveStages&) = delete;
  ~LiveStages() = default;

  [[nodiscard]] const std::vector<store::RunRecord>& runs() const { return runs_; }

  // What the stage reads, and what it writes into (store/needs.h), but for logs.
  [[nodiscard]] const std::vector<store::Input>& needs(std::size_t stage) const {
    return needs_[stage];
  }

  // Whether the stage leaves another file at `path` than it found: writes, deletes or renames it.
  [[nodiscard]] bool changes(std::size_t stage, std::string_view path) const;
  [[nodiscard]] bool reads(std::size_t stage, std::string_view path) const;
  // Whether the file is a log of the stage (store/needs.h) and no stage reads it.
  [[nodiscard]] bool is_only_log(std::size_t stage, const std::string& path) const;

  // The output that an input comes from: of the other stages that leave this path, the one that ran
  // last. A later stage that changes the file in place (it reads it too) is no producer for an
  // earlier one, nor is any later stage for one that changes the file itself.
  struct Source {
    std::size_t stage = 0;
    const store::Output* output = nullptr;
  };
  [[nodiscard]] std::optional<Source> source(std::size_t stage, const store::Input& input) const;

  // The stage that left this content, which is not empty, at another path, and ran last before this
  // one: no source, but worth a remark.
  [[nodiscard]] std::optional<Source> twin(std::size_t stage, const store::Input& input) const;

  // The stage that changed this path last; it answers for the file on disk.
  [[nodiscard]] std::optional<std::size_t> owner(std::string_view path) const;

 private:
  struct Touch {
    std::size_t stage = 0;
    const store::Output* output = nullptr;  // none: it took the file away
  };

  std::vector<store::RunRecord> runs_;
  std::vector<std::vector<store::Input>> needs_;
  std::vector<std::set<std::string>> logs_;
  struct DigestHash {
    std::size_t operator()(const hash::Digest& digest) const;
  };
  // The keys are in runs_ and needs_.
  std::unordered_map<std::string_view, std::vector<Touch>> touches_;
  std::unordered_map<std::string_view, std::vector<std::size_t>> readers_;
  std::unordered_map<hash::Digest, std::vector<Source>, DigestHash> contents_;
};

}  // namespace assay::lineage
