#include "assay/plan/job_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/file.h"
#include "plan/search/layouts.h"
#include "spec/enum_names.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

// A basic string of TOML.
std::string toml_string(std::string_view text) {
  std::string made = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      made += '\\';
      made += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      made += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      made += c;
    }
  }
  return made + '"';
}

// A job file for what is recommended: the job, on those machines, in that layout. What says how
// something is sharded is written where something is.
std::string job_toml(const std::string& job, bool own_cluster, const plan::Candidate& one) {
  const spec::LayoutSpec& l = one.choice.layout;
  const std::string description = fmt::format("recommended by assay plan --search: {} x {}, {}",
                                              one.nodes, one.machines, one.offer.provider);
  std::string text =
      fmt::format("description = {}\nextends = {}\n\n", toml_string(description), toml_string(job));
  text += "[cluster]\n";
  if (!own_cluster) text += fmt::format("extends = {}\n", toml_string(one.machines));
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

// A name without a folder would mean a preset.
std::string path_of(const std::string& name) {
  return name.find('/') == std::string::npos ? "./" + name : name;
}

bool names_file(const std::string& job) {
  return job.find('/') != std::string::npos || job.ends_with(".toml");
}

}  // namespace

base::Result<void> check_job_output(const PlanOptions& options) {
  if (options.out.empty()) return {};
  if (!options.sets.empty()) {
    return base::fail(base::usage_error("--output", "no job file is written with --set",
                                        "put the changes of --set into a job file of your own"));
  }
  std::error_code ignored;
  if (names_file(options.job) && fs::equivalent(options.job, options.out, ignored)) {
    return base::fail(base::usage_error("--output", "is the job itself, which the new one extends",
                                        "name another file"));
  }
  return {};
}

base::Result<void> write_job(const Session& session, const PlanOptions& options,
                             const spec::JobSpec& job, const plan::Found& found) {
  if (!found.recommended) return {};
  const plan::Candidate& best = found.candidates[*found.recommended];
  const std::string base_job =
      names_file(options.job) ? fs::absolute(options.job).string() : options.job;
  const bool own_cluster = best.machines == job.cluster.device.name;
  const std::string path = path_of(options.out);
  const std::string draft = fmt::format("{}.{}.new", path, ::getpid());
  const std::string kept = fmt::format("{}.{}.old", path, ::getpid());
  ASSAY_TRY_VOID(base::write_file(draft, job_toml(base_job, own_cluster, best)));
  // In its place, for what was there may be what the job extends.
  std::error_code failed;
  const bool replaces = fs::exists(path, failed);
  if (replaces) fs::rename(path, kept, failed);
  if (!failed) fs::rename(draft, path, failed);
  if (failed) {
    std::error_code ignored;
    if (replaces && !fs::exists(path, ignored)) fs::rename(kept, path, ignored);
    fs::remove(draft, ignored);
    return base::fail(base::system_error(options.out, "cannot be written", failed.value()));
  }
  const auto loaded = spec::load(path);
  if (loaded) {
    fs::remove(kept, failed);
    session.print("\nwritten: " + options.out + "\n");
    return {};
  }
  if (replaces) {
    fs::rename(kept, path, failed);
  } else {
    fs::remove(path, failed);
  }
  return base::fail(base::failed_error(
      options.out, fmt::format("not written: the recommended job from {} is not valid: {}",
                               options.job, loaded.error().what)));
}

}  // namespace assay::cli
