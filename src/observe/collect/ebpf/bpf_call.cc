#include "observe/collect/ebpf/bpf_call.h"

#include <fmt/format.h>
#include <linux/btf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

namespace assay::collect::bpf {
namespace {

long call(bpf_cmd command, bpf_attr& attributes) {
  return ::syscall(SYS_bpf, command, &attributes, sizeof attributes);
}

__u64 address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

void set_name(char (&to)[BPF_OBJ_NAME_LEN], std::string_view name) {
  name.copy(to, sizeof to - 1);
  for (char& letter : to) {
    if (letter == '.') letter = '_';
  }
}

base::Error refused(std::string_view what, int error) {
  return base::system_error("ebpf", what, error, "`assay tracers` shows what works here");
}

base::Result<base::UniqueFd> descriptor(long result, std::string_view what) {
  if (result < 0) return base::fail(refused(what, errno));
  return base::UniqueFd(static_cast<int>(result));
}

}  // namespace

base::Result<base::UniqueFd> create_map(const BpfMap& map, int types) {
  bpf_attr attributes{};
  attributes.map_type = map.type;
  attributes.key_size = map.key_size;
  attributes.value_size = map.value_size;
  attributes.max_entries = map.max_entries;
  attributes.map_flags = map.flags;
  set_name(attributes.map_name, map.name);
  if (map.type == BPF_MAP_TYPE_TASK_STORAGE) {
    attributes.btf_fd = static_cast<__u32>(types);
    attributes.btf_key_type_id = kFourBytes;
    attributes.btf_value_type_id = kEightBytes;
  }
  return descriptor(call(BPF_MAP_CREATE, attributes), fmt::format("cannot make {}", map.name));
}

base::Result<void> write_element(int map, const void* key, const void* value) {
  bpf_attr attributes{};
  attributes.map_fd = static_cast<__u32>(map);
  attributes.key = address(key);
  attributes.value = address(value);
  if (call(BPF_MAP_UPDATE_ELEM, attributes) == 0) return {};
  return base::fail(refused("cannot write to the programs' memory", errno));
}

base::Result<void> freeze(int map) {
  bpf_attr attributes{};
  attributes.map_fd = static_cast<__u32>(map);
  if (call(BPF_MAP_FREEZE, attributes) == 0) return {};
  return base::fail(refused("cannot freeze the programs' constants", errno));
}

base::Result<base::UniqueFd> load_types(std::span<const std::string> functions) {
  std::vector<__u32> types;
  std::string names(1, '\0');
  const auto add = [&](std::string_view name, unsigned kind, __u32 size_or_type) {
    types.push_back(name.empty() ? 0 : static_cast<__u32>(names.size()));
    types.push_back(kind << 24U);
    types.push_back(size_or_type);
    if (!name.empty()) names.append(name).push_back('\0');
  };
  add("int", BTF_KIND_INT, 4);
  types.push_back(BTF_INT_SIGNED << 24U | 32);
  add("long", BTF_KIND_INT, 8);
  types.push_back(BTF_INT_SIGNED << 24U | 64);
  add("", BTF_KIND_FUNC_PROTO, kFourBytes);
  for (const std::string& function : functions) {
    add(function, BTF_KIND_FUNC, kFirstFunction - 1);  // BTF_FUNC_STATIC is 0
  }
  const auto size = static_cast<__u32>(types.size() * sizeof types[0]);
  btf_header header{};
  header.magic = BTF_MAGIC;
  header.version = 1;
  header.hdr_len = sizeof header;
  header.type_len = size;
  header.str_off = size;
  header.str_len = static_cast<__u32>(names.size());
  std::string data(reinterpret_cast<const char*>(&header), sizeof header);
  data.append(reinterpret_cast<const char*>(types.data()), size).append(names);
  bpf_attr attributes{};
  attributes.btf = address(data.data());
  attributes.btf_size = static_cast<__u32>(data.size());
  return descriptor(call(BPF_BTF_LOAD, attributes), "the kernel refused the programs' types");
}

base::Result<base::UniqueFd> load_program(const ProgramToLoad& program) {
  bpf_attr attributes{};
  attributes.prog_type = program.type;
  attributes.expected_attach_type = program.attach_type;
  attributes.attach_btf_id = program.target;
  attributes.insns = address(program.code.data());
  attributes.insn_cnt = static_cast<__u32>(program.code.size());
  attributes.license = address("GPL");
  set_name(attributes.prog_name, program.name);
  if (!program.functions.empty()) {
    attributes.prog_btf_fd = static_cast<__u32>(program.types);
    attributes.func_info = address(program.functions.data());
    attributes.func_info_cnt = static_cast<__u32>(program.functions.size());
    attributes.func_info_rec_size = sizeof(bpf_func_info);
  }
  const long loaded = call(BPF_PROG_LOAD, attributes);
  if (loaded >= 0) return base::UniqueFd(static_cast<int>(loaded));
  const int error = errno;
  // Loads once more for the verifier's log, whose last lines give the reason.
  std::vector<char> log(std::size_t{1} << 20U);
  attributes.log_buf = address(log.data());
  attributes.log_size = static_cast<__u32>(log.size());
  attributes.log_level = 1;
  if (const long again = call(BPF_PROG_LOAD, attributes); again >= 0) {
    return base::UniqueFd(static_cast<int>(again));
  }
  std::string_view text(log.data());
  const std::size_t summary = text.rfind("processed ");
  if (summary != std::string_view::npos) text = text.substr(0, summary);
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  text = text.substr(text.rfind('\n') + 1);
  return base::fail(refused(fmt::format("the kernel refused the program {}{}{}{}", program.name,
                                        text.empty() ? "" : " (", text, text.empty() ? "" : ")"),
                            error));
}

base::Result<base::UniqueFd> attach(int program) {
  bpf_attr attributes{};
  attributes.raw_tracepoint.prog_fd = static_cast<__u32>(program);
  return descriptor(call(BPF_RAW_TRACEPOINT_OPEN, attributes), "cannot attach a program");
}

base::Result<void> run_once(int program) {
  bpf_attr attributes{};
  attributes.test.prog_fd = static_cast<__u32>(program);
  if (call(BPF_PROG_TEST_RUN, attributes) == 0) return {};
  return base::fail(refused("cannot run a program", errno));
}

std::uint64_t skipped_runs(int program) {
  bpf_prog_info info{};
  bpf_attr attributes{};
  attributes.info.bpf_fd = static_cast<__u32>(program);
  attributes.info.info_len = sizeof info;
  attributes.info.info = address(&info);
  return call(BPF_OBJ_GET_INFO_BY_FD, attributes) == 0 ? info.recursion_misses : 0;
}

}  // namespace assay::collect::bpf
