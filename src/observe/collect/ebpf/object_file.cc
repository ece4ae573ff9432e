#include "observe/collect/ebpf/object_file.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace assay::collect {
namespace {

// Newer than Debian 12's elf.h.
constexpr std::uint32_t kRelocateAddress = 1;  // R_BPF_64_64
constexpr std::uint32_t kRelocateCall = 10;    // R_BPF_64_32

constexpr std::string_view kSharedSection = ".text";
constexpr std::string_view kMapsSection = ".maps";

// The beginning of .BTF.ext (linux/btf.h does not have it).
struct ExtraTypesHeader {
  __u16 magic;
  __u8 version;
  __u8 flags;
  __u32 header_length;
  __u32 functions_at, functions_length;
  __u32 lines_at, lines_length;
  __u32 fields_at, fields_length;
};

template <typename T>
const T& as(std::string_view data, std::size_t at = 0) {
  ASSAY_CHECK(at + sizeof(T) <= data.size(), "the BPF object is whole");
  return *reinterpret_cast<const T*>(data.data() + at);
}

template <typename T>
std::span<const T> table(std::string_view data) {
  return {reinterpret_cast<const T*>(data.data()), data.size() / sizeof(T)};
}

}  // namespace

bool BpfProgram::uses_shared() const {
  return std::ranges::any_of(addresses, [](const BpfRelocation& address) {
    return address.kind == BpfRelocation::Kind::kCall ||
           address.kind == BpfRelocation::Kind::kFunction;
  });
}

class ObjectFile::Reader {
 public:
  Reader(ObjectFile& object, std::span<const std::byte> image)
      : object_(object),
        image_(reinterpret_cast<const char*>(image.data()), image.size()),
        sections_(table<Elf64_Shdr>(image_.substr(as<Elf64_Ehdr>(image_).e_shoff))
                      .first(as<Elf64_Ehdr>(image_).e_shnum)) {
    names_ = content(sections_[as<Elf64_Ehdr>(image_).e_shstrndx]);
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != SHT_SYMTAB) continue;
      symbols_ = table<Elf64_Sym>(content(section));
      symbol_names_ = content(sections_[section.sh_link]);
    }
  }

  void read() {
    auto types = TypeTable::parse(content(*find(".BTF")));
    ASSAY_CHECK(types.has_value(), "the BPF object has types");
    object_.types_ = *std::move(types);
    read_maps();
    for (std::size_t at = 0; at < sections_.size(); ++at) {
      const Elf64_Shdr& section = sections_[at];
      if (section.sh_type != SHT_PROGBITS || (section.sh_flags & SHF_EXECINSTR) == 0) continue;
      if (name_of(section) == kSharedSection) {
        read_code(at, object_.shared_);
      } else {
        BpfProgram& program = object_.programs_.emplace_back();
        program.section = name_of(section);
        read_code(at, program);
      }
    }
    for (const Elf64_Sym& symbol : symbols_) {
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
      const std::string_view section = section_name(symbol);
      if (section == kSharedSection) {
        object_.functions_.push_back(
            {std::string(name_of(symbol)),
             static_cast<std::uint32_t>(symbol.st_value / sizeof(bpf_insn))});
      }
      for (BpfProgram& program : object_.programs_) {
        if (program.section == section) program.name = name_of(symbol);
      }
    }
    std::ranges::sort(object_.functions_, {}, &BpfFunction::at);
    read_fields();
  }

 private:
  [[nodiscard]] std::string_view content(const Elf64_Shdr& section) const {
    return image_.substr(section.sh_offset, section.sh_size);
  }
  [[nodiscard]] std::string_view name_of(const Elf64_Shdr& section) const {
    return names_.data() + section.sh_name;
  }
  [[nodiscard]] std::string_view name_of(const Elf64_Sym& symbol) const {
    return symbol_names_.data() + symbol.st_name;
  }
  [[nodiscard]] std::string_view section_name(const Elf64_Sym& symbol) const {
    return symbol.st_shndx < sections_.size() ? name_of(sections_[symbol.st_shndx])
                                              : std::string_view();
  }
  [[nodiscard]] const Elf64_Shdr* find(std::string_view name) const {
    const auto at = std::ranges::find_if(
        sections_, [&](const Elf64_Shdr& section) { return name_of(section) == name; });
    ASSAY_CHECK(at != sections_.end(), "the BPF object has this section");
    return &*at;
  }

  void read_code(std::size_t section, CodeSection& into) {
    const auto instructions = table<bpf_insn>(content(sections_[section]));
    into.instructions.assign(instructions.begin(), instructions.end());
    for (const Elf64_Shdr& relocations : sections_) {
      if (relocations.sh_type != SHT_REL || relocations.sh_info != section) continue;
      for (const Elf64_Rel& relocation : table<Elf64_Rel>(content(relocations))) {
        into.addresses.push_back(address(relocation, into.instructions));
      }
    }
  }

  BpfRelocation address(const Elf64_Rel& relocation, const std::vector<bpf_insn>& code) {
    using Kind = BpfRelocation::Kind;
    const Elf64_Sym& symbol = symbols_[ELF64_R_SYM(relocation.r_info)];
    const auto kind = ELF64_R_TYPE(relocation.r_info);
    const std::string_view section = section_name(symbol);
    BpfRelocation out{.at = static_cast<std::uint32_t>(relocation.r_offset / sizeof(bpf_insn))};
    const bpf_insn& instruction = code[out.at];
    if (kind == kRelocateCall && symbol.st_shndx == SHN_UNDEF) {
      out.kind = Kind::kKernelFunction;
      out.name = name_of(symbol);
    } else if (kind == kRelocateCall) {
      ASSAY_CHECK(section == kSharedSection, "a program calls only shared functions");
      out.kind = Kind::kCall;  // the instruction counts from the one after it
      out.offset = static_cast<std::uint32_t>(symbol.st_value / sizeof instruction) +
                   static_cast<std::uint32_t>(instruction.imm + 1);
    } else if (ASSAY_CHECK(kind == kRelocateAddress, "an address or a call");
               section == kMapsSection) {
      out.name = name_of(symbol);
    } else if (section == kSharedSection) {
      out.kind = Kind::kFunction;
      out.offset = static_cast<std::uint32_t>(
          (symbol.st_value + static_cast<std::uint32_t>(instruction.imm)) / sizeof instruction);
    } else {
      out.kind = Kind::kMapContent;
      out.name = section;
      out.offset =
          static_cast<std::uint32_t>(symbol.st_value) + static_cast<std::uint32_t>(instruction.imm);
    }
    return out;
  }

  // Maps that the programs declare (libbpf's macros encode numbers as lengths of arrays), and one
  // for each section of variables.
  void read_maps() {
    const TypeTable& types = object_.types_;
    for (std::uint32_t id = 1; id <= types.size(); ++id) {
      const btf_type& type = *types.find(id);
      if (kind_of(type) != BTF_KIND_VAR) continue;
      const btf_type* declaration = types.find(types.unqualified(type.type));
      const std::string name(types.name(type));
      if (declaration == nullptr || !is_map(name)) continue;
      BpfMap map{.name = name};
      for (const btf_member& member : types.members(*declaration)) {
        const std::uint32_t pointed = types.find(types.unqualified(member.type))->type;
        const btf_type& target = *types.find(types.unqualified(pointed));
        const std::string_view key = types.text(member.name_off);
        if (key == "type") map.type = types.array(target).nelems;
        if (key == "max_entries") map.max_entries = types.array(target).nelems;
        if (key == "map_flags") map.flags = types.array(target).nelems;
        if (key == "key") map.key_size = static_cast<std::uint32_t>(types.size_of(pointed));
        if (key == "value") map.value_size = static_cast<std::uint32_t>(types.size_of(pointed));
      }
      object_.maps_.push_back(std::move(map));
    }
    for (const Elf64_Shdr& section : sections_) {
      const std::string_view name = name_of(section);
      if (!name.starts_with(".bss") && !name.starts_with(".rodata")) continue;
      object_.maps_.push_back({.name = std::string(name),
                               .type = BPF_MAP_TYPE_ARRAY,
                               .key_size = sizeof(__u32),
                               .value_size = static_cast<std::uint32_t>(section.sh_size),
                               .max_entries = 1});
    }
  }

  [[nodiscard]] bool is_map(std::string_view name) const {
    return std::ranges::any_of(symbols_, [&](const Elf64_Sym& symbol) {
      return section_name(symbol) == kMapsSection && name_of(symbol) == name;
    });
  }

  // Per section of code: its name, and the fields that its instructions read.
  void read_fields() {
    const std::string_view extra = content(*find(".BTF.ext"));
    const auto& header = as<ExtraTypesHeader>(extra);
    std::string_view data =
        extra.substr(header.header_length + header.fields_at, header.fields_length);
    const auto size = as<__u32>(data);
    ASSAY_CHECK(size >= sizeof(bpf_core_relo), "records of fields");
    for (data.remove_prefix(sizeof size); !data.empty();) {
      const std::string_view section = object_.types_.text(as<__u32>(data));
      const auto count = as<__u32>(data, 4);
      data.remove_prefix(8);
      CodeSection* code = section == kSharedSection ? &object_.shared_ : nullptr;
      for (BpfProgram& program : object_.programs_) {
        if (program.section == section) code = &program;
      }
      for (std::uint32_t i = 0; i < count; ++i) {
        if (code != nullptr) code->fields.push_back(as<bpf_core_relo>(data));
        data.remove_prefix(size);
      }
    }
  }

  ObjectFile& object_;
  std::string_view image_;
  std::span<const Elf64_Shdr> sections_;
  std::string_view names_;
  std::span<const Elf64_Sym> symbols_;
  std::string_view symbol_names_;
};

ObjectFile::ObjectFile(std::span<const std::byte> image) {
  Reader(*this, image).read();
}

}  // namespace assay::collect
