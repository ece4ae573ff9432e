// LiveSteps: the current jobs of a project's steps and which step feeds which, by path: the
// question is not what a job read (dag.h follows contents) but what it would read if it ran now.
// Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/job.h"

namespace assay::lineage {

class LiveSteps {
 public:
  // Jobs with their inputs and outputs, one per step, in the order of the steps' numbers.
  explicit LiveSteps(std::vector<store::Job> jobs);
  LiveSteps(LiveSteps&&) = default;
  LiveSteps& operator=(LiveSteps&&) = default;
  LiveSteps(const LiveSteps&) = delete;
  LiveSteps& operator=(const LiveSteps&) = delete;
  ~LiveSteps() = default;

  [[nodiscard]] const std::vector<store::Job>& jobs() const { return jobs_; }

  // What the step reads, and what it writes into (store/needs.h), but for logs.
  [[nodiscard]] const std::vector<store::Input>& needs(std::size_t step) const {
    return needs_[step];
  }

  // Whether the step leaves another file at `path` than it found: writes, deletes or renames it.
  [[nodiscard]] bool changes(std::size_t step, std::string_view path) const;
  [[nodiscard]] bool reads(std::size_t step, std::string_view path) const;
  // Whether the file is a log of the step (store/needs.h) and no step reads it.
  [[nodiscard]] bool is_only_log(std::size_t step, const std::string& path) const;

  // The output that an input comes from: of the other steps that leave this path, the one that ran
  // last. A later step that changes the file in place (it reads it too) is no producer for an
  // earlier one, nor is any later step for one that changes the file itself.
  struct Source {
    std::size_t step = 0;
    const store::Output* output = nullptr;
  };
  [[nodiscard]] std::optional<Source> source(std::size_t step, const store::Input& input) const;

  // The step that left this content, which is not empty, at another path, and ran last before this
  // one: no source, but worth a remark.
  [[nodiscard]] std::optional<Source> twin(std::size_t step, const store::Input& input) const;

  // The step that changed this path last; it answers for the file on disk.
  [[nodiscard]] std::optional<std::size_t> owner(std::string_view path) const;

 private:
  struct Touch {
    std::size_t step = 0;
    const store::Output* output = nullptr;  // none: it took the file away
  };

  std::vector<store::Job> jobs_;
  std::vector<std::vector<store::Input>> needs_;
  std::vector<std::set<std::string>> logs_;
  struct DigestHash {
    std::size_t operator()(const hash::Digest& digest) const;
  };
  // The keys are in jobs_ and needs_.
  std::unordered_map<std::string_view, std::vector<Touch>> touches_;
  std::unordered_map<std::string_view, std::vector<std::size_t>> readers_;
  std::unordered_map<hash::Digest, std::vector<Source>, DigestHash> contents_;
};

}  // namespace assay::lineage
