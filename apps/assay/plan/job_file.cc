#include "assay/plan/job_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/file.h"
#include "base/text.h"
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

struct Setting {
  const char* section;
  const char* key;
  std::string value;  // as TOML
};

// Keys about sharding are written only if something is sharded.
std::vector<Setting> all_settings(const spec::JobSpec& job, const plan::Candidate& one) {
  const spec::LayoutSpec& l = one.choice.layout;
  // "selective" in other software is recompute = "cheap" in a job.
  const bool selective = one.choice.recompute == plan::RecomputeKind::kSelective;
  std::vector<Setting> settings;
  if (one.machines != job.cluster.device.name)
    settings.push_back({"cluster", "extends", toml_string(one.machines)});
  const auto number = [](std::int64_t value) { return fmt::format("{}", value); };
  settings.push_back({"cluster", "nodes", number(one.nodes)});
  settings.insert(settings.end(), {{"layout", "dp", number(l.dp)},
                                   {"layout", "fsdp", number(l.fsdp)},
                                   {"layout", "tp", number(l.tp)},
                                   {"layout", "pp", number(l.pp)},
                                   {"layout", "cp", number(l.cp)},
                                   {"layout", "ep", number(l.ep)}});
  if (l.fsdp * l.ep > 1) settings.push_back({"layout", "zero", number(l.zero)});
  settings.insert(settings.end(),
                  {{"layout", "sequence_parallel", fmt::format("{}", l.sequence_parallel)},
                   {"layout", "pp_schedule", toml_string(spec::to_text(l.pp_schedule))},
                   {"layout", "pp_chunks", number(l.pp_chunks)},
                   {"batch", "micro_batch", number(one.choice.batch.micro_batch)},
                   {"batch", "accumulate", number(one.choice.batch.accumulate)},
                   {"train", "recompute",
                    toml_string(selective ? "cheap" : plan::to_text(one.choice.recompute))}});
  return settings;
}

// A job file for what is recommended: the job, on those machines, in that layout. `command`: how it
// is planned as it was searched, where a job file cannot say that; else empty.
std::string job_toml(const std::string& extended, const spec::JobSpec& job,
                     const plan::Candidate& one, const std::string& command) {
  const std::string description = fmt::format("recommended by assay plan --search: {} x {}, {}",
                                              one.nodes, one.machines, one.offer.provider);
  std::string text;
  if (!command.empty()) {
    text +=
        "# The search had options that a job file cannot contain. To plan this job with them:\n#  "
        " " +
        command + "\n";
  }
  text += fmt::format("description = {}\nextends = {}\n", toml_string(description),
                      toml_string(extended));
  std::string_view section;
  for (const Setting& setting : all_settings(job, one)) {
    if (section != setting.section) text += fmt::format("\n[{}]\n", setting.section);
    section = setting.section;
    text += fmt::format("{} = {}\n", setting.key, setting.value);
  }
  return text;
}

// A name without a folder would mean a preset.
std::string path_of(const std::string& name) {
  return name.find('/') == std::string::npos ? "./" + name : name;
}

bool names_file(const std::string& job) {
  return job.find('/') != std::string::npos || job.ends_with(".toml");
}

// What the new job extends: a file by its path from the folder of the new one, so that both can be
// moved together; folders as they are, behind links, where ".." leads elsewhere. A job that is no
// file stays a name.
std::string extended_by(const std::string& out, const std::string& job) {
  if (!names_file(job)) return job;
  std::error_code failed;
  const auto folder_of = [&](const fs::path& file) {
    return failed ? fs::path() : fs::canonical(fs::absolute(file).parent_path(), failed);
  };
  const fs::path from = folder_of(out);
  const fs::path to = folder_of(job);
  if (failed) return fs::absolute(job).string();
  const std::string found = (to / fs::path(job).filename()).lexically_relative(from).string();
  return names_file(found) ? found : path_of(found);
}

}  // namespace

std::vector<std::string> settings_of(const spec::JobSpec& job, const plan::Candidate& one) {
  std::vector<std::string> settings;
  for (Setting& setting : all_settings(job, one)) {
    std::erase(setting.value, '"');  // names of presets and policies need no quotes in --set
    settings.push_back(fmt::format("{}.{}={}", setting.section, setting.key, setting.value));
  }
  return settings;
}

base::Result<void> check_job_output(const PlanOptions& options) {
  if (options.out.empty()) return {};
  if (!options.sets.empty()) {
    return base::fail(base::usage_error("--output", "no job file is written with --set",
                                        "put the changes of --set into your own job file"));
  }
  std::error_code ignored;
  if (names_file(options.job) && fs::equivalent(options.job, options.out, ignored)) {
    return base::fail(base::usage_error("--output", "is the job itself, which the new one extends",
                                        "name another file"));
  }
  const std::string where = base::printable(options.out);
  ASSAY_TRY_VOID(base::check_output(options.out, where));
  // A new file is put in its place.
  const fs::path path = path_of(options.out);
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) {
    return base::fail(base::usage_error(where, "is not a regular file", "name another file"));
  }
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    return base::fail(base::system_error(where, "cannot be written", errno));
  }
  return {};
}

base::Result<void> write_job(const Session& session, const PlanOptions& options,
                             const spec::JobSpec& job, const plan::Found& found) {
  if (!found.recommended) return {};
  const plan::Candidate& best = found.candidates[*found.recommended];
  const std::string base_job = extended_by(options.out, options.job);
  PlanOptions again = options;
  again.job = names_file(options.out) ? options.out : path_of(options.out);
  again.sets.clear();
  const bool has_more = !(options.framework + options.imbalance + options.constants).empty();
  const std::string path = path_of(options.out);
  const std::string draft = fmt::format("{}.{}.new", path, ::getpid());
  const std::string kept = fmt::format("{}.{}.old", path, ::getpid());
  auto drafted =
      base::write_file(draft, job_toml(base_job, job, best, has_more ? plan_command(again) : ""));
  if (!drafted) {
    drafted.error().where = options.out;
    return drafted;
  }
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
    if (!options.framework.empty()) {
      session.print(fmt::format("a job file cannot name the software ({}); plan it with {}\n",
                                options.framework, plan_command(again)));
    }
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
