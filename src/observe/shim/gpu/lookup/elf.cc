#include "observe/shim/gpu/lookup/elf.h"

#include <elf.h>
#include <link.h>

namespace assay::gpu {
namespace {

bool is_function(const ElfW(Sym) & symbol) {
  const unsigned type = ELF64_ST_TYPE(symbol.st_info);
  return symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0 &&
         (type == STT_FUNC || type == STT_NOTYPE);
}

std::uint32_t gnu_hash_of(const char* name) {
  std::uint32_t hash = 5381;
  for (; *name != 0; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

std::uint32_t old_hash_of(const char* name) {
  std::uint32_t hash = 0;
  for (; *name != 0; ++name) {
    hash = (hash << 4U) + static_cast<unsigned char>(*name);
    const std::uint32_t high = hash & 0xF0000000U;
    hash ^= high >> 24U;
    hash &= ~high;
  }
  return hash;
}

const ElfW(Sym) * by_gnu_hash(const Library& in, const char* name) {
  const auto* symbols = static_cast<const ElfW(Sym)*>(in.symbols);
  const std::uint32_t hash = gnu_hash_of(name);
  const std::uint32_t buckets = in.gnu_hashes[0];
  const std::uint32_t first = in.gnu_hashes[1];
  const std::uint32_t words = in.gnu_hashes[2];
  if (buckets == 0) return nullptr;
  const auto* bucket = in.gnu_hashes + 4 + 2 * words;
  const std::uint32_t* chain = bucket + buckets;
  std::uint32_t at = bucket[hash % buckets];
  if (at < first) return nullptr;
  for (;; ++at) {
    const std::uint32_t entry = chain[at - first];
    if ((entry | 1U) == (hash | 1U) && is_function(symbols[at]) &&
        same(in.texts + symbols[at].st_name, name)) {
      return &symbols[at];
    }
    if ((entry & 1U) != 0) return nullptr;
  }
}

const ElfW(Sym) * by_old_hash(const Library& in, const char* name) {
  const auto* symbols = static_cast<const ElfW(Sym)*>(in.symbols);
  const std::uint32_t buckets = in.hashes[0];
  if (buckets == 0) return nullptr;
  const std::uint32_t* chain = in.hashes + 2 + buckets;
  for (std::uint32_t at = in.hashes[2 + old_hash_of(name) % buckets]; at != STN_UNDEF;
       at = chain[at]) {
    if (is_function(symbols[at]) && same(in.texts + symbols[at].st_name, name)) {
      return &symbols[at];
    }
  }
  return nullptr;
}

// The loader has relocated offsets to addresses, except in read-only tables.
Library described_by(std::uintptr_t base, const char* path, const ElfW(Dyn) * entry) {
  Library found;
  found.base = base;
  found.path = path;
  std::uint64_t soname = 0;
  for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    const std::uintptr_t value = entry->d_un.d_ptr;
    const std::uintptr_t address = value < base ? value + base : value;
    switch (entry->d_tag) {
      case DT_STRTAB:
        found.texts = reinterpret_cast<const char*>(address);
        break;
      case DT_SYMTAB:
        found.symbols = reinterpret_cast<const void*>(address);
        break;
      case DT_GNU_HASH:
        found.gnu_hashes = reinterpret_cast<const std::uint32_t*>(address);
        break;
      case DT_HASH:
        found.hashes = reinterpret_cast<const std::uint32_t*>(address);
        break;
      case DT_SONAME:
        soname = entry->d_un.d_val;
        break;
      default:
        break;
    }
  }
  if (soname != 0 && found.texts != nullptr) found.soname = found.texts + soname;
  return found;
}

struct BySoname {
  const char* soname;
  Library* found;
};
int look_for_soname(dl_phdr_info* info, size_t, void* data) {
  auto& wanted = *static_cast<BySoname*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const std::uintptr_t dynamic = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    const Library library =
        described_by(info->dlpi_addr, info->dlpi_name, reinterpret_cast<const ElfW(Dyn)*>(dynamic));
    if (library.symbols == nullptr || !same(library.soname, wanted.soname)) return 0;
    *wanted.found = library;
    return 1;
  }
  return 0;
}

}  // namespace

void* Library::find(const char* name) const {
  if (texts == nullptr || symbols == nullptr) return nullptr;
  const ElfW(Sym)* symbol = nullptr;
  if (gnu_hashes != nullptr) {
    symbol = by_gnu_hash(*this, name);
  } else if (hashes != nullptr) {
    symbol = by_old_hash(*this, name);
  }
  return symbol == nullptr ? nullptr : reinterpret_cast<void*>(base + symbol->st_value);
}

bool find_library(const char* soname, Library& found) {
  BySoname wanted{soname, &found};
  return dl_iterate_phdr(look_for_soname, &wanted) != 0;
}

void* find_after_us(const char* name) {
  const link_map* library = _r_debug.r_map;
  // _DYNAMIC is this library's own dynamic section.
  while (library != nullptr && library->l_ld != _DYNAMIC) library = library->l_next;
  if (library == nullptr) return nullptr;
  for (library = library->l_next; library != nullptr; library = library->l_next) {
    void* found = described_by(library->l_addr, library->l_name, library->l_ld).find(name);
    if (found != nullptr) return found;
  }
  return nullptr;
}

}  // namespace assay::gpu
