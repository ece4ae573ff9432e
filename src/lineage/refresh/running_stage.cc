#include "lineage/refresh/running_stage.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "base/process/capture.h"
#include "base/process/environment.h"
#include "base/process/exit_status.h"

namespace assay::lineage {
namespace {

// A longer line is passed on in pieces.
constexpr std::size_t kLongestLine = 64 << 10;
// Reads per call, so that a stage that prints without end does not block the others.
constexpr int kMostReads = 16;

}  // namespace

base::Result<RunningStage> RunningStage::start(StageCommand command) {
  ASSAY_TRY(base::Pipe pipe, base::make_pipe());
  ::fcntl(pipe.read_end.get(), F_SETFL, O_NONBLOCK);
  std::vector<std::string> arguments = {"assay", "run", "--quiet"};
  if (command.overwrite) arguments.emplace_back("--overwrite");
  arguments.push_back(fmt::format("@{}", command.stage));
  ASSAY_TRY(base::Process process,
            base::Process::start(
                {.arguments = std::move(arguments),
                 .environment = base::Environment::from_current(),
                 .program = command.program,
                 .directory = command.project,
                 .redirections = {base::from_null(STDIN_FILENO),
                                  {.descriptor = STDOUT_FILENO, .from = pipe.write_end.get()},
                                  {.descriptor = STDERR_FILENO, .from = pipe.write_end.get()}},
                 .own_group = false}));
  return RunningStage(std::move(command), std::move(process), std::move(pipe.read_end));
}

void RunningStage::copy_output() {
  std::array<char, 1 << 16> buffer;
  for (int reads = 0; output_.valid() && reads < kMostReads; ++reads) {
    const ssize_t got = ::read(output_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return;  // nothing more for now
    if (got == 0) output_.reset();
    pass_on({buffer.data(), static_cast<std::size_t>(got)});
  }
}

void RunningStage::pass_on(std::string_view text) {
  if (command_.label.empty()) {
    if (!text.empty()) command_.output(text);
    return;
  }
  line_ += text;
  std::string lines;
  std::size_t from = 0;
  for (std::size_t end = 0; (end = line_.find('\n', from)) != std::string::npos; from = end + 1) {
    lines += command_.label + line_.substr(from, end + 1 - from);
  }
  line_.erase(0, from);
  if (line_.size() > kLongestLine || (!output_.valid() && !line_.empty())) {
    lines += command_.label + std::exchange(line_, {}) + "\n";
  }
  if (!lines.empty()) command_.output(lines);
}

std::optional<int> RunningStage::exit_code() {
  const auto exit = process_.wait_until(std::chrono::steady_clock::now());
  if (!exit) return std::nullopt;
  copy_output();
  output_.reset();  // a process that it left running may hold the pipe
  pass_on({});
  return base::shell_exit_code(exit->wait_status);
}

void RunningStage::interrupt(const base::Interrupt& interrupt) const {
  if (!interrupt.from_terminal) ::kill(process_.pid(), interrupt.number);
}

}  // namespace assay::lineage
