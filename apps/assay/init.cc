// assay init [DIR]: makes the project's store, or says what the one there is.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "base/log.h"
#include "store/store.h"
#include "verb.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

base::Result<base::ExitCode> init(const Session& session, const std::string& directory) {
  std::error_code error;
  const fs::path project = fs::canonical(directory, error);
  if (error || !fs::is_directory(project, error)) {
    return base::fail(base::usage_error(directory, "not a directory", "make it first"));
  }
  const store::Location location = store::location_in(project);
  const bool existed = fs::exists(location.database, error);
  ASSAY_TRY(const store::Store store, store::Store::create(location, store::Program{}));
  for (const std::string& note : store.notes()) {
    base::log_warn(note, {{"store", location.database}});
  }
  session.print_json(base::Json{{"store", location.database.string()},
                                {"created", !existed},
                                {"schema", store.schema_version()},
                                {"project", store.project().id}});
  session.print(fmt::format("{} {} (schema {}, project {})\n",
                            existed ? "already there:" : "created", location.database.string(),
                            store.schema_version(), store.project().id));
  session.next("assay presets show demo");
  return base::ExitCode::kYes;
}

}  // namespace

Verb init_verb(const Session& session) {
  const auto directory = std::make_shared<std::string>(".");
  return {.name = "init",
          .description = "make the project's store, .assay/assay.db",
          .examples = {"assay init", "assay init path/to/project --json"},
          .arguments = {{"DIR", "the project's directory; default: here", directory.get(), false, {},
                         true}},
          .action = [&session, directory] { return init(session, *directory); }};
}

}  // namespace assay::cli
