#include "observe/collect/ebpf/programs.h"

#include <linux/bpf.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "observe/collect/ebpf/bpf_call.h"
#include "observe/collect/ebpf/kernel_types.h"
#include "observe/collect/ebpf/object_file.h"
#include "observe/collect/ebpf/relocation.h"
#include "observe/collect/ebpf/ring.h"
#include "observe/collect/event/project_folder.h"

namespace assay::collect {
namespace {

// The system calls that the BPF program on_sys_exit handles, by number.
struct CallKindRow {
  std::size_t x86_64;  // 0: no such call
  std::size_t i386;
  unsigned kind;
};

constexpr unsigned kOpensByName = kAssayOpens | kAssayQueries;
constexpr unsigned kTellsSize = kAssayQueries | kAssayTellsSize;

constexpr std::array kCallKindRows = std::to_array<CallKindRow>({
    {2, 5, kOpensByName},                          // open
    {257, 295, kOpensByName | kAssayPathSecond},   // openat
    {437, 437, kOpensByName | kAssayPathSecond},   // openat2
    {85, 8, kAssayOpens},                          // creat
    {304, 342, kAssayOpens | kAssayByHandle},      // open_by_handle_at
    {4, 106, kTellsSize},                          // stat
    {6, 107, kTellsSize},                          // lstat
    {0, 195, kTellsSize},                          // stat64
    {0, 196, kTellsSize},                          // lstat64
    {21, 33, kAssayQueries},                       // access
    {89, 85, kAssayQueries},                       // readlink
    {262, 300, kTellsSize | kAssayPathSecond},     // newfstatat, fstatat64
    {332, 383, kTellsSize | kAssayPathSecond},     // statx
    {269, 307, kAssayQueries | kAssayPathSecond},  // faccessat
    {439, 439, kAssayQueries | kAssayPathSecond},  // faccessat2
    {267, 305, kAssayQueries | kAssayPathSecond},  // readlinkat
    {425, 425, kAssayUring},                       // io_uring_setup
    {426, 426, kAssayUring},                       // io_uring_enter
});

void set_call_kinds(assay_constants& constants) {
  for (const CallKindRow& row : kCallKindRows) {
    if (row.x86_64 != 0) constants.calls[0][row.x86_64] = static_cast<__u8>(row.kind);
    if (row.i386 != 0) constants.calls[1][row.i386] = static_cast<__u8>(row.kind);
  }
}

// Programs that each mode has. `learn` is run by the collector, never attached.
bool belongs_to(std::string_view program, EbpfMode mode) {
  return program != "on_file_open" || mode == EbpfMode::kVfs;
}

bool observes_uring(std::string_view program) {
  return program.starts_with("on_uring");
}

std::size_t page_aligned(std::size_t size) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (size + page - 1) / page * page;
}

}  // namespace

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
  BpfMaps maps;
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
    fill_in_addresses(object.shared(), shared_begin, shared_begin, maps, kernel, out.code);
    for (std::uint32_t i = 0; i < object.functions().size(); ++i) {
      out.functions.push_back(
          {.insn_off = static_cast<__u32>(shared_begin) + object.functions()[i].at,
           .type_id = bpf::kFirstFunction + 1 + i});
    }
  }
  fill_in_addresses(program, 0, shared_begin, maps, kernel, out.code);
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
  const std::string& project = project_folder();
  const std::size_t known = std::min(project.size(), sizeof shared().project_word);
  __u64 word = 0;
  __u64 mask = 0;
  std::memcpy(&word, project.data(), known);
  std::memset(&mask, 0xff, known);
  shared().project_word = word;
  shared().project_mask = mask;
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
  const ObjectFile object(object_file_image());
  std::vector<std::string> names = symbols_that_decide();
  const auto add_names = [&](const CodeSection& section) {
    for (std::string& name : names_of_types(section.fields, object.types())) {
      names.push_back(std::move(name));
    }
  };
  add_names(object.shared());
  for (const BpfProgram& program : object.programs()) add_names(program);

  auto loaded = std::make_unique<Loaded>();
  ASSAY_TRY(const KernelTypes kernel, KernelTypes::read(names));
  loaded->support = ebpf_support(kernel);
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
