#include "lineage/reproduce/environment_diff.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "base/file.h"
#include "base/folders.h"
#include "lineage/packages/conda.h"
#include "lineage/packages/cuda_libraries.h"
#include "lineage/packages/dpkg.h"
#include "lineage/packages/interpreter.h"
#include "lineage/packages/python.h"
#include "lineage/reproduce/environments.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

// Versions of what is installed here, by manager and name.
class InstalledHere {
 public:
  explicit InstalledHere(const std::vector<store::RunRecord>& runs) {
    for (const store::RunRecord& run : runs) {
      for (std::string& prefix : prefixes_of(run)) add(std::move(prefix));
    }
    add("/usr/local");
  }

  std::optional<std::string> version(const store::Package& package) {
    if (package.manager == "dpkg") return dpkg_version(package.name);
    if (package.manager == "pip") return pip_version(package.name);
    if (package.manager == "cuda") return installed_cuda_library(package.name, prefixes_);
    return conda_version(package.name);
  }

 private:
  void add(fs::path prefix) {
    if (std::find(prefixes_.begin(), prefixes_.end(), prefix) == prefixes_.end()) {
      prefixes_.push_back(std::move(prefix));
    }
  }

  std::optional<std::string> dpkg_version(const std::string& name) {
    if (!dpkg_) {
      dpkg_.emplace();
      const DpkgIndex index = DpkgIndex::open("/var/lib/dpkg", base::user_cache_folder());
      for (std::size_t i = 0; i < index.packages(); ++i) {
        dpkg_->emplace(index.name(i), index.version(i));
      }
    }
    return find(*dpkg_, name);
  }

  std::optional<std::string> pip_version(const std::string& name) {
    if (!pip_) {
      pip_.emplace();
      for (const fs::path& prefix : prefixes_) {
        std::error_code error;
        for (fs::directory_iterator at(prefix / "lib", error), end; !error && at != end;
             at.increment(error)) {
          if (!at->path().filename().string().starts_with("python")) continue;
          for (const char* site : {"site-packages", "dist-packages"}) {
            for (const PythonDist& dist : PythonDist::all_in(at->path() / site)) {
              const store::Package package = dist.package();
              pip_->emplace(normal_name(package.name), package.version);
            }
          }
        }
      }
    }
    return find(*pip_, normal_name(name));
  }

  std::optional<std::string> conda_version(const std::string& name) {
    for (const fs::path& prefix : prefixes_) {
      std::error_code error;
      for (fs::directory_iterator at(prefix / "conda-meta", error), end; !error && at != end;
           at.increment(error)) {
        const store::Package package = conda_package(at->path());
        if (package.name == name && !package.version.empty()) return package.version;
      }
    }
    return std::nullopt;
  }

  using Versions = std::map<std::string, std::string, std::less<>>;
  static std::optional<std::string> find(const Versions& versions, const std::string& name) {
    const auto found = versions.find(name);
    return found == versions.end() ? std::nullopt : std::optional(found->second);
  }

  std::vector<fs::path> prefixes_;  // virtual environments before what they are based on
  std::optional<Versions> dpkg_, pip_;
};

std::string text_at(const base::Json& document, const char* pointer) {
  const base::Json::json_pointer at(pointer);
  if (!document.is_object() || !document.contains(at)) return "unknown";
  const base::Json& value = document[at];
  if (value.is_null()) return "unknown";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string gpus_of(const base::Json& machine) {
  if (!machine.is_object() || !machine.contains("gpus") || machine["gpus"].empty()) return "none";
  std::map<std::string, int> counts;
  for (const base::Json& gpu : machine["gpus"]) ++counts[text_at(gpu, "/name")];
  std::string text;
  for (const auto& [name, count] : counts) {
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " x " + name;
  }
  return text;
}

}  // namespace

std::vector<EnvironmentDifference> environment_differences(
    const std::vector<store::RunRecord>& runs, const base::Json& here) {
  std::vector<EnvironmentDifference> found;
  const auto add = [&found](const std::string& what, std::string recorded, std::string now) {
    const bool known =
        std::any_of(found.begin(), found.end(), [&](const EnvironmentDifference& one) {
          return one.what == what && one.recorded == recorded;
        });
    if (recorded != now && !known) found.push_back({what, std::move(recorded), std::move(now)});
  };
  for (const store::RunRecord& run : runs) {
    const base::Json& then = run.context.machine;
    if (!then.is_object()) continue;
    add("system", text_at(then, "/os/name") + " " + text_at(then, "/os/version"),
        text_at(here, "/os/name") + " " + text_at(here, "/os/version"));
    add("kernel", text_at(then, "/os/kernel"), text_at(here, "/os/kernel"));
    add("cpu", text_at(then, "/cpu/model"), text_at(here, "/cpu/model"));
    add("gpus", gpus_of(then), gpus_of(here));
    add("driver", text_at(then, "/drivers/nvidia"), text_at(here, "/drivers/nvidia"));
  }
  for (const store::RunRecord& run : runs) {
    for (const store::PathFact& fact : run.facts) {
      const auto then = interpreter_of(fact);
      if (!then) continue;
      const auto now = interpreter_at(then->started);
      add("interpreter " + then->started, to_text(*then), now ? to_text(*now) : "not here");
    }
  }
  InstalledHere installed(runs);
  for (const store::RunRecord& run : runs) {
    for (const store::Package& package : run.context.packages) {
      const std::string now = installed.version(package).value_or("not installed");
      // A library's file name may have only the major version, or all of it.
      if (package.manager == "cuda" && versions_agree(package.version, now)) continue;
      add(package.manager + " " + package.name, package.version, now);
    }
  }
  return found;
}

}  // namespace assay::lineage
