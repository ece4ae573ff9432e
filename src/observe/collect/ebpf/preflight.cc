#include "observe/collect/ebpf/preflight.h"

#include <fmt/format.h>
#include <linux/bpf.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>

#include "observe/collect/ebpf/bpf_call.h"
#include "observe/collect/gate/gate.h"

namespace assay::collect {
namespace {

constexpr const char* kOpenFunction = "security_file_open";
constexpr std::array kSymbols = {
    kOpenFunction,
    kCastFunction,
    "btf_trace_sys_exit",
    "btf_trace_sched_process_fork",
    "btf_trace_sched_process_exec",
    "btf_trace_sched_process_exit",
    "btf_trace_io_uring_submit_req",
    "btf_trace_io_uring_submit_sqe",
    "btf_trace_io_uring_local_work_run",
    "btf_trace_io_uring_complete",
};

// Numbers of linux/capability.h.
constexpr unsigned kCapSysAdmin = 21;
constexpr unsigned kCapPerfmon = 38;
constexpr unsigned kCapBpf = 39;

std::uint64_t capabilities() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "CapEff:") continue;
    std::uint64_t bits = 0;
    status >> std::hex >> bits;
    return bits;
  }
  return 0;
}

std::string missing_capabilities() {
  const std::uint64_t have = capabilities();
  const auto has = [&](unsigned bit) { return (have >> bit & 1U) != 0; };
  if (has(kCapSysAdmin)) return {};
  std::string missing;
  if (!has(kCapBpf)) missing = "CAP_BPF";
  if (!has(kCapPerfmon)) missing += missing.empty() ? "CAP_PERFMON" : " and CAP_PERFMON";
  return missing;
}

// "none [integrity] confidentiality" -> "integrity"
std::string lockdown() {
  std::ifstream stream("/sys/kernel/security/lockdown");
  std::string text;
  std::getline(stream, text);
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']');
  if (open == std::string::npos || close == std::string::npos) return "none";
  return text.substr(open + 1, close - open - 1);
}

// 0, or the error of attaching a program that does nothing.
int try_attaching(bpf_attach_type type, std::uint32_t target) {
  if (target == 0) return ENOENT;
  // return 0
  const std::array<bpf_insn, 2> code{{
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
      {.code = BPF_JMP | BPF_EXIT},
  }};
  const auto loaded = bpf::load_program(
      {.name = "assay_probe", .attach_type = type, .target = target, .code = code});
  if (!loaded) return errno;
  return bpf::attach(loaded->get()) ? 0 : errno;
}

// An error if nothing works.
base::Result<EbpfSupport> support_here() {
  ASSAY_TRY(const KernelTypes types, KernelTypes::read(symbols_that_decide()));
  const EbpfSupport support = ebpf_support(types);
  if (support.mode == EbpfMode::kVfs) return support;
  const int error = try_attaching(BPF_TRACE_RAW_TP, types.tracepoint("sys_exit"));
  if (error == 0) return support;
  return base::fail(base::system_error("ebpf", "the kernel refuses tracing programs", error,
                                       "`assay tracers` shows what works here"));
}

}  // namespace

std::vector<std::string> symbols_that_decide() {
  return {kSymbols.begin(), kSymbols.end()};
}

std::uint32_t uring_submission(const KernelTypes& types) {
  if (const auto id = types.tracepoint("io_uring_submit_req"); id != 0) return id;
  const bool new_form = types.tracepoint("io_uring_local_work_run") != 0;  // since 6.1
  return new_form ? types.tracepoint("io_uring_submit_sqe") : 0;
}

EbpfSupport ebpf_support(const KernelTypes& types) {
  EbpfSupport support{.follows_uring = uring_submission(types) != 0};
  if (try_attaching(BPF_TRACE_FENTRY, types.function(kOpenFunction)) == 0) {
    support.follows_uring = true;
    return support;
  }
  support.mode = EbpfMode::kSyscall;
  return support;
}

std::string ebpf_obstacle() {
  if (const std::string missing = missing_capabilities(); !missing.empty()) {
    return fmt::format(
        "no {}; run as root (sudo assay run …), or: sudo setcap cap_bpf,cap_perfmon+ep assay",
        missing);
  }
  if (::access("/sys/kernel/btf/vmlinux", R_OK) != 0) {
    return "the kernel has no type information: /sys/kernel/btf/vmlinux is missing "
           "(CONFIG_DEBUG_INFO_BTF; Debian 11, Ubuntu 20.10 and newer have it)";
  }
  utsname system{};
  int major = 0;
  int minor = 0;
  ::uname(&system);
  std::sscanf(system.release, "%d.%d", &major, &minor);
  if (major < 5 || (major == 5 && minor < 13)) {
    return fmt::format("Linux {} is too old: following processes needs 5.13", system.release);
  }
  if (lockdown() == "confidentiality") {
    return "kernel lockdown is set to confidentiality: no program may read kernel memory";
  }
  const auto gate = gate_available();
  return gate ? std::string() : gate.error().line();
}

Preflight ebpf_preflight() {
  Preflight out{.tracer = Tracer::kEbpf};
  out.reason = ebpf_obstacle();
  if (!out.reason.empty()) return out;
  const auto support = support_here();
  if (!support) {
    out.reason = support.error().line();
    return out;
  }
  const bool vfs = support->mode == EbpfMode::kVfs;
  out.available = true;
  out.reason = vfs ? "opens are seen inside the kernel's own open"
                   : "opens are seen at the end of system calls";
  utsname system{};
  ::uname(&system);
  out.notes.push_back(fmt::format("Linux {}, lockdown {}", system.release, lockdown()));
  if (!vfs) {
    out.notes.emplace_back(
        "the kernel refuses programs at its functions (fentry): every system call of every process "
        "is slightly slower while a command runs");
  }
  if (!support->follows_uring) {
    out.notes.emplace_back("cannot see: files opened through io_uring (reported as missed)");
  }
  return out;
}

}  // namespace assay::collect
