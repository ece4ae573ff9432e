#include "store/project.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cerrno>

#include "base/clock.h"
#include "store/sqlite_error.h"

namespace assay::store {
namespace {

base::Result<std::string> random_id() {
  std::array<unsigned char, 16> bytes{};
  // Requests of up to 256 bytes are never cut short (getrandom(2)).
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return base::fail(base::system_error("getrandom", "no random numbers", errno));
  }
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

}  // namespace

base::Result<void> insert_project(Database& database, const std::filesystem::path& root,
                                  const std::string& program_version) {
  ASSAY_TRY(const std::string id, random_id());
  ASSAY_TRY(Statement insert,
            database.prepare("INSERT INTO project (only_row, id, created_at, created_by, root)"
                             " VALUES (1, ?1, ?2, ?3, ?4)"));
  const std::string now = base::utc_text(base::system_clock().wall_ns());
  ASSAY_TRY_VOID(insert.bind(id, now, program_version, root.native()));
  return insert.run();
}

base::Result<Project> read_project(Database& database) {
  ASSAY_TRY(Statement select,
            database.prepare("SELECT id, created_at, created_by, root FROM project"));
  ASSAY_TRY(const bool row, select.next_row());
  if (!row) {
    return base::fail(damaged_error(database.path().string(), "the project's row is missing"));
  }
  return Project{select.text(0), select.text(1), select.text(2), select.text(3)};
}

}  // namespace assay::store
