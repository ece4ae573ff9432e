#include "observe/collect/call/call_effect.h"

#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <array>
#include <string>

#include "base/text.h"

namespace assay::collect {
namespace {

constexpr std::size_t kShownPath = 200;

std::string program_of(pid_t thread) {
  const std::string link = fmt::format("/proc/{}/exe", thread);
  std::array<char, PATH_MAX> text;
  const ssize_t length = ::readlink(link.c_str(), text.data(), text.size());
  if (length <= 0) return "a program";
  return {text.data(), static_cast<std::size_t>(length)};
}

}  // namespace

CallEffect missed_effect(const RemoteView& view, std::string_view what, std::string_view text) {
  CallEffect effect;
  effect.events.push_back({.op = wire::RecordOp::kMissed,
                           .flags = wire::flag::kNoStamp,
                           .path = std::string(what),
                           .other = fmt::format("{} (process {}) {}", program_of(view.thread()),
                                                view.process(), text)});
  effect.will_succeed = true;
  return effect;
}

CallEffect long_path_effect(const RemoteView& view, std::string_view did, PathArgument file,
                            bool succeeds) {
  CallEffect effect =
      missed_effect(view, wire::kLongPath,
                    fmt::format("{} {}{}", did, base::shortened_middle(file.path, kShownPath),
                                wire::kLongPathText));
  effect.will_succeed = succeeds;
  return effect;
}

}  // namespace assay::collect
