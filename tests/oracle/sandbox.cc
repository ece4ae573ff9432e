#include "oracle/sandbox.h"

#include <fmt/format.h>
#include <unistd.h>

#include <sstream>

namespace assay::oracle {

namespace fs = std::filesystem;

namespace {

std::string with_programs(std::string text) {
  for (std::size_t at; (at = text.find("$P")) != std::string::npos;) text.replace(at, 2, kPrograms);
  return text;
}

constexpr const char* kTree =
    "echo 'in: some text' > in.txt; echo 'old: some text to be changed' > old.txt; mkdir data; "
    "echo 'a: some text in a folder' > data/a.txt; echo 'b: some other text' > data/b.txt\n";

}  // namespace

std::string quoted(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& argument : command) {
    std::string inner;
    for (const char c : argument) inner += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += (text.empty() ? "'" : " '") + inner + "'";
  }
  return text;
}

Sandbox::Sandbox(const Case& which, std::string programs, const fs::path& parent)
    : case_(which),
      programs_(std::move(programs)),
      temporary_(parent),
      folder_(fs::canonical(temporary_.path())) {
  fs::create_directory(pristine());
  fs::permissions(folder_, fs::perms(0755));
  const support::ProcessResult outcome = bash(kTree + case_.setup, pristine());
  if (outcome.exit_code != 0) failure_ = outcome.err;
}

support::ProcessResult Sandbox::bash(const std::string& text, const fs::path& where) const {
  const std::string names =
      fmt::format("P={} S={}\n", quoted({programs_}), quoted({ORACLE_SOURCES}));
  return support::run({{"bash", "-c", names + text}, "", where});
}

fs::path Sandbox::copy(std::string name) {
  name.resize(8, '_');
  const fs::path tree = folder_ / name;
  support::run({{"cp", "-a", pristine().string(), tree.string()}});
  return tree;
}

support::ProcessResult Sandbox::run(const fs::path& tree, const std::vector<std::string>& watcher) {
  std::string command = case_.command;
  for (std::size_t at; (at = command.find("$RUN")) != std::string::npos;) {
    command.replace(at, 4, quoted(watcher));
  }
  return bash(command, tree);
}

std::map<std::string, std::string> b3sum(const fs::path& root,
                                         const std::vector<std::string>& paths) {
  std::map<std::string, std::string> digests;
  if (paths.empty()) return digests;
  std::vector<std::string> command = {"b3sum", "--no-names", "--num-threads", "1", "--"};
  for (const std::string& path : paths) command.push_back("./" + path);
  const support::ProcessResult outcome = support::run({command, "", root});
  std::istringstream lines(outcome.out);
  for (const std::string& path : paths) {
    std::string digest;
    if (!std::getline(lines, digest)) break;
    digests[path] = digest;
  }
  return outcome.exit_code == 0 ? digests : std::map<std::string, std::string>{};
}

std::string unavailable(const Case& which) {
  if (which.for_root && ::geteuid() != 0) return "only root can do this";
  const std::string needs = with_programs(which.needs);
  if (needs.empty()) return {};
  const bool there = needs.starts_with('/')
                         ? fs::exists(needs)
                         : support::run({{"bash", "-c", "command -v " + needs}}).exit_code == 0;
  return there ? "" : which.needs + " is not here";
}

}  // namespace assay::oracle
