#include "observe/collect/ebpf/programs.h"

#include <fmt/format.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "observe/collect/ebpf/bpf/object.h"
#include "observe/collect/ebpf/bpf_call.h"
#include "observe/collect/ebpf/call_kinds.h"
#include "observe/collect/ebpf/field_offsets.h"
#include "observe/collect/ebpf/kernel_types.h"
#include "observe/collect/ebpf/object_file.h"
#include "observe/collect/ebpf/ring.h"

namespace assay::collect {
namespace {

// Kernel symbols whose existence decides how programs are loaded.
constexpr const char* kOpenFunction = "security_file_open";
constexpr const char* kCastFunction = "bpf_rdonly_cast";
constexpr std::array kNames = {
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

// Programs that each mode has. `learn` is run by the collector, never attached.
bool belongs_to(std::string_view program, EbpfMode mode) {
  return program != "on_file_open" || mode == EbpfMode::kVfs;
}

bool observes_uring(std::string_view program) {
  return program.starts_with("on_uring");
}

// io_uring's tracepoint for a request that begins, if it has the form that on_uring_submit knows.
// 0 before Linux 6.1, and where io_uring is configured out.
std::uint32_t uring_submission(const KernelTypes& types) {
  if (const auto id = types.tracepoint("io_uring_submit_req"); id != 0) return id;
  const bool new_form = types.tracepoint("io_uring_local_work_run") != 0;  // since 6.1
  return new_form ? types.tracepoint("io_uring_submit_sqe") : 0;
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

// Tests only what decides the mode; other problems are noticed when the programs are loaded.
base::Result<EbpfSupport> support_of(const KernelTypes& types) {
  EbpfSupport support{.follows_uring = uring_submission(types) != 0};
  if (try_attaching(BPF_TRACE_FENTRY, types.function(kOpenFunction)) == 0) {
    support.follows_uring = true;
    return support;
  }
  support.mode = EbpfMode::kSyscall;
  return support;
}

std::size_t page_aligned(std::size_t size) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (size + page - 1) / page * page;
}

}  // namespace

base::Result<EbpfSupport> ebpf_support() {
  ASSAY_TRY(const KernelTypes types, KernelTypes::read({kNames.begin(), kNames.end()}));
  ASSAY_TRY(const EbpfSupport support, support_of(types));
  if (support.mode == EbpfMode::kVfs) return support;
  const int error = try_attaching(BPF_TRACE_RAW_TP, types.tracepoint("sys_exit"));
  if (error == 0) return support;
  return base::fail(base::system_error("ebpf", "the kernel refuses tracing programs", error,
                                       "`assay tracers` shows what works here"));
}

// A program after relocation.
struct EbpfPrograms::ReadyProgram {
  std::string name;
  bpf_prog_type type = BPF_PROG_TYPE_TRACING;
  bpf_attach_type attach_type = BPF_TRACE_RAW_TP;
  std::uint32_t target = 0;
  std::vector<bpf_insn> code;
  std::vector<bpf_func_info> functions;
};

struct EbpfPrograms::Loaded {
  EbpfSupport support;
  base::UniqueFd types;
  std::map<std::string, base::UniqueFd, std::less<>> maps;
  std::vector<base::UniqueFd> programs;
  std::vector<base::UniqueFd> links;
  std::vector<ReadyProgram> uring_programs;  // not loaded yet
  bool follows_uring = false;
  std::optional<MessageRing> ring;
  std::size_t ring_size = 0;
  void* mapped = MAP_FAILED;
  std::size_t mapped_size = 0;

  Loaded() = default;
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  ~Loaded() {
    if (mapped != MAP_FAILED) ::munmap(mapped, mapped_size);
  }
  assay_shared& shared() { return *static_cast<assay_shared*>(mapped); }

  base::Result<void> make_maps(const ObjectFile& object);
  base::Result<void> set_constants(const KernelTypes& kernel);
  base::Result<ReadyProgram> ready(const BpfProgram& program, const ObjectFile& object,
                                   const KernelTypes& kernel) const;
  void fill_in(const CodeSection& section, std::size_t begin, std::size_t shared_begin,
               const KernelTypes& kernel, std::vector<bpf_insn>& code) const;
  base::Result<void> start(const std::vector<ReadyProgram>& programs);
  base::Result<void> map_shared();
  base::Result<void> map_ring();
};

// Each map is made for all programs, also for those that are loaded later.
base::Result<void> EbpfPrograms::Loaded::make_maps(const ObjectFile& object) {
  std::vector<std::string> functions{"program"};
  for (const BpfFunction& function : object.functions()) functions.push_back(function.name);
  ASSAY_TRY(types, bpf::load_types(functions));
  for (BpfMap map : object.maps()) {
    if (map.name == ".bss.shared") map.flags = BPF_F_MMAPABLE;
    if (map.name.starts_with(".rodata")) map.flags = BPF_F_RDONLY_PROG;
    if (map.type == BPF_MAP_TYPE_RINGBUF) ring_size = map.max_entries;
    ASSAY_TRY(base::UniqueFd made, bpf::create_map(map, types.get()));
    maps.emplace(map.name, std::move(made));
  }
  return {};
}

base::Result<void> EbpfPrograms::Loaded::set_constants(const KernelTypes& kernel) {
  const __u32 key = 0;
  assay_constants values{};
  values.can_cast = kernel.function(kCastFunction) != 0;
  values.opens_are_seen_inside = support.mode == EbpfMode::kVfs;
  set_call_kinds(values);
  const int constants = maps.at(".rodata.constants").get();
  ASSAY_TRY_VOID(bpf::write_element(constants, &key, &values));
  return bpf::freeze(constants);
}

// `code` has the section from `begin` on, and the shared functions from `shared_begin` on.
void EbpfPrograms::Loaded::fill_in(const CodeSection& section, std::size_t begin,
                                   std::size_t shared_begin, const KernelTypes& kernel,
                                   std::vector<bpf_insn>& code) const {
  for (const Relocation& address : section.addresses) {
    const std::size_t at = begin + address.at;
    bpf_insn& instruction = code[at];
    const auto distance = static_cast<__s32>(shared_begin + address.offset - at - 1);
    switch (address.kind) {
      case Relocation::Kind::kMap:
        instruction.src_reg = BPF_PSEUDO_MAP_FD;
        instruction.imm = maps.find(address.name)->second.get();
        break;
      case Relocation::Kind::kMapContent:
        instruction.src_reg = BPF_PSEUDO_MAP_VALUE;
        instruction.imm = maps.find(address.name)->second.get();
        code[at + 1].imm = static_cast<__s32>(address.offset);
        break;
      case Relocation::Kind::kFunction:
        instruction.src_reg = BPF_PSEUDO_FUNC;
        instruction.imm = distance;
        break;
      case Relocation::Kind::kCall:
        instruction.src_reg = BPF_PSEUDO_CALL;
        instruction.imm = distance;
        break;
      case Relocation::Kind::kKernelFunction:
        if (const auto id = kernel.function(address.name); id != 0) {
          instruction.src_reg = BPF_PSEUDO_KFUNC_CALL;
          instruction.imm = static_cast<__s32>(id);
        } else {
          instruction = impossible_instruction();
        }
        break;
    }
  }
}

base::Result<EbpfPrograms::ReadyProgram> EbpfPrograms::Loaded::ready(
    const BpfProgram& program, const ObjectFile& object, const KernelTypes& kernel) const {
  ReadyProgram out{.name = program.name, .code = program.instructions};
  const std::string_view target =
      std::string_view(program.section)
          .substr(std::min(program.section.size(), program.section.find('/') + 1));
  if (program.section == "raw_tp") {
    out.type = BPF_PROG_TYPE_RAW_TRACEPOINT;
    out.attach_type = {};
  } else if (program.section.starts_with("fentry/")) {
    out.attach_type = BPF_TRACE_FENTRY;
    out.target = kernel.function(target);
  } else {
    out.target =
        program.name == "on_uring_submit" ? uring_submission(kernel) : kernel.tracepoint(target);
  }
  const std::size_t shared_begin = out.code.size();
  ASSAY_TRY_VOID(fill_in_fields(program.fields, object.types(), kernel, out.code));
  out.functions.push_back({.insn_off = 0, .type_id = bpf::kFirstFunction});
  if (program.uses_shared()) {
    std::vector<bpf_insn> shared = object.shared().instructions;
    ASSAY_TRY_VOID(fill_in_fields(object.shared().fields, object.types(), kernel, shared));
    out.code.insert(out.code.end(), shared.begin(), shared.end());
    fill_in(object.shared(), shared_begin, shared_begin, kernel, out.code);
    for (std::uint32_t i = 0; i < object.functions().size(); ++i) {
      out.functions.push_back(
          {.insn_off = static_cast<__u32>(shared_begin) + object.functions()[i].at,
           .type_id = bpf::kFirstFunction + 1 + i});
    }
  }
  fill_in(program, 0, shared_begin, kernel, out.code);
  return out;
}

// The order of attaching does not matter: no process is followed yet, or none has a ring.
base::Result<void> EbpfPrograms::Loaded::start(const std::vector<ReadyProgram>& ready_programs) {
  for (const ReadyProgram& program : ready_programs) {
    ASSAY_TRY(base::UniqueFd loaded, bpf::load_program({.name = program.name,
                                                        .type = program.type,
                                                        .attach_type = program.attach_type,
                                                        .target = program.target,
                                                        .code = program.code,
                                                        .types = types.get(),
                                                        .functions = program.functions}));
    if (program.type == BPF_PROG_TYPE_RAW_TRACEPOINT) {
      ASSAY_TRY_VOID(bpf::run_once(loaded.get()));
      continue;
    }
    ASSAY_TRY(base::UniqueFd link, bpf::attach(loaded.get()));
    links.push_back(std::move(link));
    programs.push_back(std::move(loaded));
  }
  return {};
}

base::Result<void> EbpfPrograms::Loaded::map_shared() {
  mapped_size = page_aligned(sizeof(assay_shared));
  mapped = ::mmap(nullptr, mapped_size, PROT_READ | PROT_WRITE, MAP_SHARED,
                  maps.at(".bss.shared").get(), 0);
  if (mapped == MAP_FAILED) {
    return base::fail(base::system_error("ebpf", "cannot map the programs' memory", errno));
  }
  std::uint64_t seed = 0;
  if (::getrandom(&seed, sizeof seed, 0) != sizeof seed) {
    seed = reinterpret_cast<std::uintptr_t>(&seed);
  }
  shared().seed = seed;
  return {};
}

base::Result<void> EbpfPrograms::Loaded::map_ring() {
  ASSAY_TRY(MessageRing mapped_ring, MessageRing::map(maps.at("messages").get(), ring_size));
  ring.emplace(std::move(mapped_ring));
  return {};
}

EbpfPrograms::EbpfPrograms(std::unique_ptr<Loaded> loaded) : loaded_(std::move(loaded)) {}
EbpfPrograms::EbpfPrograms(EbpfPrograms&&) noexcept = default;
EbpfPrograms::~EbpfPrograms() = default;

base::Result<EbpfPrograms> EbpfPrograms::load() {
  const ObjectFile object(bpf_object_bytes());
  std::vector<std::string> names(kNames.begin(), kNames.end());
  const auto add_names = [&](const CodeSection& section) {
    for (std::string& name : names_of_types(section.fields, object.types())) {
      names.push_back(std::move(name));
    }
  };
  add_names(object.shared());
  for (const BpfProgram& program : object.programs()) add_names(program);

  auto loaded = std::make_unique<Loaded>();
  ASSAY_TRY(const KernelTypes kernel, KernelTypes::read(names));
  ASSAY_TRY(loaded->support, support_of(kernel));
  ASSAY_TRY_VOID(loaded->make_maps(object));
  ASSAY_TRY_VOID(loaded->set_constants(kernel));
  ASSAY_TRY_VOID(loaded->map_shared());
  std::vector<ReadyProgram> at_once;
  for (const BpfProgram& program : object.programs()) {
    const EbpfMode mode = loaded->support.mode;
    if (!belongs_to(program.name, mode)) continue;
    if (program.name == "on_uring_complete" && mode == EbpfMode::kVfs) continue;
    if (observes_uring(program.name) && uring_submission(kernel) == 0) continue;
    ASSAY_TRY(ReadyProgram ready, loaded->ready(program, object, kernel));
    (observes_uring(program.name) ? loaded->uring_programs : at_once).push_back(std::move(ready));
  }
  ASSAY_TRY_VOID(loaded->start(at_once));
  return EbpfPrograms(std::move(loaded));
}

void EbpfPrograms::follow_uring() {
  if (std::exchange(loaded_->follows_uring, true) || loaded_->uring_programs.empty()) return;
  const auto programs = std::exchange(loaded_->uring_programs, {});
  if (!loaded_->start(programs)) loaded_->support.follows_uring = false;
}

bool EbpfPrograms::follows_uring() const {
  return loaded_->support.follows_uring && loaded_->follows_uring;
}

base::Result<void> EbpfPrograms::adopt(pid_t process) {
  // Mapped only after the fork: otherwise the ring would count towards the command's peak memory.
  ASSAY_TRY_VOID(loaded_->map_ring());
  const base::UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  if (!pidfd.valid()) return base::fail(base::system_error("ebpf", "pidfd_open", errno));
  struct {
    __u32 id;
    __u32 ended;
  } member{1, 0};
  shared().members = 1;
  shared().live = 1;
  const int key = pidfd.get();
  return bpf::write_element(loaded_->maps.at("members").get(), &key, &member);
}

void EbpfPrograms::stop() {
  loaded_->links.clear();
}

void EbpfPrograms::release_ring() {
  loaded_->ring.reset();
}

int EbpfPrograms::descriptor() const {
  return loaded_->maps.at("messages").get();
}

std::size_t EbpfPrograms::take(const Receiver& receive, std::size_t most) {
  return loaded_->ring->take(
      [&](std::span<const std::byte> bytes) {
        const auto& message = *reinterpret_cast<const assay_message*>(bytes.data());
        const char* text = reinterpret_cast<const char*>(bytes.data()) + sizeof message;
        if (bytes.size() < sizeof message + message.path_length + message.other_length) return;
        receive(message, {text, message.path_length},
                {text + message.path_length, message.other_length});
      },
      most);
}

volatile assay_shared& EbpfPrograms::shared() {
  return loaded_->shared();
}

const EbpfSupport& EbpfPrograms::support() const {
  return loaded_->support;
}

std::uint64_t EbpfPrograms::skipped_runs() const {
  std::uint64_t skipped = 0;
  for (const base::UniqueFd& program : loaded_->programs) {
    skipped += bpf::skipped_runs(program.get());
  }
  return skipped;
}

}  // namespace assay::collect
