#include "lineage/reproduce/rerun.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>

#include "base/number.h"
#include "base/terminal.h"
#include "base/text.h"
#include "lineage/graph/dag_query.h"
#include "lineage/graph/disk_files.h"
#include "lineage/graph/merged_runs.h"
#include "lineage/redact/command.h"
#include "store/run_reader.h"
#include "store/stages.h"
#include "store/store.h"
#include "store/streams.h"

namespace assay::lineage {
namespace {

// "lr" for "--lr", "-lr" and "lr"; underscores for dashes, as most programs accept both.
std::string key_of(std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  std::string key(word);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

bool is_number(std::string_view word) {
  return word.size() > 1 &&
         (std::isdigit(static_cast<unsigned char>(word[1])) != 0 || word[1] == '.');
}

// "-n", "--steps"; not "-", "--", "-1" or "-.5".
bool is_option(std::string_view word) {
  return word.size() > 1 && word.front() == '-' && word != "--" && !is_number(word);
}

// A place in the command that gives `key` a value.
struct ValuePlace {
  std::string key;
  std::size_t argument = 0;  // the argument that contains the value
  std::size_t from = 0;      // where in it the value starts
};

std::vector<ValuePlace> places_in(std::span<const std::string> command) {
  std::vector<ValuePlace> places;
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    const std::size_t equals = word.find('=');
    // An assignment is a name and a value: "a=b", not "=b", and not a whole sentence with an "=".
    const bool named = equals != std::string::npos && equals > 0 &&
                       word.substr(0, equals).find_first_of(" \t\n'\"(") == std::string::npos;
    if (named) {
      places.push_back({key_of(word.substr(0, equals)), i, equals + 1});
    } else if (is_option(word) && i + 1 < command.size() && !is_option(command[i + 1]) &&
               command[i + 1] != "--") {
      places.push_back({key_of(word), i + 1, 0});
    }
  }
  return places;
}

base::Error no_such_key(const std::string& key, const std::vector<ValuePlace>& places) {
  std::set<std::string> known;
  for (const ValuePlace& place : places) known.insert(place.key);
  const std::vector<std::string> names(known.begin(), known.end());
  const std::string where = fmt::format("--set {}", key);
  if (names.empty()) {
    return base::usage_error(where, "the stage's command has no named values",
                             "run the changed command itself: assay run -- …");
  }
  return base::usage_error(where, fmt::format("the stage's command has no value for '{}'", key),
                           fmt::format("it has values for: {}", fmt::join(names, ", ")));
}

// Files that the stage read or left and that do not exist now. If the new run succeeds without
// them, the stage no longer depends on them (graph/merged_runs.h).
base::Result<std::vector<std::string>> absent_files(store::Store& store, store::RunRecord run) {
  ASSAY_TRY_VOID(merge_earlier_runs(store, run));
  std::vector<std::string> absent;
  const auto look = [&](const std::string& path) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0 && errno == ENOENT) absent.push_back(path);
  };
  for (const store::Input& input : run.inputs) look(input.path);
  for (const store::Output& output : run.outputs) {
    if (output.status != store::OutputStatus::kDeleted) look(output.path);
  }
  return absent;
}

const store::Output* left_at(const std::vector<store::Output>& outputs, const std::string& path) {
  const auto left = std::ranges::find(outputs, path, &store::Output::path);
  return left == outputs.end() ? nullptr : &*left;
}

// Whether what the run left at `path` is a log: it also left other files. Then the file may hold
// lines of programs that are not recorded.
base::Result<bool> left_a_log(store::Store& store, store::RunId id, const std::string& path) {
  ASSAY_TRY(const store::RunRecord run, store::head_of(store, id));
  return run.output_count > 1 && store::stream_paths(run).contains(path);
}

base::Error would_be_lost(const store::RunRecord& run, const std::string& path,
                          const std::string& what) {
  return base::failed_error(fmt::format("run @{}", run.stage),
                            fmt::format("{} {} and would be overwritten", path, what),
                            "keep a copy and remove it, or use --overwrite");
}

// Sets whether the file is made anew or appended to.
base::Result<void> choose_opening(store::Store& store, DiskFiles& files,
                                  const store::RunRecord& run, EditedOutputs edited,
                                  Redirect& redirect) {
  const store::Output* output = left_at(run.outputs, redirect.path);
  const store::Output* log = left_at(run.streams, redirect.path);
  redirect.is_log = output == nullptr;
  if (redirect.appends && !redirect.handed_down) return {};
  redirect.appends = false;
  std::error_code none;
  if (std::filesystem::file_size(redirect.path, none) == 0 || none) return {};
  const auto now = files.content_of(redirect.path);
  const store::Output* left = output != nullptr ? output : log;
  const bool own = left != nullptr && now == left->blake3;
  if (own && (!redirect.handed_down || left->status == store::OutputStatus::kCreated)) return {};
  redirect.appends = true;
  if (redirect.handed_down || redirect.is_log) return {};
  redirect.appends = false;
  if (own || edited == EditedOutputs::kOverwrite) return {};
  const store::RunId writer = files.writer_of(redirect.path);
  if (writer == 0) {
    return base::fail(would_be_lost(run, redirect.path, "has content that no run left there"));
  }
  ASSAY_TRY(const bool log_of_other, left_a_log(store, writer, redirect.path));
  if (!log_of_other) return {};
  return base::fail(
      would_be_lost(run, redirect.path, fmt::format("is a log that run {} has added to", writer)));
}

// For `run @1 > new`, which does not move the stage's output: a line for each such stream.
void note_other_files(const std::vector<Redirect>& redirects) {
  for (const Redirect& one : redirects) {
    struct stat given {};
    if (!one.writes || ::fstat(one.descriptor, &given) != 0 || !S_ISREG(given.st_mode)) continue;
    struct stat file {};
    const bool same = ::stat(one.path.c_str(), &file) == 0 && file.st_dev == given.st_dev &&
                      file.st_ino == given.st_ino;
    if (same) continue;
    base::write_stderr(fmt::format(
        "assay: the stage's {} goes to {}, as before; --here leaves it where it is now\n",
        stream_name(one.descriptor), base::printable(one.path)));
  }
}

// Edits that would be lost.
base::Result<void> check_edits(store::Store& store, DiskFiles& files, std::int64_t number,
                               const RerunOptions& options) {
  if (options.edited == EditedOutputs::kOverwrite) return {};
  ASSAY_TRY(const LiveStages stages, load_live_stages(store));
  const auto stage = std::ranges::find(stages.runs(), number, &store::RunRecord::stage);
  if (stage == stages.runs().end()) return {};
  const auto at = static_cast<std::size_t>(stage - stages.runs().begin());
  std::vector<std::string> edited = edited_outputs(stages, at, files.queries());
  if (options.here) {
    const std::set<std::string> streams = store::stream_paths(*stage);
    std::erase_if(edited, [&](const std::string& path) { return streams.contains(path); });
  }
  const std::string obstacle = edit_obstacle(stages, at, edited, options.edited);
  if (obstacle.empty()) return {};
  return base::fail(base::failed_error(fmt::format("run @{}", number), obstacle));
}

// Whether there is something to read for a stage that read a pipe: a pipe, a socket or a file.
bool has_input() {
  struct stat status {};
  return ::fstat(STDIN_FILENO, &status) == 0 &&
         (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || S_ISREG(status.st_mode));
}

}  // namespace

base::Result<std::vector<std::string>> replace_values(std::span<const std::string> command,
                                                      std::span<const std::string> sets) {
  std::vector<std::string> changed(command.begin(), command.end());
  const std::vector<ValuePlace> places = places_in(command);
  for (const std::string& set : sets) {
    const std::size_t equals = set.find('=');
    if (equals == std::string::npos || equals == 0) {
      return base::fail(base::usage_error(fmt::format("--set {}", set), "is not KEY=VALUE",
                                          "for example --set lr=0.1"));
    }
    const std::string key = key_of(set.substr(0, equals));
    bool found = false;
    for (const ValuePlace& place : places) {
      if (place.key != key) continue;
      // The original argument: an earlier --set of the same key may have changed it.
      changed[place.argument] =
          command[place.argument].substr(0, place.from) + set.substr(equals + 1);
      found = true;
    }
    if (!found) return base::fail(no_such_key(set.substr(0, equals), places));
  }
  return changed;
}

base::Result<RunRequest> stage_request(const std::string& number, const RerunOptions& options) {
  const auto parsed = base::parse_number<std::int64_t>(number);
  if (!parsed) {
    return base::fail(base::usage_error("run", fmt::format("'@{}' is not a stage", number),
                                        "@1, @2, …: `assay status` lists them"));
  }
  const std::int64_t stage = *parsed;
  std::error_code gone;
  const std::filesystem::path directory = std::filesystem::current_path(gone);
  if (gone) return base::fail(base::unfit_error("the working directory", "is gone"));
  ASSAY_TRY(const auto location, store::find(directory));
  if (!location) {
    return base::fail(base::usage_error("run", fmt::format("there is no stage {}", stage),
                                        "nothing has been recorded here yet"));
  }
  ASSAY_TRY(store::Store store,
            store::Store::open(*location, store::StoreProgram{}, store::Access::kRead));
  if (store.project().root != location->project.string()) {
    return base::fail(base::unfit_error(
        fmt::format("stage {}", stage),
        fmt::format("the project was moved or copied from {}, and its commands still name that "
                    "place, because the store cannot be written",
                    store.project().root),
        "make .assay writable for you"));
  }
  ASSAY_TRY(store::RunRecord run, store::stage_run(store, stage));
  ASSAY_TRY(std::vector<std::string> command, replace_values(run.command, options.sets));
  for (const std::string& word : command) {
    if (is_redacted(word)) {
      return base::fail(base::usage_error(fmt::format("stage {}", stage),
                                          fmt::format("its command contained a secret: '{}'", word),
                                          "secrets are not stored; give the whole command again"));
    }
  }
  if (store::read_a_pipe(run) && !has_input()) {
    return base::fail(base::usage_error(
        fmt::format("run @{}", stage),
        "the stage read a pipe as its standard input, and what came through it was not recorded",
        fmt::format("give it again: … | assay run @{}", stage)));
  }
  RunRequest request{.command = std::move(command),
                     .name = run.name,
                     .build = run.build,
                     .stage = stage,
                     .directory = run.directory,
                     .redirects = parse_redirects(run.redirects)};
  ASSAY_TRY(DiskFiles files, DiskFiles::open(store));
  ASSAY_TRY_VOID(check_edits(store, files, stage, options));
  if (options.here) request.redirects.clear();
  for (Redirect& redirect : request.redirects) {
    if (!redirect.writes) continue;
    ASSAY_TRY_VOID(choose_opening(store, files, run, options.edited, redirect));
  }
  // The log of another job.
  std::erase_if(request.redirects,
                [](const Redirect& one) { return one.is_log && one.handed_down; });
  for (const std::string& option : run.options) repeat_option(option, request);
  ASSAY_TRY(request.absent, absent_files(store, std::move(run)));
  return request;
}

base::Result<StageStreams> enter_stage(const RunRequest& request, bool quiet) {
  if (request.stage == 0) return StageStreams();
  if (::chdir(request.directory.c_str()) != 0) {
    return base::fail(
        base::system_error(request.directory, "cannot enter the stage's directory", errno));
  }
  // As a shell would set it.
  ::setenv("PWD", request.directory.c_str(), 1);
  if (!quiet) note_other_files(request.redirects);
  ASSAY_TRY(StageStreams streams, StageStreams::open(request.redirects));
  for (const std::string& message : streams.messages()) {
    base::write_stderr("assay: " + message + "\n");
  }
  return streams;
}

}  // namespace assay::lineage
