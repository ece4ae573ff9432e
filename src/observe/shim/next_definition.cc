#include "observe/shim/next_definition.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

namespace assay::shim {

constinit void* others[kOtherFunctions] = {};

namespace {

constexpr std::uint32_t gnu_hash(const char* name) {
  std::uint32_t hash = 5381;
  for (; *name != 0; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

struct HashedName {
  const char* text;
  std::uint32_t hash;
  constexpr HashedName(const char* name)
      : text(name), hash(gnu_hash(name)) {}  // NOLINT: a list of names
};

// In the order of Function.
constexpr HashedName kNames[] = {"open",
                                 "open64",
                                 "openat",
                                 "openat64",
                                 "creat",
                                 "creat64",
                                 "__open_2",
                                 "__open64_2",
                                 "__openat_2",
                                 "__openat64_2",
                                 "fopen",
                                 "fopen64",
                                 "rename",
                                 "renameat",
                                 "renameat2",
                                 "link",
                                 "linkat",
                                 "unlink",
                                 "unlinkat",
                                 "truncate",
                                 "truncate64",
                                 "chdir",
                                 "fchdir",
                                 "chroot",
                                 "unshare",
                                 "setns",
                                 "fork",
                                 "wait",
                                 "waitpid",
                                 "wait3",
                                 "wait4",
                                 "waitid",
                                 "stat",
                                 "stat64",
                                 "lstat",
                                 "lstat64",
                                 "fstatat",
                                 "fstatat64",
                                 "access",
                                 "statx",
                                 "__xstat",
                                 "__xstat64",
                                 "__lxstat",
                                 "__lxstat64",
                                 "__fxstatat",
                                 "__fxstatat64",
                                 "faccessat",
                                 "euidaccess",
                                 "eaccess",
                                 "readlink",
                                 "readlinkat",
                                 "__readlink_chk",
                                 "__readlinkat_chk",
                                 "realpath",
                                 "__realpath_chk",
                                 "canonicalize_file_name",
                                 "opendir",
                                 "fdopendir",
                                 "getdents64",
                                 "futimens",
                                 "connect",
                                 "getaddrinfo",
                                 "close",
                                 "execve",
                                 "execv",
                                 "execvp",
                                 "execvpe",
                                 "fexecve",
                                 "execveat",
                                 "posix_spawn",
                                 "posix_spawnp",
                                 "system",
                                 "popen",
                                 "remove",
                                 "mkfifo",
                                 "mknod",
                                 "utime",
                                 "utimes",
                                 "utimensat",
                                 "freopen",
                                 "freopen64",
                                 "tmpfile",
                                 "tmpfile64",
                                 "mkstemp",
                                 "mkstemp64",
                                 "mkostemp",
                                 "mkostemp64"};
static_assert(sizeof kNames / sizeof kNames[0] == kFunctions);

// A library's symbol tables, from its dynamic section. The loader has relocated the offsets in it
// to addresses, except in read-only sections (the vDSO).
struct Symbols {
  const char* soname = "";
  const char* texts = nullptr;
  const ElfW(Sym) * symbols = nullptr;
  const std::uint32_t* hashes = nullptr;  // DT_GNU_HASH
};

Symbols symbols_of(const link_map& library) {
  Symbols found;
  std::uint64_t soname = 0;
  const auto address = [&](const ElfW(Dyn) & entry) {
    const std::uint64_t value = entry.d_un.d_ptr;
    return reinterpret_cast<const void*>(value < library.l_addr ? value + library.l_addr : value);
  };
  for (const ElfW(Dyn)* entry = library.l_ld; entry != nullptr && entry->d_tag != DT_NULL;
       ++entry) {
    if (entry->d_tag == DT_STRTAB) found.texts = static_cast<const char*>(address(*entry));
    if (entry->d_tag == DT_SYMTAB) {
      found.symbols = static_cast<const ElfW(Sym)*>(address(*entry));
    }
    if (entry->d_tag == DT_GNU_HASH) {
      found.hashes = static_cast<const std::uint32_t*>(address(*entry));
    }
    if (entry->d_tag == DT_SONAME) soname = entry->d_un.d_val;
  }
  if (soname != 0 && found.texts != nullptr) found.soname = found.texts + soname;
  return found;
}

// Whether the library defines this function. Nearly always the Bloom filter's word says no.
bool defines(const Symbols& in, const HashedName& name) {
  const std::uint32_t buckets = in.hashes[0];
  const std::uint32_t first = in.hashes[1];
  const std::uint32_t words = in.hashes[2];
  const auto* bloom = reinterpret_cast<const std::uint64_t*>(in.hashes + 4);
  const std::uint64_t word = bloom[name.hash / 64 % words];
  if ((word >> (name.hash % 64) & word >> ((name.hash >> in.hashes[3]) % 64) & 1) == 0)
    return false;
  const auto* bucket = reinterpret_cast<const std::uint32_t*>(bloom + words);
  const std::uint32_t* chain = bucket + buckets;
  std::uint32_t at = bucket[name.hash % buckets];
  if (at < first) return false;
  for (;; ++at) {
    const std::uint32_t hash = chain[at - first];
    const ElfW(Sym)& symbol = in.symbols[at];
    if ((hash | 1) == (name.hash | 1) && symbol.st_shndx != SHN_UNDEF &&
        strcmp(in.texts + symbol.st_name, name.text) == 0) {
      return true;
    }
    if ((hash & 1) != 0) return false;
  }
}

// Without the hash tables that current linkers write, the loader is used.
bool has(const link_map& library, const Symbols& symbols, const HashedName& name) {
  if (symbols.hashes != nullptr && symbols.hashes[0] > 0 && symbols.hashes[2] > 0) {
    return defines(symbols, name);
  }
  Dl_info info;
  const void* next = dlsym(RTLD_NEXT, name.text);
  return next != nullptr && dladdr(next, &info) != 0 &&
         reinterpret_cast<std::uint64_t>(info.dli_fbase) == library.l_addr;
}

bool is_c_library(const Symbols& library) {
  return strcmp(library.soname, "libc.so.6") == 0;
}
// libpthread: before glibc 2.34 it defined some of the C library's functions, which are equivalent.
bool is_part_of_c_library(const Symbols& library) {
  return strcmp(library.soname, "libpthread.so.0") == 0;
}

}  // namespace

void find_others() {
  const link_map* library = _r_debug.r_map;
  // _DYNAMIC is this library's own dynamic section.
  while (library != nullptr && library->l_ld != _DYNAMIC) library = library->l_next;
  if (library == nullptr) return;
  for (library = library->l_next; library != nullptr; library = library->l_next) {
    const Symbols symbols = symbols_of(*library);
    if (is_c_library(symbols)) return;
    if (symbols.texts == nullptr || symbols.symbols == nullptr || is_part_of_c_library(symbols)) {
      continue;
    }
    for (int i = 0; i < kOtherFunctions; ++i) {
      if (others[i] == nullptr && has(*library, symbols, kNames[i])) {
        others[i] = dlsym(RTLD_NEXT, kNames[i].text);
      }
    }
  }
}

void* next_of(Function function) {
  return dlsym(RTLD_NEXT, kNames[static_cast<int>(function)].text);
}

}  // namespace assay::shim
