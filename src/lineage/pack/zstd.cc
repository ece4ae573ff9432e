#include "lineage/pack/zstd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>

#include "base/process/capture.h"
#include "base/process/environment.h"
#include "base/process/exit_status.h"
#include "base/process/program.h"

namespace assay::lineage {
namespace {

constexpr std::array<unsigned char, 4> kZstdMagic = {0x28, 0xb5, 0x2f, 0xfd};
constexpr std::chrono::minutes kExitTimeout{10};  // for zstd to exit, once it has all its input

base::Result<base::UniqueFd> duplicate(int file) {
  base::UniqueFd copy(::fcntl(file, F_DUPFD_CLOEXEC, 3));
  if (!copy.valid()) return base::fail(base::system_error("", "no file descriptor is left", errno));
  return copy;
}

base::Result<base::Process> start_zstd(std::vector<std::string> options, int in, int out) {
  if (!base::find_program("zstd", base::current_search_path())) {
    return base::fail(base::unfit_error("zstd", "is not installed",
                                        "install the package zstd, or use a .tar without it"));
  }
  std::vector<std::string> arguments = {"zstd", "--quiet", "--stdout"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return base::Process::start({.arguments = std::move(arguments),
                               .environment = base::Environment::from_current(),
                               .redirections = {{.descriptor = STDIN_FILENO, .from = in},
                                                {.descriptor = STDOUT_FILENO, .from = out},
                                                base::from_null(STDERR_FILENO)},
                               .own_group = false});
}

}  // namespace

base::Result<ZstdStream> ZstdStream::writing_to(int file, bool compressed) {
  if (!compressed) {
    ASSAY_TRY(base::UniqueFd copy, duplicate(file));
    return ZstdStream(std::move(copy), std::nullopt);
  }
  // If zstd exits early, write() fails with EPIPE instead of killing this process.
  ::signal(SIGPIPE, SIG_IGN);
  ASSAY_TRY(base::Pipe pipe, base::make_pipe());
  ASSAY_TRY(base::Process process, start_zstd({"-3", "-T0"}, pipe.read_end.get(), file));
  return ZstdStream(std::move(pipe.write_end), std::move(process));
}

base::Result<ZstdStream> ZstdStream::reading_from(int file, const std::filesystem::path& where) {
  std::array<unsigned char, 4> first{};
  if (::pread(file, first.data(), first.size(), 0) < 0) {
    return base::fail(base::system_error(where, "cannot be read", errno));
  }
  if (first != kZstdMagic) {
    ASSAY_TRY(base::UniqueFd copy, duplicate(file));
    return ZstdStream(std::move(copy), std::nullopt);
  }
  ASSAY_TRY(base::Pipe pipe, base::make_pipe());
  ASSAY_TRY(base::Process process,
            start_zstd({"--decompress", "--memory=256MB"}, file, pipe.write_end.get()));
  return ZstdStream(std::move(pipe.read_end), std::move(process));
}

base::Result<void> ZstdStream::finish(const std::filesystem::path& where) {
  stream_.reset();
  if (!process_) return {};
  const auto exit = process_->wait_until(std::chrono::steady_clock::now() + kExitTimeout);
  if (exit && exit->wait_status == 0) return {};
  return base::fail(base::failed_error(
      where, exit ? "zstd " + base::exit_text(exit->wait_status) : "zstd does not end"));
}

}  // namespace assay::lineage
