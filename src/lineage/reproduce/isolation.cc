#include "lineage/reproduce/isolation.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "base/file.h"
#include "base/path_map.h"
#include "base/process/exit_status.h"
#include "base/scratch_folder.h"
#include "base/unique_fd.h"
#include "lineage/archive/copy_contents.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

constexpr int kNotEntered = 255;  // exit code of the process that only tests
constexpr std::string_view kScratchName = "assay-environments-";

// A lock on the folder, held while it is in use; invalid if another process holds it.
base::UniqueFd locked(const fs::path& folder) {
  base::UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd.valid() && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) fd.reset();
  return fd;
}

void remove_scratch(const fs::path& scratch) {
  std::error_code ignored;
  // The kernel's own folders in `work` have no permissions.
  for (fs::directory_iterator at(scratch / "work", ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    std::error_code none;
    fs::permissions(at->path() / "work", fs::perms::owner_all, none);
  }
  fs::remove_all(scratch, ignored);
}

// Scratch folders of this user whose processes were killed, by Ctrl-C among others.
void remove_abandoned(const fs::path& folder) {
  constexpr time_t kJustMade_s = 60;  // perhaps not locked yet
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    struct stat status {};
    if (!at->path().filename().string().starts_with(kScratchName) ||
        ::lstat(at->path().c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
        status.st_uid != ::geteuid() || ::time(nullptr) - status.st_mtime < kJustMade_s) {
      continue;
    }
    if (const base::UniqueFd lock = locked(at->path()); lock.valid()) remove_scratch(at->path());
  }
}

bool write_proc(const char* path, const std::string& text) {
  const base::UniqueFd file(::open(path, O_WRONLY | O_CLOEXEC));
  return file.valid() && base::write_all(file.get(), text);
}

// Enters a new mount namespace: directly if permitted, else inside a new user namespace, in which
// the user id stays the same and file permissions do not increase.
bool unshare_mounts(bool& in_user_namespace) {
  in_user_namespace = false;
  if (::unshare(CLONE_NEWNS) == 0) return true;
  const std::string user = std::to_string(::geteuid());
  const std::string group = std::to_string(::getegid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  in_user_namespace = true;
  return write_proc("/proc/self/setgroups", "deny") &&
         write_proc("/proc/self/uid_map", user + " " + user + " 1") &&
         write_proc("/proc/self/gid_map", group + " " + group + " 1");
}

bool bind_to_itself(const std::string& folder) {
  return ::mount(folder.c_str(), folder.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0;
}

bool set_read_only(const std::string& folder, bool read_only) {
  mount_attr attributes{};
  (read_only ? attributes.attr_set : attributes.attr_clr) = MOUNT_ATTR_RDONLY;
  return ::mount_setattr(AT_FDCWD, folder.c_str(), read_only ? AT_RECURSIVE : 0, &attributes,
                         sizeof attributes) == 0;
}

// Characters that separate the options of an overlay.
bool can_be_an_option(std::string_view path) {
  return path.find_first_of(":,\\") == path.npos;
}

bool mount_overlay(const std::string& folder, const fs::path& upper, const fs::path& work,
                   bool in_user_namespace) {
  const std::string options = "lowerdir=" + folder + ",upperdir=" + upper.string() +
                              ",workdir=" + work.string() + (in_user_namespace ? ",userxattr" : "");
  return can_be_an_option(folder) && can_be_an_option(upper.string()) &&
         ::mount("overlay", folder.c_str(), "overlay", 0, options.c_str()) == 0;
}

constexpr std::int64_t kLongestScript = 1 << 20;

base::Result<void> copy_regular(const fs::path& from, const fs::path& to) {
  ASSAY_TRY(const base::UniqueFd source, base::open_regular(from));
  ASSAY_TRY(const struct stat status, base::regular_status(source.get(), from));
  const base::UniqueFd target(::open(to.c_str(),
                                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                     (status.st_mode & 0777) | S_IWUSR));
  if (!target.valid()) return base::fail(base::system_error(to, "cannot be created", errno));
  ASSAY_TRY_VOID(copy_contents(source.get(), target.get(), to));
  return {};
}

base::Result<void> relocate_script(const fs::path& script, const base::PathMap& map) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(script, error);
  if (error || size > std::uintmax_t{kLongestScript}) return {};
  ASSAY_TRY(const std::string text, base::read_file(script, base::Bytes(kLongestScript)));
  if (text.find('\0') != text.npos) return {};
  const std::string moved = map.argument(text);
  if (moved == text) return {};
  const fs::perms mode = fs::status(script, error).permissions();
  ASSAY_TRY_VOID(base::write_file(script, moved));
  fs::permissions(script, mode, error);
  return {};
}

}  // namespace

StageIsolation::StageIsolation(std::string project, std::string copy,
                               const std::set<std::string>& environments, bool wanted)
    : project_(std::move(project)),
      copy_(std::move(copy)),
      environments_(environments.begin(), environments.end()) {
  if (!wanted) return;
  std::error_code error;
  if (!environments_.empty()) {
    const fs::path temporary = fs::temp_directory_path(error);
    remove_abandoned(temporary);
    if (auto made = base::make_unique_folder(temporary, kScratchName)) scratch_ = *std::move(made);
    lock_ = locked(scratch_);
    for (std::size_t i = 0; i < environments_.size() && !scratch_.empty(); ++i) {
      fs::create_directories(scratch_ / "upper" / std::to_string(i), error);
      fs::create_directories(scratch_ / "work" / std::to_string(i), error);
    }
  }
  layers_ = !scratch_.empty() && enters(true);
  protects_ = layers_ || enters(false);
}

StageIsolation::~StageIsolation() {
  if (!scratch_.empty()) remove_scratch(scratch_);
}

bool StageIsolation::enter(bool layered) const {
  bool in_user_namespace = false;
  if (!unshare_mounts(in_user_namespace)) return false;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  if (!bind_to_itself(project_) || !set_read_only(project_, true)) return false;
  if (base::PathMap(project_, "").inside(copy_) &&
      (!bind_to_itself(copy_) || !set_read_only(copy_, false))) {
    return false;
  }
  for (std::size_t i = 0; layered && i < environments_.size(); ++i) {
    const std::string number = std::to_string(i);
    if (!mount_overlay(environments_[i], scratch_ / "upper" / number, scratch_ / "work" / number,
                       in_user_namespace)) {
      return false;
    }
  }
  // The working directory still refers to the old mounts.
  return ::chdir(copy_.c_str()) == 0;
}

bool StageIsolation::enters(bool layered) const {
  const pid_t child = ::fork();
  if (child == 0) {
    // Mounting is not enough: a read-only file system below the overlay is noticed only by writing.
    bool entered = enter(layered);
    for (std::size_t i = 0; entered && layered && i < environments_.size(); ++i) {
      const std::string probe = environments_[i] + "/.assay-writable";
      const base::UniqueFd file(::open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
      entered = file.valid() && ::unlink(probe.c_str()) == 0;
    }
    ::_exit(entered ? 0 : kNotEntered);
  }
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return child > 0 && base::shell_exit_code(status) == 0;
}

base::Result<int> StageIsolation::run(const std::function<int()>& act) const {
  if (!protects_) return act();
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return base::fail(base::system_error("a stage", "cannot be started", errno));
  }
  const base::UniqueFd from(ends[0]);
  base::UniqueFd to(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return base::fail(base::system_error("a stage", "cannot be started", errno));
  if (child == 0) {
    if (!enter(layers_)) ::_exit(kNotEntered);
    const int result = act();
    const auto byte = static_cast<char>(result);
    const bool sent = base::write_all(to.get(), {&byte, 1});
    ::_exit(sent ? 0 : kNotEntered);
  }
  to.reset();
  unsigned char result = 0;
  ssize_t got = 0;
  // Waits for the child, which waits for the stage.
  do {
    got = ::read(from.get(), &result, 1);
  } while (got < 0 && errno == EINTR);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (got == 1) return int{result};
  return base::fail(
      base::failed_error("a stage", "was not run to its end in a separate mount namespace"));
}

base::Result<void> copy_environment(const std::string& environment, const base::PathMap& map) {
  const fs::path target = map.path(environment);
  const fs::path scripts = fs::path(environment) / "bin";
  std::error_code error;
  fs::create_directories(target, error);
  fs::recursive_directory_iterator at(environment, error);
  for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
    const fs::path to = map.path(at->path().string());
    const fs::file_status status = at->symlink_status(error);
    if (error) break;
    if (fs::is_symlink(status)) {
      const std::string leads_to = fs::read_symlink(at->path(), error).string();
      if (!error) fs::create_symlink(map.path(leads_to), to, error);
    } else if (fs::is_directory(status)) {
      fs::create_directory(to, error);
    } else if (fs::is_regular_file(status)) {
      ASSAY_TRY_VOID(copy_regular(at->path(), to));
      if (at->path().parent_path() == scripts) ASSAY_TRY_VOID(relocate_script(to, map));
    }
    if (error) break;
  }
  if (error) {
    return base::fail(base::failed_error(environment, "cannot be copied: " + error.message()));
  }
  return {};
}

}  // namespace assay::lineage
