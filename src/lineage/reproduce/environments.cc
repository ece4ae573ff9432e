#include "lineage/reproduce/environments.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/path_map.h"
#include "base/text.h"
#include "lineage/packages/interpreter.h"
#include "lineage/packages/python.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

std::string variable(const store::RunRecord& run, const char* name) {
  const auto found = run.context.environment.find(name);
  return found == run.context.environment.end() ? "" : found->second;
}

std::vector<std::string> split(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts;
  base::for_each_part(text, separators, [&](std::string_view part) { parts.emplace_back(part); });
  return parts;
}

std::string absolute(const std::string& path, const std::string& directory) {
  std::string text = (fs::path(directory) / path).lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

// Where the run found the program. Links are not followed, because a virtual environment's
// interpreter is a link to another one's.
std::optional<std::string> place_of(const std::string& program, const store::RunRecord& run) {
  if (program.empty()) return std::nullopt;
  if (program.find('/') != program.npos) return absolute(program, run.directory);
  for (const std::string& folder : split(variable(run, "PATH"), ":")) {
    const std::string path = absolute(folder, run.directory) + "/" + program;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return std::nullopt;
}

// /venv for /venv/bin/python.
std::string prefix_of(const std::string& program) {
  return fs::path(program).parent_path().parent_path().string();
}

// The words of the command, and of the script if it is `sh -c SCRIPT`.
std::vector<std::string> command_words(const store::RunRecord& run) {
  std::vector<std::string> words;
  for (const std::string& argument : run.command) {
    for (std::string& word : split(argument, " \t\n;&|()'\"")) words.push_back(std::move(word));
  }
  return words;
}

bool has_name(const std::string& word, std::string_view name) {
  return word == name || word.ends_with("/" + std::string(name));
}

bool has_word(const std::vector<std::string>& words, std::string_view name) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return has_name(word, name); });
}

// python -m venv DIR, virtualenv DIR, uv venv DIR, uv sync, conda create -p DIR, npm ci.
bool makes(const store::RunRecord& run, const std::string& environment) {
  const std::vector<std::string> words = command_words(run);
  const bool names_it = std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return absolute(word, run.directory) == environment;
  });
  const bool usual = environment == absolute(".venv", run.directory) ||
                     environment == absolute("node_modules", run.directory);
  if (has_word(words, "venv") || has_word(words, "virtualenv")) return names_it || usual;
  if (has_word(words, "conda") || has_word(words, "mamba")) {
    return names_it && has_word(words, "create");
  }
  if (has_word(words, "uv")) return usual && has_word(words, "sync");
  if (has_word(words, "npm") || has_word(words, "yarn") || has_word(words, "pnpm")) {
    return usual && (has_word(words, "install") || has_word(words, "ci"));
  }
  return false;
}

// A package manager that adds to an environment that is there.
bool installs(const store::RunRecord& run) {
  const std::vector<std::string> words = command_words(run);
  const bool manager = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    const std::string name = word.substr(word.rfind('/') + 1);
    return name == "pip" || name == "pip3" || name == "uv" || name == "poetry" || name == "conda" ||
           name == "mamba" || name == "npm" || name == "yarn" || name == "pnpm";
  });
  return manager && (has_word(words, "install") || has_word(words, "add") ||
                     has_word(words, "sync") || has_word(words, "uninstall"));
}

// The environments whose files the run read, which it may have found in other ways than through
// PATH.
std::vector<std::string> environments_read_by(const store::RunRecord& run) {
  std::set<std::string> found;
  for (const store::FileRule& rule : run.rules) {
    if (rule.name != "environment" && rule.name != "packages") continue;
    for (const std::string& path : rule.paths) {
      // /venv of /venv/pyvenv.cfg, /venv/bin/…, /venv/lib/…
      for (const char* part : {"/pyvenv.cfg", "/bin/", "/lib/"}) {
        const std::size_t at = path.find(part);
        if (at == path.npos || at == 0) continue;
        const std::string folder = path.substr(0, at);
        if (!found.contains(folder) && is_environment(folder)) found.insert(folder);
      }
    }
  }
  return {found.begin(), found.end()};
}

// node_modules has no programs of its own, so it is found by the files that were read from it.
std::vector<std::string> package_trees_of(const store::RunRecord& run) {
  constexpr std::string_view kTree = "/node_modules";
  std::set<std::string> trees;
  for (const store::FileRule& rule : run.rules) {
    if (rule.name != "packages") continue;
    for (const std::string& path : rule.paths) {
      const std::size_t at = path.find("/node_modules/");
      if (at != path.npos) trees.insert(path.substr(0, at + kTree.size()));
    }
    // Too many paths to be listed: assumes the usual place.
    if (rule.paths.empty() && rule.files > 0) trees.insert(run.directory + std::string(kTree));
  }
  return {trees.begin(), trees.end()};
}

// Packages of the environment whose source is a folder of the project: they are read from there,
// not from the copy.
void note_editable(const std::string& environment, const std::string& root,
                   std::vector<std::string>& notes) {
  std::error_code error;
  for (fs::directory_iterator at(fs::path(environment) / "lib", error), end; !error && at != end;
       at.increment(error)) {
    for (const PythonDist& dist : PythonDist::all_in(at->path() / "site-packages")) {
      const auto source = dist.editable_source();
      if (!source || !base::PathMap(root, "").inside(*source)) continue;
      notes.push_back(fmt::format(
          "{} is installed from {} itself (editable): the copy uses that folder as it is now",
          dist.package().name, *source));
    }
  }
}

}  // namespace

bool is_environment(const std::string& folder) {
  return ::access((folder + "/pyvenv.cfg").c_str(), F_OK) == 0 ||
         ::access((folder + "/conda-meta").c_str(), F_OK) == 0 ||
         (folder.ends_with("/node_modules") && ::access(folder.c_str(), F_OK) == 0);
}

std::vector<std::string> prefixes_of(const store::RunRecord& run) {
  std::vector<std::string> environments;
  std::vector<std::string> others;
  const auto add = [&](std::string prefix) {
    if (prefix.empty() || prefix == "/") return;
    std::vector<std::string>& list = is_environment(prefix) ? environments : others;
    if (std::find(list.begin(), list.end(), prefix) == list.end())
      list.push_back(std::move(prefix));
  };
  // Only environments in which a program was found, in that order: an activated one may not have
  // been used.
  if (!run.command.empty()) {
    if (const auto place = place_of(run.command[0], run)) add(prefix_of(*place));
  }
  for (const store::ProcessRecord& process : run.processes) {
    if (process.arguments.empty()) continue;
    if (const auto place = place_of(process.arguments[0], run)) add(prefix_of(*place));
  }
  for (std::string& environment : environments_read_by(run)) add(std::move(environment));
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (std::string folder = variable(run, name); folder.starts_with('/')) add(std::move(folder));
  }
  for (const store::ProcessRecord& process : run.processes) {
    if (process.program.empty()) continue;
    add(prefix_of(process.program));
    std::error_code error;
    const fs::path real = fs::canonical(process.program, error);
    if (!error) add(prefix_of(real.string()));
  }
  environments.insert(environments.end(), others.begin(), others.end());
  return environments;
}

namespace {

// The virtual environments that the run used and that are gone: the active one, and those whose
// programs its command names (.venv/bin/python). A program that is a file of the project is none.
std::vector<std::string> missing_environments(const store::RunRecord& run) {
  std::vector<std::string> missing;
  const auto add = [&](const std::string& folder) {
    if (folder.empty() || is_environment(folder)) return;
    if (std::ranges::find(missing, folder) == missing.end()) missing.push_back(folder);
  };
  add(variable(run, "VIRTUAL_ENV"));
  const bool is_python = std::ranges::any_of(
      run.context.packages, [](const store::Package& one) { return one.manager == "pip"; });
  for (const std::string& word : command_words(run)) {
    const std::string path = absolute(word, run.directory);
    const std::string folder = prefix_of(path);
    const auto is_it = [&](const auto& file) { return file.path == path; };
    if (path != folder + "/bin/" + word.substr(word.rfind('/') + 1) || word.find('/') == word.npos)
      continue;
    if (!is_python && language_of(path) != "python") continue;
    if (::access(path.c_str(), F_OK) == 0 || std::ranges::any_of(run.inputs, is_it) ||
        std::ranges::any_of(run.outputs, is_it)) {
      continue;
    }
    add(folder);
  }
  return missing;
}

// Why the run's program cannot be started; nothing if it can, or if it is a file that the plan
// knows about.
std::optional<std::string> no_program(const store::RunRecord& run, const std::string& root,
                                      const NeededEnvironments& needed) {
  if (run.command.empty() || run.command[0].empty()) return std::nullopt;
  const std::string& name = run.command[0];
  const std::optional<std::string> place = place_of(name, run);
  if (place && ::access(place->c_str(), X_OK) == 0) return std::nullopt;
  // The program may be in an environment that is made again, or that already is an obstacle.
  if (!needed.remade.empty() || !needed.missing.empty() || !needed.obstacles.empty())
    return std::nullopt;
  if (!place) {
    if (variable(run, "PATH").empty()) return std::nullopt;
    return fmt::format("run {} started {}, which is not in its PATH here", run.id, name);
  }
  const bool is_input =
      std::any_of(run.inputs.begin(), run.inputs.end(),
                  [&](const store::Input& input) { return input.path == *place; });
  if (is_input && base::PathMap(root, "").inside(*place)) return std::nullopt;
  return fmt::format("run {} started {}, which no longer exists here", run.id, *place);
}

}  // namespace

NeededEnvironments needed_environments(const std::vector<store::RunRecord>& runs,
                                       const std::string& root) {
  const base::PathMap map(root, "");
  NeededEnvironments needed;
  const auto maker = [&](const std::string& environment) {
    return std::find_if(runs.begin(), runs.end(),
                        [&](const store::RunRecord& run) { return makes(run, environment); });
  };
  for (const store::RunRecord& run : runs) {
    std::vector<std::string> used = prefixes_of(run);
    // One that is gone counts if a run of the plan makes it.
    std::erase_if(used, [&](const std::string& prefix) {
      return !is_environment(prefix) && maker(prefix) == runs.end();
    });
    for (std::string& tree : package_trees_of(run)) {
      if (is_environment(tree)) used.push_back(std::move(tree));
    }
    for (std::string& gone : missing_environments(run)) used.push_back(std::move(gone));
    for (const std::string& environment : used) {
      if (!map.inside(environment) || environment == root) continue;
      if (const auto made = maker(environment); made != runs.end()) {
        if (!needed.remade.insert(environment).second) continue;
        needed.notes.push_back(
            fmt::format("run {} recreates {}, which may need the network", made->id, environment));
      } else if (!is_environment(environment)) {
        auto known = std::ranges::find(needed.missing, environment, &MissingEnvironment::folder);
        if (known == needed.missing.end()) {
          known = needed.missing.insert(known, {.folder = environment});
        }
        add_packages(run, *known);
      } else if (installs(run)) {
        needed.obstacles.push_back(fmt::format(
            "run {} installs packages into {}, which would be changed; record how it is made "
            "(assay run --build -- python3 -m venv …) and it is made again in the copy",
            run.id, environment));
      } else if (needed.in_place.insert(environment).second) {
        needed.notes.push_back(fmt::format("{} is used as it is now", environment));
        note_editable(environment, root, needed.notes);
      }
    }
  }
  for (const store::RunRecord& run : runs) {
    if (auto obstacle = no_program(run, root, needed)) needed.obstacles.push_back(*obstacle);
  }
  return needed;
}

}  // namespace assay::lineage
