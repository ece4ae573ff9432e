#include "observe/collect/ebpf/relocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <limits>
#include <optional>

namespace assay::collect {
namespace {

// Variants of a structure for other kernel versions have a suffix.
std::string_view without_variant(std::string_view name) {
  const std::size_t at = name.find("___");
  return at == std::string_view::npos ? name : name.substr(0, at);
}

// "0:2:1" -> {0, 2, 1}
std::vector<std::uint32_t> numbers_of_path(std::string_view text) {
  std::vector<std::uint32_t> numbers;
  while (!text.empty()) {
    std::uint32_t number = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), number).ptr;
    numbers.push_back(number);
    text.remove_prefix(std::min(text.size(), static_cast<std::size_t>(end - text.data()) + 1));
  }
  return numbers;
}

// One step towards a field: by name into a structure, or by index into an array.
struct FieldAccess {
  std::string_view name;
  std::uint32_t index = 0;
};

struct FieldOffset {
  std::uint64_t offset = 0;  // in bytes
  std::uint64_t size = 0;
};

struct WantedField {
  std::vector<FieldAccess> accesses;
  std::uint64_t size = 0;  // as the compiler knew it
};

// The field that `path`, a list of member indices, denotes in our own types. Unnamed members are
// skipped.
std::optional<WantedField> wanted(const TypeTable& ours, std::uint32_t type,
                                  std::string_view path) {
  const std::vector<std::uint32_t> numbers = numbers_of_path(path);
  if (numbers.empty() || numbers.front() != 0) return std::nullopt;
  WantedField field;
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    const btf_type* at = ours.find(ours.unqualified(type));
    if (at == nullptr) return std::nullopt;
    if (kind_of(*at) == BTF_KIND_ARRAY) {
      field.accesses.push_back({.name = {}, .index = numbers[i]});
      type = ours.array(*at).type;
      continue;
    }
    if (!is_composite(*at) || numbers[i] >= ours.members(*at).size()) return std::nullopt;
    const btf_member& member = ours.members(*at)[numbers[i]];
    if (const std::string_view name = ours.text(member.name_off); !name.empty()) {
      field.accesses.push_back({.name = name});
    }
    type = member.type;
  }
  field.size = ours.size_of(type);
  return field;
}

// A member by its name, also inside members that have none. Adds to `bits`.
std::optional<std::uint32_t> member_type(const TypeTable& kernel, std::uint32_t type,
                                         std::string_view name, std::uint64_t& bits, int depth) {
  constexpr int kDeepest = 8;
  const btf_type* at = kernel.find(kernel.unqualified(type));
  if (at == nullptr || !is_composite(*at) || depth > kDeepest) return std::nullopt;
  const bool has_widths = BTF_INFO_KFLAG(at->info);
  for (const btf_member& member : kernel.members(*at)) {
    const std::uint64_t offset = has_widths ? BTF_MEMBER_BIT_OFFSET(member.offset) : member.offset;
    const std::string_view own = kernel.text(member.name_off);
    if (own == name) {
      if (has_widths && BTF_MEMBER_BITFIELD_SIZE(member.offset) != 0) return std::nullopt;
      bits += offset;
      return member.type;
    }
    if (!own.empty()) continue;
    std::uint64_t inside = bits + offset;
    if (const auto found = member_type(kernel, member.type, name, inside, depth + 1)) {
      bits = inside;
      return found;
    }
  }
  return std::nullopt;
}

std::optional<FieldOffset> offset_in(const TypeTable& kernel, std::uint32_t type,
                                     const WantedField& field) {
  std::uint64_t bits = 0;
  for (const FieldAccess& access : field.accesses) {
    if (!access.name.empty()) {
      const auto next = member_type(kernel, type, access.name, bits, 0);
      if (!next) return std::nullopt;
      type = *next;
      continue;
    }
    const btf_type* at = kernel.find(kernel.unqualified(type));
    if (at == nullptr || kind_of(*at) != BTF_KIND_ARRAY) return std::nullopt;
    type = kernel.array(*at).type;
    bits += 8 * access.index * kernel.size_of(type);
  }
  return FieldOffset{bits / 8, kernel.size_of(type)};
}

// The value for one instruction; nothing if the kernel has no such field or type.
struct FieldValue {
  std::optional<std::uint64_t> number;
  bool size_fits = true;  // of a field, for instructions that read it directly
  bool ambiguous = false;
};

void add(FieldValue& answer, std::uint64_t number) {
  answer.ambiguous = answer.ambiguous || (answer.number && *answer.number != number);
  answer.number = number;
}

FieldValue value_for_access(const bpf_core_relo& field, const TypeTable& ours,
                            const KernelTypes& kernel) {
  FieldValue answer;
  const btf_type& type = *ours.find(ours.unqualified(field.type_id));
  const auto numbers = numbers_of_path(ours.text(field.access_str_off));
  if (numbers.empty() || numbers.front() >= ours.values(type).size()) return answer;
  const std::string_view name =
      without_variant(ours.text(ours.values(type)[numbers.front()].name_off));
  for (const std::uint32_t id : kernel.all(BTF_KIND_ENUM, without_variant(ours.name(type)))) {
    for (const btf_enum& value : kernel.table().values(*kernel.table().find(id))) {
      if (kernel.table().text(value.name_off) == name) add(answer, 1);
    }
  }
  if (!answer.number) answer.number = 0;
  return answer;
}

FieldValue value_for(const bpf_core_relo& field, const TypeTable& ours, const KernelTypes& kernel) {
  if (field.kind == BPF_CORE_ENUMVAL_EXISTS) return value_for_access(field, ours, kernel);
  FieldValue answer;
  const btf_type* type = ours.find(ours.unqualified(field.type_id));
  if (type == nullptr) return answer;
  const auto wanted_field = wanted(ours, field.type_id, ours.text(field.access_str_off));
  bool exists = false;
  for (const std::uint32_t id : kernel.all(kind_of(*type), without_variant(ours.name(*type)))) {
    switch (field.kind) {
      case BPF_CORE_TYPE_ID_TARGET:
        add(answer, id);
        break;
      case BPF_CORE_TYPE_SIZE:
        add(answer, kernel.table().size_of(id));
        break;
      case BPF_CORE_FIELD_BYTE_OFFSET:
      case BPF_CORE_FIELD_BYTE_SIZE:
      case BPF_CORE_FIELD_EXISTS: {
        if (!wanted_field) break;
        const auto place = offset_in(kernel.table(), id, *wanted_field);
        if (!place) break;
        exists = true;
        if (field.kind == BPF_CORE_FIELD_BYTE_SIZE) add(answer, place->size);
        if (field.kind != BPF_CORE_FIELD_BYTE_OFFSET) break;
        add(answer, place->offset);
        answer.size_fits = answer.size_fits && place->size == wanted_field->size;
        break;
      }
      default:
        break;
    }
  }
  if (field.kind == BPF_CORE_FIELD_EXISTS) answer.number = exists ? 1 : 0;
  return answer;
}

base::Error unusable(const bpf_core_relo& field, const TypeTable& ours, std::string_view why) {
  const btf_type* type = ours.find(ours.unqualified(field.type_id));
  return base::unfit_error(
      "ebpf",
      fmt::format("the kernel's struct {} {}",
                  type == nullptr ? "?" : without_variant(ours.name(*type)), why),
      "`assay tracers` shows what works here");
}

// The verifier rejects it: for fields and functions that the kernel does not have.
bpf_insn impossible_instruction() {
  constexpr int kNoHelper = 0xbad'2310;
  return {.code = BPF_JMP | BPF_CALL, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = kNoHelper};
}

}  // namespace

std::vector<std::string> names_of_types(std::span<const bpf_core_relo> fields,
                                        const TypeTable& ours) {
  std::vector<std::string> names;
  for (const bpf_core_relo& field : fields) {
    if (const btf_type* type = ours.find(ours.unqualified(field.type_id))) {
      names.emplace_back(without_variant(ours.name(*type)));
    }
  }
  return names;
}

base::Result<void> fill_in_fields(std::span<const bpf_core_relo> fields, const TypeTable& ours,
                                  const KernelTypes& kernel, std::span<bpf_insn> code) {
  for (const bpf_core_relo& field : fields) {
    bpf_insn& instruction = code[field.insn_off / sizeof(bpf_insn)];
    const bool wide = instruction.code == (BPF_LD | BPF_IMM | BPF_DW);
    const int kind = BPF_CLASS(instruction.code);
    const bool number = wide || kind == BPF_ALU || kind == BPF_ALU64;
    const FieldValue answer = value_for(field, ours, kernel);
    if (answer.ambiguous) return base::fail(unusable(field, ours, "has several forms"));
    if (!answer.number) {
      instruction = impossible_instruction();
      if (wide) (&instruction)[1] = impossible_instruction();
    } else if (wide) {
      instruction.imm = static_cast<__s32>(*answer.number);
      (&instruction)[1].imm = static_cast<__s32>(*answer.number >> 32U);
    } else if (*answer.number > std::numeric_limits<__s16>::max() && !number) {
      return base::fail(unusable(field, ours, "is too large"));
    } else if (number) {
      instruction.imm = static_cast<__s32>(*answer.number);
    } else if (!answer.size_fits) {
      return base::fail(unusable(field, ours, "has a field of another size"));
    } else {
      instruction.off = static_cast<__s16>(*answer.number);
    }
  }
  return {};
}

void fill_in_addresses(const CodeSection& section, std::size_t begin, std::size_t shared_begin,
                       const BpfMaps& maps, const KernelTypes& kernel, std::span<bpf_insn> code) {
  for (const BpfRelocation& address : section.addresses) {
    const std::size_t at = begin + address.at;
    bpf_insn& instruction = code[at];
    const auto distance = static_cast<__s32>(shared_begin + address.offset - at - 1);
    switch (address.kind) {
      case BpfRelocation::Kind::kMap:
        instruction.src_reg = BPF_PSEUDO_MAP_FD;
        instruction.imm = maps.find(address.name)->second.get();
        break;
      case BpfRelocation::Kind::kMapContent:
        instruction.src_reg = BPF_PSEUDO_MAP_VALUE;
        instruction.imm = maps.find(address.name)->second.get();
        code[at + 1].imm = static_cast<__s32>(address.offset);
        break;
      case BpfRelocation::Kind::kFunction:
        instruction.src_reg = BPF_PSEUDO_FUNC;
        instruction.imm = distance;
        break;
      case BpfRelocation::Kind::kCall:
        instruction.src_reg = BPF_PSEUDO_CALL;
        instruction.imm = distance;
        break;
      case BpfRelocation::Kind::kKernelFunction:
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

}  // namespace assay::collect
