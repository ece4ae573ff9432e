// What the gate has to do for the shim in a stopped process: calls that touch no file, after which
// what the shim remembers or may do is another.
#include <array>
#include <climits>
#include <cstring>
#include <string_view>

#include "observe/collect/call/call_table.h"
#include "observe/collect/call/remote_memory.h"
#include "observe/collect/call/remote_status.h"
#include "observe/collect/gate/gate.h"
#include "observe/wire/gate.h"

namespace assay::collect {
namespace {

// See wire/gate.h. Where there is no shim there is no such page, and nothing happens.
void let_shim_step_aside(pid_t thread) {
  struct {
    std::array<unsigned char, 8> code;
    std::uint64_t state;
  } page{};
  static_assert(sizeof page == wire::kGateStateAddress + 8 - wire::kGatePage);
  if (read_remote(thread, wire::kGatePage, &page, sizeof page) != 0 ||
      std::memcmp(page.code.data(), wire::kGateCode, sizeof wire::kGateCode) != 0) {
    return;
  }
  const std::uint32_t aside = wire::kStepAside;
  write_remote(thread, page.state, &aside, sizeof aside);
}

}  // namespace

bool Gate::about_the_shim(pid_t thread, const CallRow& row, const SystemCall& call, Log& log) {
  if (row.kind == CallKind::kNewDirectory) {
    log.header().epoch.fetch_add(1, std::memory_order_release);
    return true;
  }
  if (row.kind == CallKind::kSandbox || row.kind == CallKind::kSeccomp) {
    log.header().sandboxes.fetch_add(1, std::memory_order_release);
    let_shim_step_aside(thread);
    return true;
  }
  // Nobody can have added a filter before its first stopped call, the exec of the command.
  if (filters_ < 0) filters_ = read_remote_status(thread).filters;
  if (log.header().sandboxes.load(std::memory_order_relaxed) == 0 || log_path_.empty() ||
      row.kind != CallKind::kOpenAt) {
    return false;
  }
  std::array<char, PATH_MAX> path;
  std::size_t length = 0;
  if (read_remote_text(thread, call.arguments[1], path.data(), path.size(), length) != 0 ||
      std::string_view(path.data(), length) != log_path_) {
    return false;
  }
  // A shim that asks (wire::LogHeader::sandboxes). Where the kernel does not tell: better slow than
  // harmful.
  const int filters = read_remote_status(thread).filters;
  if (filters == 0 || filters > filters_) let_shim_step_aside(thread);
  return true;
}

}  // namespace assay::collect
