#include "lineage/packages/interpreter.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "base/clock.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/process/program.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "hash/file.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLargest = std::int64_t{256} << 20;
constexpr std::size_t kBuildDigits = 16;

// Names, each possibly followed by a version: python, python3.11, perl5.36.0.
constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kLanguages = {
    {{"python", "python"},
     {"pypy", "python"},
     {"nodejs", "node"},
     {"node", "node"},
     {"deno", "deno"},
     {"bun", "bun"},
     {"ruby", "ruby"},
     {"perl", "perl"},
     {"julia", "julia"},
     {"java", "java"},
     {"php", "php"},
     {"lua", "lua"},
     {"R", "r"}}};

template <class T>
bool read_at(int fd, std::uint64_t offset, T& value) {
  return ::pread(fd, &value, sizeof value, static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(sizeof value);
}

// The build id that the linker left in an ELF note. The file may be damaged, so all reads are
// bounds-checked.
std::string build_id(int fd) {
  Elf64_Ehdr header{};
  if (!read_at(fd, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return {};
  }
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    if (!read_at(fd, header.e_phoff + i * sizeof part, part)) return {};
    constexpr std::uint64_t kMostNotes = 65536;
    if (part.p_type != PT_NOTE || part.p_filesz > kMostNotes) continue;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Nhdr) <= part.p_filesz;) {
      Elf64_Nhdr note{};
      if (!read_at(fd, part.p_offset + at, note)) return {};
      const std::uint64_t name_size = (std::uint64_t{note.n_namesz} + 3) & ~std::uint64_t{3};
      const std::uint64_t size = (std::uint64_t{note.n_descsz} + 3) & ~std::uint64_t{3};
      std::array<char, 4> name{};
      std::array<unsigned char, 20> id{};
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == name.size() && note.n_descsz >= 8 &&
          read_at(fd, part.p_offset + at + sizeof note, name) &&
          std::memcmp(name.data(), "GNU", name.size()) == 0) {
        const std::size_t count = std::min<std::size_t>(note.n_descsz, id.size());
        const std::uint64_t where = part.p_offset + at + sizeof note + name_size;
        if (::pread(fd, id.data(), count, static_cast<off_t>(where)) ==
            static_cast<ssize_t>(count)) {
          return base::hex_of(std::span(id.data(), count)).substr(0, kBuildDigits);
        }
      }
      at += sizeof note + name_size + size;
    }
  }
  return {};
}

// The full version, for Python 3.11 the separate string "3.11.2", searched for in the file's text.
std::string version_in(const std::string& text, const std::string& series) {
  const std::string wanted = std::string(1, '\0') + series + ".";
  for (std::size_t at = text.find(wanted); at != text.npos; at = text.find(wanted, at + 1)) {
    const std::size_t end = text.find('\0', at + 1);
    if (end == text.npos) break;
    std::string found = text.substr(at + 1, end - at - 1);
    const std::string rest = found.substr(series.size() + 1);
    const bool numbered = !rest.empty() && base::is_digit(rest.front()) &&
                          rest.find_first_not_of("0123456789abrc+") == rest.npos &&
                          rest.size() <= 8;
    if (numbered) return found;
  }
  return {};
}

// #define PY_VERSION "3.11.2"
std::string version_in_header(const fs::path& prefix, const std::string& series) {
  constexpr std::string_view kBegin = "#define PY_VERSION";
  const auto text = base::read_file(prefix / "include" / ("python" + series) / "patchlevel.h",
                                    base::Bytes(65536));
  std::size_t at = text ? text->find(kBegin) : std::string::npos;
  // Not PY_VERSION_HEX.
  while (at != std::string::npos && at + kBegin.size() < text->size() &&
         (*text)[at + kBegin.size()] == '_') {
    at = text->find(kBegin, at + 1);
  }
  if (at == std::string::npos) return {};
  const std::size_t from = text->find('"', at);
  const std::size_t end = from == std::string::npos ? from : text->find('"', from + 1);
  if (end == std::string::npos || !text->substr(from + 1).starts_with(series)) return {};
  return text->substr(from + 1, end - from - 1);
}

// From the installed headers; else searched for in the program or, if that is small, in its
// library. Not every compiler leaves the text there.
std::string python_version(const fs::path& real) {
  const std::string name = real.filename().string();
  const std::size_t digit = name.find_first_of("0123456789");
  std::string series = digit == name.npos ? "3" : name.substr(digit);
  if (series.find('.') == series.npos) return {};
  const fs::path library =
      real.parent_path().parent_path() / "lib" / ("libpython" + series + ".so.1.0");
  if (std::string version = version_in_header(real.parent_path().parent_path(), series);
      !version.empty()) {
    return version;
  }
  for (const fs::path& file : {real, library}) {
    const auto text = base::read_file(file, base::Bytes(kLargest));
    if (!text) continue;
    if (std::string version = version_in(*text, series); !version.empty()) return version;
  }
  return series;
}

// The path in "#!/usr/bin/python3 -u"; nothing if the file is no script.
std::optional<std::string> first_line_interpreter(const std::string& file) {
  const base::UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, 256> begin{};
  const ssize_t got = fd.valid() ? ::read(fd.get(), begin.data(), begin.size()) : -1;
  const std::string_view text(begin.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (!text.starts_with("#!")) return std::nullopt;
  const std::size_t from = std::min(text.find_first_not_of(" \t", 2), text.size());
  const std::size_t end = std::min(text.find_first_of(" \t\n", from), text.size());
  return std::string(text.substr(from, end - from));
}

// The path by which a process started its program, if it still leads there.
std::string started_as(const store::ProcessRecord& process, const std::string& search_path,
                       const std::string& directory) {
  if (process.arguments.empty()) return process.program;
  const auto found = base::find_program(process.arguments[0], search_path, directory);
  if (!found) return process.program;
  const fs::path whole = (fs::path(directory) / *found).lexically_normal();
  std::error_code error;
  const fs::path real = fs::canonical(whole, error);
  return !error && real == process.program ? whole.string() : process.program;
}

}  // namespace

std::optional<std::string> language_of(std::string_view program) {
  const std::string_view name = program.substr(program.rfind('/') + 1);
  for (const auto& [begin, language] : kLanguages) {
    if (!name.starts_with(begin)) continue;
    const std::string_view rest = name.substr(begin.size());
    if (rest.find_first_not_of("0123456789.td") == rest.npos) return std::string(language);
  }
  return std::nullopt;
}

std::optional<Interpreter> interpreter_at(const std::string& started, WithVersion version) {
  std::error_code error;
  const fs::path real = fs::canonical(started, error);
  if (error) return std::nullopt;
  const auto language = language_of(real.string());
  if (!language) return std::nullopt;
  const base::UniqueFd fd(::open(real.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return std::nullopt;
  }
  Interpreter found{.started = started,
                    .real = real.string(),
                    .language = *language,
                    .changed_unix_ns = base::nanoseconds(status.st_ctim)};
  found.build = build_id(fd.get());
  if (found.build.empty() && status.st_size <= kLargest) {
    const auto hashed = hash::hash_file(real);
    if (hashed) found.build = hashed->digest.hex().substr(0, kBuildDigits);
  }
  if (version == WithVersion::kYes && *language == "python") found.version = python_version(real);
  return found;
}

std::vector<Interpreter> interpreters_of(const std::vector<store::ProcessRecord>& processes,
                                         const std::string& search_path,
                                         const std::string& directory) {
  constexpr std::size_t kMost = 100;
  std::vector<Interpreter> found;
  std::map<std::string, std::int64_t> used_ns;             // by the name it was started by
  std::set<std::pair<std::string, std::string>> programs;  // with arguments[0]
  for (const store::ProcessRecord& process : processes) {
    if (process.program.empty() || !process.host.empty() || found.size() >= kMost) continue;
    const std::string name = process.arguments.empty() ? "" : process.arguments[0];
    if (!programs.emplace(process.program, name).second) continue;
    std::string started;
    if (language_of(process.program)) {
      started = started_as(process, search_path, directory);
    } else if (const auto named = first_line_interpreter(process.program)) {
      started = *named;
    }
    if (started.empty()) continue;
    const auto [at, is_new] = used_ns.try_emplace(started, process.started_ns);
    at->second = std::min(at->second, process.started_ns);
    if (!is_new) continue;
    if (auto interpreter = interpreter_at(started)) found.push_back(*std::move(interpreter));
  }
  for (Interpreter& one : found) one.used_ns = used_ns[one.started];
  return found;
}

store::PathFact to_fact(const Interpreter& interpreter) {
  return {.kind = store::PathFact::Kind::kInterpreter,
          .path = interpreter.started,
          .target = interpreter.real,
          .names = {interpreter.language, interpreter.version, interpreter.build}};
}

std::optional<Interpreter> interpreter_of(const store::PathFact& fact) {
  if (fact.kind != store::PathFact::Kind::kInterpreter || fact.names.size() != 3) {
    return std::nullopt;
  }
  return Interpreter{fact.path, fact.target, fact.names[0], fact.names[1], fact.names[2]};
}

std::string to_text(const Interpreter& interpreter) {
  return fmt::format("{}{}{}, build {}, {}", interpreter.language,
                     interpreter.version.empty() ? "" : " ", interpreter.version,
                     interpreter.build.empty() ? "unknown" : interpreter.build, interpreter.real);
}

}  // namespace assay::lineage
