#include "lineage/reproduce/stage_words.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "base/terminal.h"
#include "lineage/redact/environment.h"
#include "lineage/reproduce/rerun.h"
#include "store/stages.h"
#include "store/store.h"

namespace assay::lineage {
namespace {

void read_options(const std::vector<std::string>& options, RunRequest& request) {
  for (const std::string& option : options) {
    if (share::parse_option(option, request.gpu_options)) continue;
    const std::size_t equals = option.find('=');
    if (equals == std::string::npos) continue;
    const std::string_view name = std::string_view(option).substr(0, equals);
    const std::string value = option.substr(equals + 1);
    if (name == "--keep" || name == "--leave-out") {
      request.choices.push_back({value, name == "--keep"});
    }
    for (const collect::Tracer tracer : collect::kTracers) {
      if (name == "--tracer" && value == collect::name_of(tracer)) request.tracer = tracer;
    }
  }
}

}  // namespace

base::Result<RunRequest> stage_request(const std::string& number,
                                       const std::vector<std::string>& sets) {
  std::int64_t stage = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), stage);
  if (error != std::errc{} || end != number.data() + number.size()) {
    return base::fail(base::usage_error("run", fmt::format("'@{}' names no stage", number),
                                        "@1, @2, …: `assay status` lists them"));
  }
  std::error_code gone;
  const std::filesystem::path directory = std::filesystem::current_path(gone);
  if (gone) return base::fail(base::unfit_error("the working directory", "is gone"));
  ASSAY_TRY(const auto location, store::find(directory));
  if (!location) {
    return base::fail(base::usage_error("run", fmt::format("there is no stage {}", stage),
                                        "nothing has been recorded here yet"));
  }
  ASSAY_TRY(store::Store store,
            store::Store::open(*location, store::Program{}, store::Access::kRead));
  ASSAY_TRY(const store::RunRecord run, store::stage_run(store, stage));
  ASSAY_TRY(std::vector<std::string> words, rerun_words(run.command, sets));
  for (const std::string& word : words) {
    if (is_redacted(word)) {
      return base::fail(base::usage_error(fmt::format("stage {}", stage),
                                          fmt::format("its command held a secret: '{}'", word),
                                          "secrets are not kept; give the whole command again"));
    }
  }
  RunRequest request{.words = std::move(words),
                     .name = run.name,
                     .build = run.build,
                     .stage = stage,
                     .directory = run.directory,
                     .redirects = parse_redirects(run.redirects)};
  for (Redirect& redirect : request.redirects) {
    for (const store::Output& output : run.outputs) {
      if (redirect.writes && output.path == redirect.path) redirect.left = output.blake3;
    }
  }
  read_options(run.options, request);
  return request;
}

base::Result<void> enter_stage(const RunRequest& request) {
  if (request.stage == 0) return {};
  if (::chdir(request.directory.c_str()) != 0) {
    return base::fail(base::system_error(request.directory, "the stage ran here", errno));
  }
  // What a shell would have told the command.
  ::setenv("PWD", request.directory.c_str(), 1);
  ASSAY_TRY(const std::vector<std::string> lines, take_redirects(request.redirects));
  for (const std::string& line : lines) base::write_stderr("assay: " + line + "\n");
  return {};
}

}  // namespace assay::lineage
