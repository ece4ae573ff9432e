#include "oracle/strace_log.h"

#include <charconv>
#include <map>

namespace assay::oracle {
namespace {

// "\x2f\x61" -> "/a"
std::string decoded(std::string_view hex) {
  std::string text;
  for (std::size_t at = 0; at + 4 <= hex.size(); at += 4) {
    unsigned byte = 0;
    std::from_chars(hex.data() + at + 2, hex.data() + at + 4, byte, 16);
    text.push_back(static_cast<char>(byte));
  }
  return text;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

Argument parse_argument(std::string_view text) {
  text = trimmed(text);
  Argument argument;
  if (!text.empty() && text.front() == '"') {
    const std::size_t end = text.find('"', 1);
    argument.quoted = decoded(text.substr(1, end - 1));
    return argument;
  }
  const std::size_t open = text.find('<');
  if (open != std::string_view::npos && text.substr(open, 3) == "<\\x") {
    const std::size_t close = text.find('>', open);
    argument.path = decoded(text.substr(open + 1, close - open - 1));
    argument.deleted = text.substr(close).find("(deleted)") != std::string_view::npos;
    text = text.substr(0, open);
  }
  argument.text = std::string(text);
  return argument;
}

// Splits at the commas that stand in no bracket.
std::vector<Argument> parse_arguments(std::string_view text) {
  std::vector<Argument> arguments;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    const char c = at < text.size() ? text[at] : ',';
    if (c == '{' || c == '[' || c == '(') ++depth;
    if (c == '}' || c == ']' || c == ')') --depth;
    if (c != ',' || depth > 0) continue;
    arguments.push_back(parse_argument(text.substr(begin, at - begin)));
    begin = at + 1;
  }
  return arguments;
}

// `text` is "name(arguments) = result".
std::optional<Call> parse_call(int thread, std::string_view text) {
  const std::size_t open = text.find('(');
  const std::size_t equals = text.rfind(" = ");
  if (open == std::string_view::npos || equals == std::string_view::npos) return {};
  const std::size_t close = text.rfind(')', equals);
  if (close == std::string_view::npos || close < open) return {};
  Call call;
  call.thread = thread;
  call.name = std::string(text.substr(0, open));
  call.arguments = parse_arguments(text.substr(open + 1, close - open - 1));
  call.result = parse_argument(text.substr(equals + 3));
  if (call.result.text.starts_with('?')) return {};
  return call;
}

}  // namespace

const Argument& Call::argument(std::size_t number) const {
  static const Argument none;
  return number < arguments.size() ? arguments[number] : none;
}

bool Call::has_flag(std::size_t number, std::string_view word) const {
  const std::string& text = argument(number).text;
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) {
      return true;
    }
  }
  return false;
}

std::vector<Call> read_strace(std::string_view log) {
  static constexpr std::string_view kUnfinished = "<unfinished ...>";
  std::vector<Call> calls;
  std::map<int, std::string> unfinished;  // by thread: the call's first half
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    int thread = 0;
    const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), thread);
    if (error != std::errc{}) continue;
    line = trimmed(line.substr(static_cast<std::size_t>(rest - line.data())));
    if (line.starts_with("+++")) {
      // "superseded by execve in pid N": N's exec ends under this thread's number.
      const std::size_t pid = line.find("in pid ");
      if (pid == std::string_view::npos) continue;
      int other = 0;
      std::from_chars(line.data() + pid + 7, line.data() + line.size(), other);
      unfinished[thread] = unfinished[other];
      unfinished.erase(other);
    } else if (line.ends_with(kUnfinished)) {
      line.remove_suffix(kUnfinished.size());
      unfinished[thread] = std::string(trimmed(line));
    } else if (line.starts_with("<... ")) {
      const std::string_view second = line.substr(line.find("resumed>") + 8);
      std::string whole = unfinished[thread] + std::string(second);
      unfinished.erase(thread);
      if (auto call = parse_call(thread, whole)) calls.push_back(std::move(*call));
    } else if (auto call = parse_call(thread, line)) {
      calls.push_back(std::move(*call));
    }
  }
  return calls;
}

std::vector<std::string> strace_words(const std::string& output) {
  // A question mark: not an error where the architecture has no such call.
  return {"strace",
          "-f",
          "--seccomp-bpf",
          "-y",
          "-xx",
          "-s",
          "0",
          "-qq",
          "-e",
          "signal=none",
          "-e",
          "trace=?open,openat,openat2,?creat,open_by_handle_at,execve,execveat,"
          "?rename,?renameat,renameat2,?link,linkat,?unlink,unlinkat,?symlink,symlinkat,"
          "?mkdir,mkdirat,?rmdir,?mknod,mknodat,truncate,ftruncate,fallocate,"
          "read,pread64,readv,preadv,preadv2,write,pwrite64,writev,pwritev,pwritev2,"
          "sendfile,copy_file_range,splice,chdir,fchdir,?fork,?vfork,clone,clone3,unshare",
          "-o",
          output,
          "--"};
}

}  // namespace assay::oracle
