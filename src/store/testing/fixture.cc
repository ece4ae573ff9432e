#include "store/testing/fixture.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include "base/check.h"

namespace assay::store::testing {

namespace fs = std::filesystem;

StoreTest::StoreTest() : scratch_(fs::canonical(folder_.path())) {
  fs::permissions(scratch_, fs::perms(0755));  // tests that become nobody must get in
}

fs::path StoreTest::directory(const std::string& name) const {
  fs::create_directory(scratch_ / name);
  return scratch_ / name;
}

StoreProgram program_with(int versions) {
  static const std::vector<Migration> all = {
      embedded_migrations()[0],
      {2, "0002_entry",
       "CREATE TABLE entry (n INTEGER PRIMARY KEY, payload TEXT NOT NULL) STRICT;"
       "INSERT INTO entry VALUES (1, 'one'), (2, 'two');"},
      {3, "0003_entry_owner",
       "CREATE TABLE new_entry (n INTEGER PRIMARY KEY, payload TEXT NOT NULL,"
       " owner INTEGER NOT NULL REFERENCES project (only_row)) STRICT;"
       "INSERT INTO new_entry SELECT n, payload, 1 FROM entry;"
       "DROP TABLE entry;"
       "ALTER TABLE new_entry RENAME TO entry;"}};
  const auto count = static_cast<std::size_t>(versions);
  return {.version = fmt::format("0.{}.0", versions),
          .migrations = std::span<const Migration>(all).first(count)};
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, const std::string& contents) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << contents;
}

std::int64_t own_start_ticks() {
  const std::string text = read("/proc/self/stat");
  std::istringstream rest(text.substr(text.rfind(')') + 2));
  std::string field;
  for (int i = 3; i <= 22; ++i) rest >> field;
  return std::stoll(field);
}

unsigned mode_of(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_mode & 07777U : ~0U;
}

std::optional<std::string> sqlite3_shell(const fs::path& database, const std::string& sql) {
  static const bool installed = std::system("command -v sqlite3 >/dev/null") == 0;
  if (!installed) return std::nullopt;
  const std::string command = fmt::format("sqlite3 '{}' \"{}\" 2>&1", database.string(), sql);
  FILE* pipe = ::popen(command.c_str(), "r");
  ASSAY_CHECK(pipe != nullptr, "a test can run a command");
  std::string output;
  std::array<char, 256> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) output += buffer.data();
  ::pclose(pipe);
  return output;
}

}  // namespace assay::store::testing
