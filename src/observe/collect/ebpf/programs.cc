#include "observe/collect/ebpf/programs.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "observe/collect/ebpf/bpf/object.h"

namespace assay::collect {
namespace {

// libbpf explains itself line by line; the first warning is what went wrong.
std::string& first_warning() {
  static thread_local std::string text;
  return text;
}

int keep_first_warning(libbpf_print_level level, const char* format, std::va_list arguments) {
  if (level != LIBBPF_WARN || !first_warning().empty()) return 0;
  std::array<char, 400> line{};
  const int length = std::vsnprintf(line.data(), line.size(), format, arguments);
  std::string_view text(line.data());
  text = text.substr(0, text.find('\n'));
  constexpr std::string_view kPrefix = "libbpf: ";
  if (text.starts_with(kPrefix)) text.remove_prefix(kPrefix.size());
  first_warning() = text;
  return length;
}

void listen_to_libbpf() {
  first_warning().clear();
  libbpf_set_print(keep_first_warning);
}

base::Error refused(std::string_view what, int error) {
  std::string text = std::string(what);
  if (!first_warning().empty()) text += fmt::format(" ({})", first_warning());
  return base::system_error("ebpf", text, error < 0 ? -error : error,
                            "`assay tracers` shows what works here");
}

// Programs that each mode leaves out. `learn` is run by the collector, never attached.
bool belongs_to(std::string_view program, EbpfMode mode, bool has_uring) {
  if (program == "on_file_open") return mode == EbpfMode::kVfs;
  if (program == "on_sys_exit") return mode == EbpfMode::kSyscall;
  if (program == "on_uring_complete") return mode == EbpfMode::kSyscall && has_uring;
  if (program == "on_uring_submit") return has_uring;
  return true;
}

// io_uring's tracepoint for a request that begins, if it has the form that on_uring_submit knows.
// Nothing before Linux 6.1, and where io_uring is configured out.
const char* uring_submission(const KernelTypes& types) {
  if (types.has("btf_trace_io_uring_submit_req")) return "io_uring_submit_req";
  const bool new_form = types.has("btf_trace_io_uring_local_work_run");  // since 6.1
  if (new_form && types.has("btf_trace_io_uring_submit_sqe")) return "io_uring_submit_sqe";
  return nullptr;
}

std::size_t page_aligned(std::size_t size) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (size + page - 1) / page * page;
}

// 0, or the error of attaching a program that does nothing.
int try_attaching(bpf_attach_type type, std::uint32_t target) {
  // return 0
  const std::array<bpf_insn, 2> program{{
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
      {.code = BPF_JMP | BPF_EXIT},
  }};
  LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = type, .attach_btf_id = target);
  const base::UniqueFd loaded(bpf_prog_load(BPF_PROG_TYPE_TRACING, "assay_probe", "GPL",
                                            program.data(), program.size(), &options));
  if (!loaded.valid()) return errno;
  const base::UniqueFd attached(bpf_raw_tracepoint_open(nullptr, loaded.get()));
  return attached.valid() ? 0 : errno;
}

}  // namespace

base::Result<EbpfMode> ebpf_mode(const KernelTypes& types) {
  listen_to_libbpf();
  if (try_attaching(BPF_TRACE_FENTRY, types.function("security_file_open")) == 0) {
    return EbpfMode::kVfs;
  }
  const int error = try_attaching(BPF_TRACE_RAW_TP, types.tracepoint("sys_exit"));
  if (error == 0) return EbpfMode::kSyscall;
  return base::fail(refused("the kernel refuses tracing programs", error));
}

bool follows_uring(const KernelTypes& types) {
  return uring_submission(types) != nullptr;
}

struct EbpfPrograms::Loaded {
  struct CloseObject {
    void operator()(bpf_object* object) const { bpf_object__close(object); }
  };
  struct DestroyLink {
    void operator()(bpf_link* link) const { bpf_link__destroy(link); }
  };
  struct FreeRing {
    void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
  };

  std::unique_ptr<bpf_object, CloseObject> object;
  std::vector<std::unique_ptr<bpf_link, DestroyLink>> links;
  std::unique_ptr<ring_buffer, FreeRing> ring;
  std::vector<int> programs;  // descriptors, owned by the object
  int members = -1;           // descriptor, owned by the object
  void* mapped = MAP_FAILED;
  std::size_t mapped_size = 0;
  EbpfMode mode = EbpfMode::kVfs;
  bool follows_uring = false;

  const Receiver* receive = nullptr;
  std::size_t left = 0;
  std::size_t taken = 0;

  Loaded() = default;
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  ~Loaded() {
    if (mapped != MAP_FAILED) ::munmap(mapped, mapped_size);
  }
  assay_shared& shared() { return *static_cast<assay_shared*>(mapped); }

  base::Result<void> open(const KernelTypes& types);
  base::Result<void> map_shared();
  base::Result<void> learn();
  base::Result<void> attach();
  base::Result<void> map_ring();
  static int on_message(void* context, void* data, std::size_t size);
};

base::Result<void> EbpfPrograms::Loaded::open(const KernelTypes& types) {
  const std::span<const std::byte> bytes = bpf_object_bytes();
  LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "assay_files");
  object.reset(bpf_object__open_mem(bytes.data(), bytes.size(), &options));
  if (!object) return base::fail(refused("cannot read the programs", errno));
  const char* submission = uring_submission(types);
  const bool has_uring = submission != nullptr;
  if (has_uring) {
    bpf_program* program = bpf_object__find_program_by_name(object.get(), "on_uring_submit");
    if (const int error = bpf_program__set_attach_target(program, 0, submission); error != 0) {
      return base::fail(refused("cannot watch io_uring", error));
    }
  }
  follows_uring = has_uring || mode == EbpfMode::kVfs;
  const bool can_cast = types.has("bpf_rdonly_cast");  // the only one of bpf/field.h's flags
  bpf_map* flags = bpf_object__find_map_by_name(object.get(), ".rodata.flags");
  if (const int error = bpf_map__set_initial_value(flags, &can_cast, sizeof can_cast); error != 0) {
    return base::fail(refused("cannot set the programs' flags", error));
  }
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object.get()) {
    bpf_program__set_autoload(program, belongs_to(bpf_program__name(program), mode, has_uring));
  }
  if (const int error = bpf_object__load(object.get()); error != 0) {
    return base::fail(refused("the kernel refused the programs", error));
  }
  members = bpf_object__find_map_fd_by_name(object.get(), "members");
  return {};
}

base::Result<void> EbpfPrograms::Loaded::map_shared() {
  const int map = bpf_object__find_map_fd_by_name(object.get(), ".bss.shared");
  mapped_size = page_aligned(sizeof(assay_shared));
  mapped = ::mmap(nullptr, mapped_size, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
  if (mapped == MAP_FAILED) return base::fail(refused("cannot map the programs' memory", errno));
  std::uint64_t seed = 0;
  if (::getrandom(&seed, sizeof seed, 0) != sizeof seed) {
    seed = reinterpret_cast<std::uintptr_t>(&seed);
  }
  shared().seed = seed;
  return {};
}

base::Result<void> EbpfPrograms::Loaded::learn() {
  const bpf_program* program = bpf_object__find_program_by_name(object.get(), "learn");
  LIBBPF_OPTS(bpf_test_run_opts, options);
  if (const int error = bpf_prog_test_run_opts(bpf_program__fd(program), &options); error != 0) {
    return base::fail(refused("cannot run a program", error));
  }
  return {};
}

base::Result<void> EbpfPrograms::Loaded::attach() {
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object.get()) {
    if (!bpf_program__autoload(program)) continue;
    const std::string_view name = bpf_program__name(program);
    if (name == "learn") continue;
    bpf_link* link = bpf_program__attach(program);
    if (link == nullptr) {
      return base::fail(refused(fmt::format("cannot attach {}", name), errno));
    }
    links.emplace_back(link);
    programs.push_back(bpf_program__fd(program));
  }
  return {};
}

base::Result<void> EbpfPrograms::Loaded::map_ring() {
  const int messages = bpf_object__find_map_fd_by_name(object.get(), "messages");
  ring.reset(ring_buffer__new(messages, on_message, this, nullptr));
  if (!ring) return base::fail(refused("cannot map the ring buffer", errno));
  return {};
}

int EbpfPrograms::Loaded::on_message(void* context, void* data, std::size_t size) {
  auto& self = *static_cast<Loaded*>(context);
  const auto& message = *static_cast<const assay_message*>(data);
  const char* text = static_cast<const char*>(data) + sizeof message;
  ++self.taken;
  if (size >= sizeof message + message.path_length + message.other_length) {
    (*self.receive)(message, {text, message.path_length},
                    {text + message.path_length, message.other_length});
  }
  return --self.left == 0 ? -ECANCELED : 0;  // a negative result ends the round, after this message
}

EbpfPrograms::EbpfPrograms(std::unique_ptr<Loaded> loaded) : loaded_(std::move(loaded)) {}
EbpfPrograms::EbpfPrograms(EbpfPrograms&&) noexcept = default;
EbpfPrograms::~EbpfPrograms() = default;

base::Result<EbpfPrograms> EbpfPrograms::load(EbpfMode mode, const KernelTypes& types) {
  listen_to_libbpf();
  auto loaded = std::make_unique<Loaded>();
  loaded->mode = mode;
  ASSAY_TRY_VOID(loaded->open(types));
  ASSAY_TRY_VOID(loaded->map_shared());
  ASSAY_TRY_VOID(loaded->learn());
  ASSAY_TRY_VOID(loaded->attach());
  return EbpfPrograms(std::move(loaded));
}

base::Result<void> EbpfPrograms::adopt(pid_t process) {
  // Not before the fork: the command would begin with the ring in its memory, and the kernel counts
  // that as the most it ever had, whatever it does afterwards.
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
  if (const int error = bpf_map_update_elem(loaded_->members, &key, &member, BPF_ANY); error != 0) {
    return base::fail(base::system_error("ebpf", "cannot follow the command", -error));
  }
  return {};
}

void EbpfPrograms::stop() {
  loaded_->links.clear();
}

void EbpfPrograms::release_ring() {
  loaded_->ring.reset();
}

int EbpfPrograms::descriptor() const {
  return ring_buffer__epoll_fd(loaded_->ring.get());
}

std::size_t EbpfPrograms::take(const Receiver& receive, std::size_t most) {
  loaded_->receive = &receive;
  loaded_->left = most;
  loaded_->taken = 0;
  ring_buffer__consume(loaded_->ring.get());
  return loaded_->taken;
}

volatile assay_shared& EbpfPrograms::shared() {
  return loaded_->shared();
}

EbpfMode EbpfPrograms::mode() const {
  return loaded_->mode;
}

bool EbpfPrograms::follows_uring() const {
  return loaded_->follows_uring;
}

std::uint64_t EbpfPrograms::skipped_runs() const {
  std::uint64_t skipped = 0;
  for (const int program : loaded_->programs) {
    bpf_prog_info info{};
    __u32 size = sizeof info;
    if (bpf_obj_get_info_by_fd(program, &info, &size) == 0) skipped += info.recursion_misses;
  }
  return skipped;
}

}  // namespace assay::collect
