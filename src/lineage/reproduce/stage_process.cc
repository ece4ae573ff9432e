#include "lineage/reproduce/stage_process.h"

#include <unistd.h>

#include <algorithm>

#include "base/process/exit_status.h"
#include "base/process/process.h"

namespace assay::lineage {
namespace {

// Two descriptors of one file (`> log 2>&1`) share it, or one would write over the other.
void add_redirections(const std::vector<Redirect>& redirects,
                      std::vector<base::Redirection>& redirections) {
  for (std::size_t i = 0; i < redirects.size(); ++i) {
    const Redirect& one = redirects[i];
    const auto end = redirects.begin() + static_cast<std::ptrdiff_t>(i);
    const auto same = std::find_if(redirects.begin(), end, [&one](const Redirect& other) {
      return other.writes && one.writes && other.path == one.path;
    });
    redirections.push_back(
        same != end
            ? base::Redirection{.descriptor = one.descriptor, .from = same->descriptor}
            : base::Redirection{
                  .descriptor = one.descriptor, .path = one.path, .flags = open_flags(one)});
  }
}

}  // namespace

int run_stage_command(const std::vector<std::string>& arguments,
                      const std::vector<std::string>& environment,
                      const std::filesystem::path& directory,
                      const std::vector<Redirect>& redirects, int output_fd) {
  // In this process's group and with its signals: Ctrl-C ends the stage, as it would a command.
  base::ProcessOptions options{.arguments = arguments,
                               .environment = environment,
                               .directory = directory,
                               .redirections = {base::from_null(STDIN_FILENO),
                                                {.descriptor = STDOUT_FILENO, .from = output_fd},
                                                {.descriptor = STDERR_FILENO, .from = output_fd}},
                               .own_group = false,
                               .default_signals = std::nullopt};
  add_redirections(redirects, options.redirections);
  auto process = base::PreparedProcess(std::move(options)).start();
  if (!process) return base::shell_exit_code_of_failed_start(process.error());
  return base::shell_exit_code(process->wait().wait_status);
}

}  // namespace assay::lineage
