#include "lineage/graph/live_steps.h"

#include <algorithm>
#include <cstring>

#include "store/needs.h"

namespace assay::lineage {

std::size_t LiveSteps::DigestHash::operator()(const hash::Digest& digest) const {
  std::size_t value = 0;
  std::memcpy(&value, digest.bytes.data(), sizeof value);
  return value;
}

LiveSteps::LiveSteps(std::vector<store::Job> jobs) : jobs_(std::move(jobs)) {
  for (const store::Job& job : jobs_) {
    needs_.push_back(store::needs_of(job, store::Logs::kNo));
    logs_.push_back(store::log_paths(job));
  }
  for (std::size_t step = 0; step < jobs_.size(); ++step) {
    const store::Job& job = jobs_[step];
    for (const store::Input& input : needs_[step]) readers_[input.path].push_back(step);
    for (const store::Output& output : job.outputs) {
      const bool gone = output.status == store::OutputStatus::kDeleted;
      touches_[output.path].push_back({step, gone ? nullptr : &output});
      if (output.status == store::OutputStatus::kRenamed && !output.from.empty()) {
        touches_[output.from].push_back({step, nullptr});
      }
      if (!output.blake3 || output.size == 0) continue;
      contents_[*output.blake3].push_back({step, &output});
    }
  }
}

bool LiveSteps::changes(std::size_t step, std::string_view path) const {
  const auto found = touches_.find(path);
  return found != touches_.end() &&
         std::any_of(found->second.begin(), found->second.end(),
                     [&](const Touch& touch) { return touch.step == step; });
}

bool LiveSteps::reads(std::size_t step, std::string_view path) const {
  const auto found = readers_.find(path);
  return found != readers_.end() &&
         std::find(found->second.begin(), found->second.end(), step) != found->second.end();
}

bool LiveSteps::is_only_log(std::size_t step, const std::string& path) const {
  return logs_[step].contains(path) && !readers_.contains(path);
}

std::optional<LiveSteps::Source> LiveSteps::source(std::size_t step,
                                                   const store::Input& input) const {
  std::optional<Source> best;
  const auto touched = touches_.find(input.path);
  if (touched != touches_.end()) {
    const bool in_place = changes(step, input.path);
    for (const Touch& touch : touched->second) {
      if (touch.step == step || touch.output == nullptr) continue;
      if (touch.step > step && (in_place || reads(touch.step, input.path))) continue;
      if (!best || jobs_[best->step].id < jobs_[touch.step].id) best = {touch.step, touch.output};
    }
  }
  return best;
}

std::optional<LiveSteps::Source> LiveSteps::twin(std::size_t step,
                                                 const store::Input& input) const {
  if (!input.blake3) return std::nullopt;
  const auto same = contents_.find(*input.blake3);
  if (same == contents_.end()) return std::nullopt;
  std::optional<Source> newest;
  for (const Source& source : same->second) {
    const store::JobId id = jobs_[source.step].id;
    if (id >= jobs_[step].id || source.output->path == input.path) continue;
    if (!newest || jobs_[newest->step].id < id) newest = source;
  }
  return newest;
}

std::optional<std::size_t> LiveSteps::owner(std::string_view path) const {
  const auto found = touches_.find(path);
  if (found == touches_.end()) return std::nullopt;
  const auto newest = std::max_element(
      found->second.begin(), found->second.end(),
      [&](const Touch& a, const Touch& b) { return jobs_[a.step].id < jobs_[b.step].id; });
  return newest->step;
}

}  // namespace assay::lineage
