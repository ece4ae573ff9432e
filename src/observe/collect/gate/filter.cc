#include "observe/collect/gate/filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "observe/collect/call/call_table.h"
#include "observe/collect/call/stopped_call.h"
#include "observe/wire/gate.h"

namespace assay::collect {
namespace {

constexpr std::uint32_t kTmpFile = O_TMPFILE & ~O_DIRECTORY;

constexpr std::uint32_t kNumber = offsetof(seccomp_data, nr);
constexpr std::uint32_t kArch = offsetof(seccomp_data, arch);
constexpr std::uint32_t kAddress = offsetof(seccomp_data, instruction_pointer);

constexpr std::uint32_t argument(int index) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) +
                                    8U * static_cast<unsigned>(index));
}

class Assembler {
 public:
  void load(std::uint32_t offset) { add(BPF_LD | BPF_W | BPF_ABS, offset); }
  void mask(std::uint32_t bits) { add(BPF_ALU | BPF_AND | BPF_K, bits); }
  void give(std::uint32_t action) { add(BPF_RET | BPF_K, action); }
  // Skips `count` instructions if the accumulator is (not) `value`.
  void skip_if(std::uint32_t value, std::size_t count) { jump(BPF_JEQ, value, count, 0); }
  void skip_unless(std::uint32_t value, std::size_t count) { jump(BPF_JEQ, value, 0, count); }
  void go(std::size_t count) { add(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(count)); }
  void append(const std::vector<sock_filter>& other) {
    program_.insert(program_.end(), other.begin(), other.end());
  }
  std::vector<sock_filter> take() { return std::move(program_); }
  [[nodiscard]] std::size_t size() const { return program_.size(); }

 private:
  void add(int code, std::uint32_t value) {
    program_.push_back({static_cast<__u16>(code), 0, 0, value});
  }
  void jump(int condition, std::uint32_t value, std::size_t yes, std::size_t no) {
    ASSAY_CHECK(yes < 256 && no < 256, "a jump of classic BPF reaches 255 instructions");
    program_.push_back({static_cast<__u16>(BPF_JMP | condition | BPF_K), static_cast<__u8>(yes),
                        static_cast<__u8>(no), value});
  }
  std::vector<sock_filter> program_;
};

// The decision for one call of the table: allowed if it came from the shim's instruction, or opens
// no file (O_PATH), or (kChanges) changes no existing file.
std::vector<sock_filter> decide(const CallToStop& call, bool shim, GateMode mode,
                                std::uint32_t action) {
  Assembler code;
  if (shim && mode == GateMode::kEverything) {
    code.load(kAddress);
    code.skip_unless(static_cast<std::uint32_t>(wire::kGateReturn), 3);
    code.load(kAddress + 4);
    code.skip_unless(static_cast<std::uint32_t>(wire::kGateReturn >> 32U), 1);
    code.give(SECCOMP_RET_ALLOW);
  }
  if (call.number == SYS_prctl || call.number == (SYS_prctl | kX32Bit)) {
    code.load(argument(0));
    code.skip_if(PR_SET_SECCOMP, 1);
    code.give(SECCOMP_RET_ALLOW);
  }
  // fstat as the C library makes it (AT_EMPTY_PATH): the file is already open.
  if (call.empty_path_argument >= 0) {
    code.load(argument(call.empty_path_argument));
    code.mask(AT_EMPTY_PATH);
    code.skip_unless(AT_EMPTY_PATH, 1);
    code.give(SECCOMP_RET_ALLOW);
  }
  // With to_submit = 0 it only waits for results and submits nothing.
  if (call.number == SYS_io_uring_enter || call.number == (SYS_io_uring_enter | kX32Bit)) {
    code.load(argument(1));
    code.skip_unless(0, 1);
    code.give(SECCOMP_RET_ALLOW);
  }
  if (call.flags_argument >= 0) {
    const std::uint32_t flags = argument(call.flags_argument);
    const auto allow_if = [&](std::uint32_t bits, std::uint32_t value) {
      code.load(flags);
      code.mask(bits);
      code.skip_unless(value, 1);
      code.give(SECCOMP_RET_ALLOW);
    };
    allow_if(O_PATH, O_PATH);
    if (mode == GateMode::kChanges) {
      allow_if(O_DIRECTORY | kTmpFile, O_DIRECTORY);
      allow_if(O_ACCMODE | O_TRUNC | O_CREAT, O_RDONLY);
      allow_if(O_CREAT | O_EXCL | kTmpFile, O_CREAT | O_EXCL);
    }
  }
  code.give(action);
  return code.take();
}

bool changes_files(std::uint32_t arch, int number) {
  switch (find_call(arch, number)->kind) {
    case CallKind::kOpen:
    case CallKind::kOpenAt:
    case CallKind::kOpenAt2:
    case CallKind::kCreat:
    case CallKind::kMknod:
    case CallKind::kMknodAt:
    case CallKind::kTruncate:
    case CallKind::kUnlink:
    case CallKind::kUnlinkAt:
    case CallKind::kRename:
    case CallKind::kRenameAt:
    case CallKind::kRenameAt2:
    case CallKind::kLink:
    case CallKind::kLinkAt:
    // These change the timestamps by which changes are detected.
    case CallKind::kSetTimes:
    case CallKind::kSetTimesAt:
    case CallKind::kSetTimesAtFlags:
    // Its programs are loaded only when they are needed (EbpfPrograms::follow_uring).
    case CallKind::kIoUringSetup:
    // These change which files later paths refer to.
    case CallKind::kNewRoot:
    case CallKind::kMount:
    case CallKind::kSetNs:
    case CallKind::kUnshare:
      return true;
    default:
      return false;
  }
}

std::vector<CallToStop> calls_of_filter(std::uint32_t arch, bool shim, GateMode mode,
                                        std::uint32_t action) {
  std::vector<CallToStop> calls(calls_to_stop(arch).begin(), calls_to_stop(arch).end());
  if (mode == GateMode::kChanges) {
    std::erase_if(calls, [&](const CallToStop& call) { return !changes_files(arch, call.number); });
  }
  // Stopping a stat costs five to nine microseconds, and dynamic programs make some that bypass the
  // shim: the C library's localtime() makes one each time. With ptrace everything is slow anyway.
  if (action == SECCOMP_RET_USER_NOTIF) {
    std::erase_if(calls, [&](const CallToStop& call) {
      const CallKind kind = find_call(arch, call.number)->kind;
      return kind == CallKind::kQuery || kind == CallKind::kQueryAt || kind == CallKind::kStatus ||
             kind == CallKind::kStatusAt;
    });
  }
  // Without a shim there is nothing to switch off, and the program cannot install a second
  // listener.
  if (!shim && action == SECCOMP_RET_USER_NOTIF) {
    std::erase_if(calls, [&](const CallToStop& call) {
      return find_call(arch, call.number)->kind == CallKind::kSeccomp;
    });
  }
  // Changes of directory and sandboxes concern the shim only.
  if (!shim) {
    std::erase_if(calls, [&](const CallToStop& call) {
      const CallKind kind = find_call(arch, call.number)->kind;
      return kind == CallKind::kNewDirectory || kind == CallKind::kSandbox;
    });
  }
  return calls;
}

std::vector<sock_filter> decide_all(std::uint32_t arch, bool shim, GateMode mode,
                                    std::uint32_t action) {
  std::vector<CallToStop> calls = calls_of_filter(arch, shim, mode, action);
  // The frequent ones first.
  std::stable_partition(calls.begin(), calls.end(),
                        [](const CallToStop& call) { return call.flags_argument >= 0; });
  Assembler code;
  code.load(kNumber);
  for (const CallToStop& call : calls) {
    const std::vector<sock_filter> decision = decide(call, shim, mode, action);
    code.skip_unless(static_cast<std::uint32_t>(call.number), decision.size());
    code.append(decision);
  }
  code.give(SECCOMP_RET_ALLOW);
  return code.take();
}

}  // namespace

std::vector<sock_filter> gate_filter(GateMode mode, std::uint32_t action) {
  const bool shim = action == SECCOMP_RET_USER_NOTIF;
  const auto native = decide_all(AUDIT_ARCH_X86_64, shim, mode, action);
  const auto i386 = decide_all(AUDIT_ARCH_I386, false, mode, action);
  Assembler code;
  code.load(kArch);
  code.skip_if(AUDIT_ARCH_X86_64, 1);
  code.go(native.size());
  code.append(native);
  code.append(i386);
  return code.take();
}

wire::StoppedNumbers stopped_numbers(GateMode mode) {
  wire::StoppedNumbers stopped;
  const auto add = [&](std::uint32_t arch, bool shim) {
    for (const CallToStop& call : calls_of_filter(arch, shim, mode, SECCOMP_RET_USER_NOTIF)) {
      ASSAY_CHECK(stopped.all < wire::kMostStoppedNumbers, "all stopped calls fit into the header");
      stopped.numbers[stopped.all++] = static_cast<std::uint32_t>(call.number);
    }
  };
  add(AUDIT_ARCH_X86_64, true);
  stopped.native = stopped.all;
  add(AUDIT_ARCH_I386, false);
  return stopped;
}

}  // namespace assay::collect
