#include "observe/collect/ebpf/messages.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <optional>

#include "base/process/proc.h"
#include "observe/collect/event/event.h"
#include "observe/collect/event/project_folder.h"

namespace assay::collect {
namespace {

using wire::RecordOp;

constexpr int kMostInterpreters = 5;  // the kernel's limit of nested scripts

std::optional<wire::Stamp> stamp_at(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return stamp_of(status);
}

Event event_of(const assay_message& message) {
  return {.source = wire::Source::kEbpf,
          .thread = message.thread,
          .process = message.process,
          .parent = message.parent,
          .value = message.value,
          .time_ns = static_cast<std::int64_t>(message.time_ns),
          .stamp = {.device = message.device,
                    .inode = message.inode,
                    .size = message.size,
                    .mtime_ns = message.mtime_ns,
                    .ctime_ns = message.ctime_ns}};
}

// The name that was given to execve, as a path. A script run by descriptor is "/dev/fd/N", which
// only the process itself can follow: the kernel leaves the descriptor open for the interpreter.
std::string script_path(std::string_view directory, std::string_view name, pid_t process) {
  constexpr std::string_view kByDescriptor = "/dev/fd/";
  if (name.starts_with(kByDescriptor)) {
    name.remove_prefix(kByDescriptor.size());
    const std::string_view number = name.substr(0, name.find('/'));
    const std::string link = fmt::format("/proc/{}/fd/{}", process, number);
    std::error_code error;
    const auto target = std::filesystem::read_symlink(link, error);
    return (error ? link : target.string()) + std::string(name.substr(number.size()));
  }
  if (name.starts_with('/')) return std::string(name);
  return fmt::format("{}/{}", directory, name);
}

// The path as the process gave it, made absolute, if it goes through symbolic links. The working
// directory of a process that has exited is unknown; then the folders above the file are tried, and
// the result is checked.
std::string given_path_to(const std::string& path, std::string_view given, pid_t process) {
  if (given.empty() || given == path) return {};
  if (given.starts_with('/')) {
    std::string absolute(given);
    return is_unreported(absolute) ? std::string() : absolute;
  }
  std::string_view rest = given;
  while (rest.starts_with('/') || rest.starts_with("./") || rest.starts_with("../")) {
    rest = rest.substr(rest.find('/') + 1);
  }
  if (path.size() > rest.size() && path.ends_with(rest) &&
      path[path.size() - rest.size() - 1] == '/') {
    return {};
  }
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return {};
  const auto leads_there = [&](const std::string& absolute) {
    struct stat found {};
    return ::stat(absolute.c_str(), &found) == 0 && found.st_dev == file.st_dev &&
           found.st_ino == file.st_ino;
  };
  std::error_code error;
  const auto directory = std::filesystem::read_symlink(fmt::format("/proc/{}/cwd", process), error);
  if (std::string absolute = fmt::format("{}/{}", directory.string(), given);
      !error && leads_there(absolute)) {
    return absolute;
  }
  for (std::size_t slash = path.rfind('/'); slash != std::string::npos && slash > 0;
       slash = path.rfind('/', slash - 1)) {
    if (std::string absolute = fmt::format("{}/{}", path.substr(0, slash), given);
        leads_there(absolute)) {
      return absolute;
    }
  }
  return {};
}

// As an event has them: with a NUL between them.
std::string arguments_of(pid_t process) {
  constexpr base::Bytes kLongestOfEvent{4 << 20};
  const auto arguments = base::process_arguments(process, kLongestOfEvent);
  return fmt::format("{}", fmt::join(arguments, std::string_view("\0", 1)));
}

}  // namespace

void reversed_path(std::string_view names, std::string& path) {
  path.clear();
  while (!names.empty()) {
    names.remove_suffix(1);  // the '/' after the outermost name
    const std::size_t slash = names.rfind('/');
    const std::size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
    path += '/';
    path += names.substr(begin);
    names = names.substr(0, begin);
  }
}

void EbpfMessages::receive(const assay_message& message, std::string_view names,
                           std::string_view other, const EventHandler& handle) {
  reversed_path(names, path_);
  Event event = event_of(message);
  switch (message.kind) {
    case kAssayOpen:
      opened(message, event, other, handle);
      break;
    case kAssayAbsent:
    case kAssayQueried:
      event.op = message.kind == kAssayAbsent ? RecordOp::kAbsent : RecordOp::kQueried;
      event.flags = wire::flag::kNoStamp;
      if (message.kind == kAssayQueried && message.access != 0) event.flags |= wire::flag::kSize;
      if (!other.starts_with('/')) path_ += '/';
      if (other.starts_with('/')) path_.clear();
      path_ += other;
      event.path = path_;
      if (!is_unreported(path_)) handle(event);
      break;
    case kAssayFork:
      event.op = RecordOp::kProcess;
      event.flags = wire::flag::kNoStamp;
      handle(event);
      break;
    case kAssayScript:
      scripts_[message.process] = script_path(path_, other, message.process);
      break;
    case kAssayExec:
      event.other = other;
      executed(message, event, handle);
      break;
    case kAssayExit:
      event.op = RecordOp::kExit;
      event.flags = wire::flag::kNoStamp;
      handle(event);
      break;
    default:
      break;
  }
}

void EbpfMessages::opened(const assay_message& message, Event event, std::string_view given,
                          const EventHandler& handle) {
  switch (message.access) {
    case kAssayList:
      event.op = RecordOp::kList;
      event.flags = wire::flag::kNoStamp;
      if (!given.empty() && !given.starts_with('/')) event.flags |= wire::flag::kRelative;
      if ((message.hints & kAssayPlainOpen) != 0) event.flags |= wire::flag::kPlainOpen;
      event.path = path_;
      if ((message.hints & kAssayOtherNamespace) == 0 && !is_unreported(path_)) handle(event);
      return;
    case kAssayRead:
      event.op = RecordOp::kRead;
      break;
    case kAssayReadWrite:
      event.op = RecordOp::kRead;
      event.flags = wire::flag::kWritable;
      break;
    case kAssayWrite:
      event.op = RecordOp::kWrite;
      break;
    case kAssayTruncate:
      event.op = RecordOp::kTruncate;
      break;
    case kAssayCreate:
      event.op = RecordOp::kCreate;
      break;
    case kAssayCreateUnnamed: {
      event.op = RecordOp::kCreate;
      event.flags = wire::flag::kUnnamed;
      // Its name is "#inode", by which it cannot be found; as at the gate, the directory is
      // reported.
      path_.resize(path_.rfind('/'));
      break;
    }
    default:
      return;
  }
  if ((message.hints & (kAssayNeedsStat | kAssayOtherNamespace)) != 0 &&
      message.access != kAssayCreateUnnamed) {
    const std::optional<wire::Stamp> found = stamp_at(path_);
    const bool comparable = found && (message.hints & kAssayNeedsStat) == 0;
    if ((message.hints & kAssayOtherNamespace) != 0 &&
        (!found || (comparable &&
                    (found->device != event.stamp.device || found->inode != event.stamp.inode)))) {
      ++foreign_opens_;
    }
    if ((message.hints & kAssayNeedsStat) != 0) {
      event.stamp = found.value_or(wire::Stamp{});
      if (!found) event.flags |= wire::flag::kNoStamp;
    }
  }
  if ((message.hints & kAssayUnseenChange) != 0) ++unseen_changes_;
  event.path = path_;
  given_path_ = given_path_to(path_, given, message.process);
  event.other = given_path_;
  handle(event);
}

const ProgramInterpreter& EbpfMessages::interpreter(const std::string& program,
                                                    const wire::Stamp& stamp) {
  Known& known = interpreters_[program];
  if (known.stamp != stamp || known.interpreter.kind == ProgramKind::kUnreadable) {
    known = {stamp, interpreter_of(program)};
  }
  return known.interpreter;
}

void EbpfMessages::executed(const assay_message& message, Event event, const EventHandler& handle) {
  const std::string running = path_;
  const auto script = scripts_.extract(message.process);
  std::string file = script.empty() ? running : script.mapped();
  if (!script.empty() || (message.hints & kAssayNeedsStat) != 0) {
    const std::optional<wire::Stamp> found = stamp_at(file);
    event.stamp = found.value_or(wire::Stamp{});
    event.flags = found ? 0 : wire::flag::kNoStamp;
  }
  std::string arguments;
  if ((message.hints & kAssayArgumentsTruncated) != 0) arguments = arguments_of(message.process);
  if (!arguments.empty()) event.other = arguments;
  while (event.other.ends_with('\0')) event.other.remove_suffix(1);

  event.op = RecordOp::kExec;
  event.path = file;
  handle(event);
  // The same files as the gate reports: the program, and what the kernel reads to run it.
  event.op = RecordOp::kRead;
  event.other = {};
  handle(event);
  for (int i = 0; i < kMostInterpreters; ++i) {
    const ProgramInterpreter& found = interpreter(file, event.stamp);
    // The script has been removed already; its interpreter is known.
    const bool readable = found.kind != ProgramKind::kUnreadable;
    const std::string next = readable || file == running ? found.path : running;
    if (next.empty()) break;
    const bool last = readable && found.last();
    const std::optional<wire::Stamp> stamp = stamp_at(next);
    if (!stamp) break;
    file = next;
    event.path = file;
    event.stamp = *stamp;
    event.flags = 0;
    handle(event);
    if (last) break;
  }
}

}  // namespace assay::collect
