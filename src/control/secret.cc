#include "control/secret.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <thread>

#include "base/file.h"
#include "base/hex.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "control/hmac.h"

namespace assay::control {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kShortest = 16;  // characters; less could be guessed from a recorded proof
constexpr std::size_t kLongest = 1024;
constexpr const char* kVariableHint =
    "set ASSAY_JOB_SECRET to the same long random text for all ranks";

fs::path secret_path(const fs::path& run_folder) {
  return run_folder / ".assay-secret";
}

base::Result<Secret> checked(const std::string& where, std::string_view text) {
  const std::string_view trimmed = base::trim(text);
  if (trimmed.size() < kShortest || trimmed.size() > kLongest) {
    return base::fail(base::usage_error(where,
                                        fmt::format("the secret has {} characters, not {} to {}",
                                                    trimmed.size(), kShortest, kLongest),
                                        "openssl rand -hex 32 makes a good one"));
  }
  return Secret(std::string(trimmed));
}

// Nothing if there is no such file.
base::Result<std::optional<Secret>> read_secret(const fs::path& path) {
  // Without O_NOFOLLOW another user's link in a shared folder could point at a file of ours.
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) {
    if (errno == ENOENT || errno == ESTALE) return std::nullopt;
    return base::fail(
        base::system_error(path, "cannot open the job's secret", errno, kVariableHint));
  }
  ASSAY_TRY(const struct stat status, base::regular_status(fd.get(), path));
  if (status.st_uid != ::geteuid()) {
    return base::fail(base::unfit_error(path, "the job's secret belongs to another user",
                                        fmt::format("remove it, or {}", kVariableHint)));
  }
  if ((status.st_mode & 077) != 0) {
    return base::fail(base::unfit_error(
        path, fmt::format("others may read the job's secret (mode {:03o})", status.st_mode & 0777),
        fmt::format("remove it; if this file system has no permissions, {}", kVariableHint)));
  }
  std::string text(kLongest + 2, '\0');
  const ssize_t got = ::pread(fd.get(), text.data(), text.size(), 0);
  if (got < 0) {
    return base::fail(
        base::system_error(path, "cannot read the job's secret", errno, kVariableHint));
  }
  text.resize(static_cast<std::size_t>(got));
  auto secret = checked(path, text);
  OPENSSL_cleanse(text.data(), text.size());
  if (!secret) return base::fail(std::move(secret).error());
  return *std::move(secret);
}

// The file appears atomically, and if two processes create it at once both end up with the same
// secret.
base::Result<Secret> make_secret(const fs::path& path) {
  const Secret secret = Secret::random();
  const fs::path draft =
      fmt::format("{}.{}-{:x}", path.string(), ::getpid(), Clock::now().time_since_epoch().count());
  const base::UniqueFd fd(
      ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) {
    return base::fail(
        base::system_error(draft, "cannot create the job's secret", errno, kVariableHint));
  }
  const bool written = base::write_all(fd.get(), secret.text()) && ::fsync(fd.get()) == 0;
  const int reason = errno;
  const bool linked = written && ::link(draft.c_str(), path.c_str()) == 0;
  const int link_reason = errno;
  // Some file systems have no hard links; a rename is the fallback.
  const bool renamed =
      written && !linked && link_reason != EEXIST && ::rename(draft.c_str(), path.c_str()) == 0;
  if (!renamed) ::unlink(draft.c_str());
  if (!written) {
    return base::fail(
        base::system_error(path, "cannot write the job's secret", reason, kVariableHint));
  }
  if (linked || renamed) return secret;
  if (link_reason != EEXIST) {
    return base::fail(
        base::system_error(path, "cannot create the job's secret", link_reason, kVariableHint));
  }
  ASSAY_TRY(std::optional<Secret> theirs, read_secret(path));
  if (!theirs) {
    return base::fail(base::failed_error(path, "the job's secret vanished while it was read",
                                         "is another job using this run folder?"));
  }
  return *std::move(theirs);
}

}  // namespace

Secret::~Secret() {
  OPENSSL_cleanse(text_.data(), text_.size());
}

Secret Secret::random() {
  return Secret(base::hex_of(random_nonce()));
}

base::Result<Secret> find_secret(const EnvironmentMap& environment, const fs::path& run_folder,
                                 int rank, std::chrono::milliseconds timeout) {
  if (const auto given = environment.find("ASSAY_JOB_SECRET");
      given != environment.end() && !given->second.empty()) {
    return checked("ASSAY_JOB_SECRET", given->second);
  }
  if (run_folder.empty()) {
    return base::fail(base::usage_error("ASSAY_JOB_SECRET",
                                        "is not set, and there is no run folder", kVariableHint));
  }
  const fs::path path = secret_path(run_folder);
  const Clock::time_point deadline = Clock::now() + timeout;
  auto pause = std::chrono::milliseconds(2);
  while (true) {
    ASSAY_TRY(std::optional<Secret> secret, read_secret(path));
    if (secret) return *std::move(secret);
    if (rank == 0) return make_secret(path);
    const auto left = deadline - Clock::now();
    if (left <= Clock::duration::zero()) {
      return base::fail(base::failed_error(
          path,
          fmt::format(
              "rank {} found no job secret after {} s: rank 0 has not written it, or this is "
              "not the folder that rank 0 sees",
              rank, std::chrono::duration<double>(timeout).count()),
          fmt::format("put the run folder on a shared file system, or {}", kVariableHint)));
    }
    std::this_thread::sleep_for(std::min<Clock::duration>(pause, left));
    pause = std::min(pause * 2, std::chrono::milliseconds(100));
  }
}

void remove_secret_file(const fs::path& run_folder) {
  ::unlink(secret_path(run_folder).c_str());
}

}  // namespace assay::control
