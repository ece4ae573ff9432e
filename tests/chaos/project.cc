#include "chaos/project.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

namespace assay::chaos {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

Project::Project() : path_(fs::canonical(temporary_.path())) {
  std::ofstream(path_ / "in.txt") << "some input\n";
  support::run({{support::program(), "init"}, "", path_});
}

support::ProcessResult Project::assay(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), support::program());
  return support::run({arguments, "", path_});
}

support::ProcessResult Project::bash(const std::string& text) const {
  return support::run(
      {{"bash", "-c", "A='" + support::program() + "' P='" CHAOS_PROGRAMS "'\n" + text},
       "",
       path_});
}

base::Json Project::finished_run() const {
  base::Json shown;
  const bool over = eventually([&] {
    shown = base::Json::parse(assay({"show", "last", "--json"}).out, nullptr, false);
    return shown.is_object() && shown.contains("run") && shown["run"]["status"] != "running";
  });
  return over ? shown : base::Json();
}

std::string Project::integrity() const {
  const std::string database = (path_ / ".assay" / "assay.db").string();
  std::string output = support::run({{"sqlite3", database, "PRAGMA integrity_check"}}).out;
  while (output.ends_with('\n')) output.pop_back();
  return output;
}

Background::Background(const std::vector<std::string>& arguments, const fs::path& where) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const std::string out = (streams_.path() / "out").string();
  const std::string err = (streams_.path() / "err").string();
  pid_ = ::fork();
  if (pid_ != 0) return;
  ::setpgid(0, 0);
  ::signal(SIGPIPE, SIG_DFL);
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  ::dup2(::open("/dev/null", O_RDONLY), 0);
  ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644), 1);
  ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644), 2);
  if (::chdir(where.c_str()) != 0) ::_exit(126);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

Background::~Background() {
  ::kill(-pid_, SIGKILL);
  wait();
}

std::optional<int> Background::wait(milliseconds most) {
  eventually(
      [&] {
        int status = 0;
        if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
        return status_.has_value();
      },
      most);
  return status_;
}

std::string Background::out() const {
  return read_file(streams_.path() / "out");
}
std::string Background::err() const {
  return read_file(streams_.path() / "err");
}

pid_t child_named(pid_t parent, const std::string& name) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", error)) {
    const std::string number = entry.path().filename().string();
    if (number.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string stat = read_file(entry.path() / "stat");
    const std::size_t open = stat.find('(');
    const std::size_t close = stat.rfind(')');
    if (open == std::string::npos || close == std::string::npos) continue;
    if (stat.substr(open + 1, close - open - 1) != name) continue;
    if (std::atoi(stat.c_str() + close + 4) == parent) return std::atoi(number.c_str());
  }
  return 0;
}

pid_t await_child(pid_t parent, const std::string& name) {
  pid_t found = 0;
  eventually([&] { return (found = child_named(parent, name)) != 0; });
  return found;
}

bool eventually(const std::function<bool()>& condition, milliseconds most) {
  const auto deadline = std::chrono::steady_clock::now() + most;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return true;
}

std::string read_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) all.push_back(line);
  return all;
}

void WithTracer::SetUp() {
  static const base::Json tracers = base::Json::parse(
      support::run({{support::program(), "tracers", "--json"}, "", "/"}).out, nullptr, false);
  ASSERT_FALSE(tracers.is_discarded()) << "assay tracers --json";
  for (const base::Json& tracer : tracers.is_object() ? tracers["tracers"] : tracers) {
    if (tracer["name"] == GetParam() && tracer["available"].get<bool>()) return;
  }
  GTEST_SKIP() << GetParam() << " does not work here";
}

}  // namespace assay::chaos
