#include "assay/plan/job_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "plan/search/layouts.h"
#include "spec/enum_names.h"

namespace assay::cli {
namespace {

// A job file for what is recommended: the job, on those machines, in that layout. What says how
// something is sharded or scheduled is written where something is.
std::string job_toml(const std::string& job, bool own_cluster, const plan::Candidate& one) {
  const spec::LayoutSpec& l = one.choice.layout;
  std::string text = fmt::format(
      "description = \"as assay plan --search recommends: {} x {}, {}\"\nextends = \"{}\"\n\n",
      one.nodes, one.machines, one.offer.provider, job);
  text += "[cluster]\n";
  if (!own_cluster) text += fmt::format("extends = \"{}\"\n", one.machines);
  text += fmt::format("nodes = {}\n\n", one.nodes);
  text += fmt::format("[layout]\ndp = {}\nfsdp = {}\ntp = {}\npp = {}\ncp = {}\nep = {}\n", l.dp,
                      l.fsdp, l.tp, l.pp, l.cp, l.ep);
  if (l.fsdp * l.ep > 1) text += fmt::format("zero = {}\n", l.zero);
  text += fmt::format("sequence_parallel = {}\npp_schedule = \"{}\"\npp_chunks = {}\n\n",
                      l.sequence_parallel, spec::to_text(l.pp_schedule), l.pp_chunks);
  text += fmt::format("[batch]\nmicro_batch = {}\naccumulate = {}\n\n",
                      one.choice.batch.micro_batch, one.choice.batch.accumulate);
  // What other software recomputes selectively is what a job calls cheap.
  const bool selective = one.choice.recompute == plan::RecomputeKind::kSelective;
  return text + fmt::format("[train]\nrecompute = \"{}\"\n",
                            selective ? "cheap" : plan::to_text(one.choice.recompute));
}

}  // namespace

base::Result<void> write_job(const Session& session, const PlanOptions& options,
                             const spec::JobSpec& job, const plan::Found& found) {
  if (!found.recommended) return {};
  const plan::Candidate& best = found.candidates[*found.recommended];
  const bool is_file = options.job.find('/') != std::string::npos || options.job.ends_with(".toml");
  const std::string base_job =
      is_file ? std::filesystem::absolute(options.job).string() : options.job;
  const bool own_cluster = best.machines == job.cluster.device.name;
  const std::string path =
      options.out.find('/') == std::string::npos ? "./" + options.out : options.out;
  const std::string draft = fmt::format("{}.{}.toml", path, ::getpid());
  ASSAY_TRY_VOID(base::write_file(draft, job_toml(base_job, own_cluster, best)));
  const auto loaded = spec::load(draft);
  std::error_code failed;
  if (loaded) std::filesystem::rename(draft, path, failed);
  if (!loaded || failed) std::filesystem::remove(draft, failed);
  if (!loaded) {
    return base::fail(base::failed_error(
        options.out, fmt::format("not written: {} with this layout cannot be read: {}", options.job,
                                 loaded.error().what)));
  }
  session.print("\nwritten: " + options.out + "\n");
  return {};
}

base::Result<void> check_job_output(const PlanOptions& options) {
  if (options.out.empty() || options.sets.empty()) return {};
  return base::fail(base::usage_error("--output", "a job file with --set is not written",
                                      "put what --set changes into a job file of your own"));
}

}  // namespace assay::cli
