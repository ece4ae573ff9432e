// assay init [DIR] [--shared]: creates the project's store, or describes the existing one; lets a
// group use it.
#include <fmt/format.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "assay/verbs.h"
#include "base/log.h"
#include "base/number.h"
#include "base/text.h"
#include "store/shared.h"
#include "store/store.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

base::Result<fs::path> project_directory(const std::string& path) {
  std::error_code error;
  fs::path directory = fs::canonical(path, error);
  if (error && path == ".") {
    return base::fail(base::unfit_error("the working directory", "is gone", "change to another"));
  }
  if (error || !fs::is_directory(directory, error)) {
    return base::fail(
        base::usage_error("init", fmt::format("'{}' is not a directory", path), "create it first"));
  }
  return directory;
}

struct InitOptions {
  std::string directory = ".";
  bool shared = false;
  std::string group;
};

// The group that was named; else that of the project's folder, if it has the set-group-id bit; else
// this user's.
base::Result<gid_t> group_of(const InitOptions& options, const fs::path& project) {
  if (options.group.empty()) {
    struct stat status {};
    const bool passed_on = ::stat(project.c_str(), &status) == 0 && (status.st_mode & S_ISGID) != 0;
    return passed_on ? status.st_gid : ::getegid();
  }
  if (const struct group* found = ::getgrnam(options.group.c_str())) return found->gr_gid;
  if (const auto number = base::parse_number<gid_t>(options.group)) return *number;
  return base::fail(base::usage_error("init", fmt::format("there is no group '{}'", options.group),
                                      "`id -Gn` lists yours"));
}

base::Result<base::ExitCode> init(const Session& session, const InitOptions& options) {
  ASSAY_TRY(const fs::path project, project_directory(options.directory));
  if (!options.shared && !options.group.empty()) {
    return base::fail(base::usage_error("init", "--group is for shared stores", "add --shared"));
  }
  ASSAY_TRY(const gid_t group, group_of(options, project));
  const store::Location location = store::location_in(project);
  // Only for the warning; errors in directories above do not matter.
  const auto above = store::find(project.parent_path());
  ASSAY_TRY(const store::Store store, store::Store::create(location, store::StoreProgram{}));
  for (const std::string& note : store.notes()) base::log_warn(note);
  if (options.shared) ASSAY_TRY_VOID(store::share(location, group));
  if (above && *above) {
    base::log_warn("a project inside a project; verbs run below it use this store",
                   {{"outer", (*above)->project}, {"inner", project}});
  }
  session.print_json(base::Json{{"store", location.database.string()},
                                {"created", store.created()},
                                {"schema", store.schema_version()},
                                {"shared", store::is_shared(location.directory)},
                                {"project", store.project().id},
                                {"created_at", store.project().created_at},
                                {"created_by", store.project().created_by}});
  session.print(
      fmt::format("{} {} (schema {}, project {})\n", store.created() ? "created" : "already there:",
                  location.database.string(), store.schema_version(), store.project().id));
  if (options.shared) {
    session.print(
        fmt::format("shared with group {}: its members can record and query here\n", group));
  }
  session.next("assay run --help");
  return base::ExitCode::kYes;
}

}  // namespace

Verb init_verb(const Session& session) {
  const auto options = std::make_shared<InitOptions>();
  return {.name = "init",
          .description = "create the project's store, .assay/assay.db",
          .examples = {"assay init", "assay init path/to/project --json"},
          .arguments = {{"DIR",
                         "the project's directory; default: the working directory",
                         &options->directory,
                         false,
                         {},
                         true}},
          .options = {{"--shared", "let a group of users record and query here", &options->shared},
                      {"--group",
                       "the group to share with; default: that of a setgid directory, or your own",
                       &options->group,
                       {},
                       "GROUP"}},
          .action = [&session, options] { return init(session, *options); }};
}

}  // namespace assay::cli
