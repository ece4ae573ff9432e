#include "lineage/record/merge_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/check.h"

namespace assay::lineage {
namespace {

using store::OutputStatus;

// What the parts did at one path.
struct PathChanges {
  std::vector<std::size_t> made_by;     // nothing was there before, whatever is there now
  std::vector<std::size_t> changed_by;  // made_by, and parts that changed or removed the file
  std::vector<const store::Output*> outputs;
};

bool is_new(OutputStatus status) {
  return status == OutputStatus::kCreated || status == OutputStatus::kRenamed ||
         status == OutputStatus::kLinked;
}

bool others(const std::vector<std::size_t>& parts, std::size_t self) {
  return std::ranges::any_of(parts, [self](std::size_t part) { return part != self; });
}

// The sums over the ranks: processor time, bytes, and GPU work.
bool add_to(std::int64_t& sum, std::int64_t value) {
  return !__builtin_add_overflow(sum, value, &sum);
}

bool add_usage(const store::Usage& usage, store::Usage& sum) {
  sum.user_s += usage.user_s;
  sum.system_s += usage.system_s;
  sum.max_rss_bytes = std::max(sum.max_rss_bytes, usage.max_rss_bytes);
  return add_to(sum.read_bytes, usage.read_bytes) && add_to(sum.written_bytes, usage.written_bytes);
}

// The entry for which `same` holds, or a new one.
template <class Entry, class Same>
Entry& entry_for(std::vector<Entry>& list, const Entry& entry, const Same& same) {
  const auto found = std::ranges::find_if(list, same);
  return found != list.end() ? *found : list.emplace_back(entry);
}

bool add_gpu(const store::GpuWork& work, store::GpuWork& sum) {
  bool fits = true;
  for (store::GpuUse use : work.use) {
    const auto calls = std::exchange(use.calls, 0);
    const auto amount = std::exchange(use.amount, 0);
    auto& to = entry_for(sum.use, use, [&](const auto& u) { return u.quantity == use.quantity; });
    fits = add_to(to.calls, calls) && add_to(to.amount, amount) && fits;
  }
  for (const store::GpuMemory& memory : work.memory) {
    auto& to =
        entry_for(sum.memory, memory, [&](const auto& m) { return m.device == memory.device; });
    to.peak_bytes = std::max(to.peak_bytes, memory.peak_bytes);
  }
  for (store::GpuCollectiveUse row : work.collectives) {
    const auto calls = std::exchange(row.calls, 0);
    const auto bytes = std::exchange(row.bytes, 0);
    auto& to = entry_for(sum.collectives, row, [&](const auto& c) {
      return c.communicator == row.communicator && c.ranks == row.ranks &&
             c.operation == row.operation && c.type == row.type;
    });
    fits = add_to(to.calls, calls) && add_to(to.bytes, bytes) && fits;
  }
  for (store::GpuShareUse share : work.shares) {
    const auto busy_ns = std::exchange(share.busy_ns, 0);
    const auto waited_ns = std::exchange(share.waited_ns, 0);
    auto& to =
        entry_for(sum.shares, share, [&](const auto& s) { return s.device == share.device; });
    fits = add_to(to.busy_ns, busy_ns) && add_to(to.waited_ns, waited_ns) && fits;
  }
  return fits;
}

// Adds the counters of a part to the whole. False, with the whole unchanged, if a sum would
// overflow.
bool add_counters(const Part& part, Part& whole) {
  store::Usage usage = whole.usage;
  store::GpuWork gpu = whole.gpu;
  std::int64_t dropped = whole.dropped;
  if (!add_usage(part.usage, usage) || !add_gpu(part.gpu, gpu) || !add_to(dropped, part.dropped)) {
    return false;
  }
  whole.usage = usage;
  whole.gpu = std::move(gpu);
  whole.dropped = dropped;
  return true;
}

class Merge {
 public:
  explicit Merge(std::vector<Part> parts) : parts_(std::move(parts)) {
    ASSAY_CHECK(!parts_.empty(), "rank 0 has a part");
    whole_.rank = parts_[0].rank;
    whole_.host = parts_[0].host;
    whole_.started_unix_ns = parts_[0].started_unix_ns;
    whole_.wait_status = parts_[0].wait_status;
    drop_invalid_parts();
    for (std::size_t i = 0; i < parts_.size(); ++i) note_changes(i);
  }

  Part merged() {
    // Inputs first: their origin is looked up in the outputs, which are moved out afterwards.
    for (std::size_t i = 0; i < parts_.size(); ++i) add_inputs(i);
    for (std::size_t i = 0; i < parts_.size(); ++i) add_outputs(i);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      add_left_out(i);
      add_processes(i);
      add_missed(i);
      for (store::PathFact& fact : parts_[i].facts) whole_.facts.push_back(std::move(fact));
    }
    const auto by_path = [](const auto& a, const auto& b) { return a.what.path < b.what.path; };
    std::ranges::sort(whole_.inputs, by_path);
    std::ranges::sort(whole_.outputs, by_path);
    std::ranges::sort(whole_.files_left_out, by_path);
    return std::move(whole_);
  }

 private:
  // Adds the counters first, because a part is merged as a whole or not at all.
  void drop_invalid_parts() {
    std::set<int> ranks;
    std::vector<Part> kept;
    for (Part& part : parts_) {
      const bool is_second = !ranks.insert(part.rank).second;
      if (is_second || !add_counters(part, whole_)) {
        whole_.missed(rank_not_recorded(
            part.rank, part.host,
            is_second ? "a second part claims to be this rank's"
                      : "its counters are too large to be added to those of the others"));
        continue;
      }
      kept.push_back(std::move(part));
    }
    parts_ = std::move(kept);
  }

  void note_changes(std::size_t i) {
    for (const auto& output : parts_[i].outputs) {
      PathChanges& here = changes_[output.what.path];
      here.changed_by.push_back(i);
      if (is_new(output.what.status)) here.made_by.push_back(i);
      here.outputs.push_back(&output.what);
    }
    for (const auto& file : parts_[i].files_left_out) {
      if (!file.what.changed) continue;
      PathChanges& here = changes_[file.what.path];
      here.changed_by.push_back(i);
      // Created and removed by this rank, or by this one and another.
      if (file.rule.name == "gone") here.made_by.push_back(i);
    }
  }

  [[nodiscard]] const PathChanges* changes_at(std::string_view path) const {
    const auto found = changes_.find(std::string(path));
    return found == changes_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] bool made_by_others(std::string_view path, std::size_t self) const {
    const PathChanges* here = changes_at(path);
    return here != nullptr && others(here->made_by, self);
  }

  [[nodiscard]] std::string rank_text(std::size_t i) const {
    return fmt::format("rank {} on {}", parts_[i].rank, parts_[i].host);
  }

  // Whether the rank read what another one had left there.
  [[nodiscard]] bool was_written_by_others(const store::Input& input, std::size_t self) const {
    const PathChanges* here = changes_at(input.path);
    if (here == nullptr) return false;
    if (others(here->made_by, self)) return true;
    return input.blake3 && std::ranges::any_of(here->outputs, [&](const store::Output* output) {
             return output->blake3 == input.blake3 && output->before != input.blake3;
           });
  }

  void add_inputs(std::size_t i) {
    for (auto& input : parts_[i].inputs) {
      if (was_written_by_others(input.what, i)) continue;
      const auto [known, is_first] =
          inputs_.try_emplace(input.what.path, Known{i, input.what.blake3});
      if (is_first) {
        whole_.inputs.push_back(std::move(input));
        continue;
      }
      const bool differs =
          known->second.blake3 && input.what.blake3 && known->second.blake3 != input.what.blake3;
      if (!differs || changes_at(input.what.path) != nullptr) continue;
      whole_.missed(
          {"ranks",
           fmt::format("{} was a different file for {} than for {}; that of {} is recorded",
                       input.what.path, rank_text(i), rank_text(known->second.part),
                       rank_text(known->second.part))});
    }
  }

  void add_outputs(std::size_t i) {
    for (auto& [output, rule] : parts_[i].outputs) {
      if (output.status == OutputStatus::kDeleted) {
        if (made_by_others(output.path, i)) continue;  // it was not there before the run
      } else if (!output.from.empty() && made_by_others(output.from, i)) {
        output.status = OutputStatus::kCreated;
        output.from.clear();
      }
      if (output.status == OutputStatus::kModified && made_by_others(output.path, i)) {
        output.status = OutputStatus::kCreated;
        output.before.reset();
      }
      const auto [known, is_first] = outputs_.try_emplace(output.path, whole_.outputs.size());
      if (is_first) {
        whole_.outputs.push_back({std::move(output), rule});
      } else {
        add_second(whole_.outputs[known->second].what, std::move(output), i);
      }
    }
  }

  // Several ranks changed one file. If any of them left it, it exists, even if another removed it
  // before.
  void add_second(store::Output& first, store::Output&& second, std::size_t i) {
    const bool created =
        first.status == OutputStatus::kCreated || second.status == OutputStatus::kCreated;
    if (first.status == OutputStatus::kDeleted) std::swap(first, second);
    if (second.status == OutputStatus::kDeleted) return;
    if (created) {
      first.status = OutputStatus::kCreated;
      first.before.reset();
    }
    if (first.blake3 == second.blake3) return;
    first.blake3.reset();
    whole_.missed({"changed", fmt::format("{} was still being changed by other ranks when {} had "
                                          "ended",
                                          first.path, rank_text(i))});
  }

  void add_left_out(std::size_t i) {
    for (auto& file : parts_[i].files_left_out) {
      const bool kept = inputs_.contains(file.what.path) || outputs_.contains(file.what.path);
      if (kept || !left_out_.insert(file.what.path).second) continue;
      whole_.files_left_out.push_back(std::move(file));
    }
  }

  void add_processes(std::size_t i) {
    const std::int64_t later_ns = parts_[i].started_unix_ns - whole_.started_unix_ns;
    for (store::ProcessRecord& process : parts_[i].processes) {
      process.started_ns += later_ns;
      if (process.ended_ns) *process.ended_ns += later_ns;
      if (i > 0 && parts_[i].host != whole_.host) process.host = parts_[i].host;
      whole_.processes.push_back(std::move(process));
    }
  }

  // Whether "PATH was removed by another program" was in fact done by another rank.
  [[nodiscard]] bool was_other_rank(const store::Missed& missed, std::size_t self) const {
    if (missed.what != "gone" && missed.what != "changed" && missed.what != "pre-image") {
      return false;
    }
    const auto names = [&](std::string_view end) {
      for (std::size_t at = missed.text.find(end); at != std::string::npos;
           at = missed.text.find(end, at + 1)) {
        const PathChanges* here = changes_at(std::string_view(missed.text).substr(0, at));
        if (here != nullptr && others(here->changed_by, self)) return true;
      }
      return false;
    };
    return names(" was ") || names(": ");
  }

  void add_missed(std::size_t i) {
    Part& part = parts_[i];
    const auto add = [&](std::vector<store::Missed>& to, store::Missed missed) {
      if (i > 0) missed.text = rank_text(i) + ": " + missed.text;
      to.push_back(std::move(missed));
    };
    for (store::Missed& missed : part.what_was_missed) {
      if (!was_other_rank(missed, i)) add(whole_.what_was_missed, std::move(missed));
    }
    for (store::Missed& problem : part.problems) add(whole_.problems, std::move(problem));
  }

  struct Known {
    std::size_t part = 0;
    std::optional<hash::Digest> blake3;
  };

  std::vector<Part> parts_;
  Part whole_;
  std::unordered_map<std::string, PathChanges> changes_;
  std::unordered_map<std::string, Known> inputs_;
  std::unordered_map<std::string, std::size_t> outputs_;  // place in whole_.outputs
  std::set<std::string> left_out_;
};

}  // namespace

Part merge_parts(std::vector<Part> parts) {
  return Merge(std::move(parts)).merged();
}

void replay(Part part, Results& results) {
  for (auto& [input, rule] : part.inputs) results.input(std::move(input), rule);
  for (auto& [output, rule] : part.outputs) results.output(std::move(output), rule);
  for (auto& [file, rule] : part.files_left_out) results.left_out(std::move(file), rule);
  for (store::PathFact& fact : part.facts) results.fact(std::move(fact));
  for (store::ProcessRecord& process : part.processes) results.process(std::move(process));
  for (store::Missed& missed : part.what_was_missed) results.missed(std::move(missed));
}

}  // namespace assay::lineage
