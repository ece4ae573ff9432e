#include "lineage/reproduce/make_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string_view>

#include "base/process/capture.h"
#include "base/text.h"
#include "lineage/packages/interpreter.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes kForVenv{5};
constexpr std::chrono::minutes kForPackages{60};  // gigabytes, for PyTorch

bool is_word(std::string_view text, std::string_view more) {
  return !text.empty() && text.front() != '-' && std::ranges::all_of(text, [&](char c) {
    return base::is_lower(c) || base::is_upper(c) || base::is_digit(c) || more.find(c) != more.npos;
  });
}

std::string last_line(std::string_view text) {
  while (!text.empty() && base::is_space(text.back())) text.remove_suffix(1);
  return std::string(text.substr(text.rfind('\n') + 1));
}

base::Result<void> run(const std::string& folder, std::vector<std::string> arguments,
                       std::chrono::milliseconds most) {
  const std::string program = arguments.front();
  ASSAY_TRY(const base::Captured done,
            base::run_captured({.arguments = std::move(arguments),
                                .environment = base::Environment::from_current(),
                                .timeout = most}));
  if (done.ok()) return {};
  const std::string why = done.timed_out ? "it took too long" : last_line(done.errors);
  return base::fail(base::failed_error(folder, fmt::format("cannot be made: {}: {}", program, why),
                                       "make it by hand, or tell pip where the packages are "
                                       "(PIP_FIND_LINKS, PIP_EXTRA_INDEX_URL)"));
}

}  // namespace

void add_packages(const store::RunRecord& run, MissingEnvironment& environment) {
  for (const store::Package& package : run.context.packages) {
    if (package.manager != "pip" || !is_word(package.name, "._-")) continue;
    if (!is_word(package.version, "._-+!")) continue;
    std::string wanted = package.name + "==" + package.version;
    if (std::ranges::find(environment.packages, wanted) == environment.packages.end()) {
      environment.packages.push_back(std::move(wanted));
    }
  }
  for (const store::PathFact& fact : run.facts) {
    const auto interpreter = interpreter_of(fact);
    if (!interpreter || interpreter->language != "python") continue;
    if (!interpreter->started.starts_with(environment.folder + "/")) continue;
    const std::size_t minor = interpreter->version.find('.');
    environment.python = interpreter->version.substr(0, interpreter->version.find('.', minor + 1));
  }
}

base::Result<void> make_environment(const MissingEnvironment& environment) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(environment.folder, error))) {
    return base::fail(
        base::unfit_error(environment.folder, "exists and is no environment", "move it away"));
  }
  // The same version of Python, if it is known and installed.
  base::Result<void> made = base::fail(base::failed_error("", ""));
  if (is_word(environment.python, ".")) {
    made = run(environment.folder,
               {"python" + environment.python, "-m", "venv", environment.folder}, kForVenv);
  }
  if (!made)
    made = run(environment.folder, {"python3", "-m", "venv", environment.folder}, kForVenv);
  if (made && !environment.packages.empty()) {
    // Without their dependencies: what a run did not use was not recorded and is not needed.
    std::vector<std::string> pip = {
        environment.folder + "/bin/python", "-m",     "pip", "install", "--no-deps", "--no-input",
        "--disable-pip-version-check",      "--quiet"};
    pip.insert(pip.end(), environment.packages.begin(), environment.packages.end());
    made = run(environment.folder, std::move(pip), kForPackages);
  }
  if (!made) fs::remove_all(environment.folder, error);
  return made;
}

}  // namespace assay::lineage
