#include "observe/collect/process/interpreter.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string_view>

#include "base/unique_fd.h"

namespace assay::collect {
namespace {

constexpr std::size_t kHeadSize = 256;  // BINPRM_BUF_SIZE: the bytes that the kernel examines
constexpr int kMostSegments = 64;

// "#! /bin/sh -e" -> "/bin/sh"
std::string named_by_script(std::string_view head) {
  head.remove_prefix(2);
  head = head.substr(0, head.find_first_of(std::string_view("\n\0", 2)));
  const std::size_t begin = head.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  head.remove_prefix(begin);
  return std::string(head.substr(0, head.find_first_of(" \t")));
}

template <class Header, class Segment>
std::string named_by_elf(int fd) {
  Header header;
  if (::pread(fd, &header, sizeof header, 0) != sizeof header) return {};
  if (header.e_phentsize != sizeof(Segment)) return {};
  for (int i = 0; i < std::min<int>(header.e_phnum, kMostSegments); ++i) {
    Segment segment;
    const auto at = static_cast<off_t>(header.e_phoff) + i * static_cast<off_t>(sizeof segment);
    if (::pread(fd, &segment, sizeof segment, at) != sizeof segment) return {};
    if (segment.p_type != PT_INTERP || segment.p_filesz < 2 || segment.p_filesz > PATH_MAX) {
      continue;
    }
    std::string path(segment.p_filesz, '\0');
    const ssize_t got = ::pread(fd, path.data(), path.size(), static_cast<off_t>(segment.p_offset));
    if (got != static_cast<ssize_t>(path.size())) return {};
    path.resize(std::strlen(path.c_str()));
    return path;
  }
  return {};
}

}  // namespace

ProgramInterpreter interpreter_of(const std::string& program) {
  const base::UniqueFd fd(::open(program.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, kHeadSize> head{};
  const ssize_t length = fd.valid() ? ::pread(fd.get(), head.data(), head.size(), 0) : -1;
  if (length < 0) return {};
  const std::string_view text(head.data(), static_cast<std::size_t>(length));
  if (text.starts_with("#!")) return {ProgramKind::kScript, named_by_script(text)};
  if (!text.starts_with(ELFMAG) || text.size() <= EI_CLASS) return {ProgramKind::kUnknown, {}};
  return {ProgramKind::kElf, head[EI_CLASS] == ELFCLASS32
                                 ? named_by_elf<Elf32_Ehdr, Elf32_Phdr>(fd.get())
                                 : named_by_elf<Elf64_Ehdr, Elf64_Phdr>(fd.get())};
}

}  // namespace assay::collect
