#include "cli/verbs.h"

#include <sstream>

#include "support/process.h"

namespace assay {
namespace {

void collect(const std::string& path, std::vector<std::string>& verbs) {
  std::vector<std::string> arguments = {support::program()};
  std::istringstream words(path);
  for (std::string word; words >> word;) arguments.push_back(word);
  arguments.push_back("--help");
  std::istringstream lines(support::run({arguments}).out);
  bool listed = false;
  for (std::string line; std::getline(lines, line);) {
    // Verbs stand under "Subcommands:" or under the headings of their groups.
    const bool heading = !line.empty() && line.front() != ' ' && line.ends_with(':');
    if (heading) {
      listed = line != "Options:" && line != "Positionals:" && line != "Examples:";
    } else if (listed && line.starts_with("  ")) {
      const std::string name = line.substr(2, line.find(' ', 2) - 2);
      const std::string verb = path.empty() ? name : path + " " + name;
      verbs.push_back(verb);
      collect(verb, verbs);
    } else {
      listed = false;
    }
  }
}

}  // namespace

std::vector<std::string> all_verbs() {
  std::vector<std::string> verbs;
  collect("", verbs);
  return verbs;
}

}  // namespace assay
