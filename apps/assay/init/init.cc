// assay init [DIR]: creates the project's store, or describes the existing one.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "assay/verbs.h"
#include "base/log.h"
#include "base/text.h"
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
        base::usage_error("init", fmt::format("'{}' is not a directory", path), "make it first"));
  }
  return directory;
}

base::Result<base::ExitCode> init(const Session& session, const std::string& path) {
  ASSAY_TRY(const fs::path project, project_directory(path));
  const store::Location location = store::location_in(project);
  // Only for the warning; errors in directories above do not matter.
  const auto above = store::find(project.parent_path());
  ASSAY_TRY(const store::Store store, store::Store::create(location, store::Program{}));
  for (const std::string& note : store.notes()) base::log_warn(note);
  if (above && *above) {
    base::log_warn("a project inside a project; verbs run below it use this store",
                   {{"outer", (*above)->project}, {"inner", project}});
  }
  session.print_json(base::Json{{"store", location.database.string()},
                                {"created", store.created()},
                                {"schema", store.schema_version()},
                                {"project", store.project().id}});
  session.print(
      fmt::format("{} {} (schema {}, project {})\n", store.created() ? "created" : "already there:",
                  location.database.string(), store.schema_version(), store.project().id));
  session.next("assay run --help");
  return base::ExitCode::kYes;
}

}  // namespace

Verb init_verb(const Session& session) {
  const auto directory = std::make_shared<std::string>(".");
  return {.name = "init",
          .description = "make the project's store, .assay/assay.db",
          .examples = {"assay init", "assay init path/to/project --json"},
          .arguments =
              {{"DIR", "the project's directory; default: here", directory.get(), false, {}, true}},
          .action = [&session, directory] { return init(session, *directory); }};
}

}  // namespace assay::cli
