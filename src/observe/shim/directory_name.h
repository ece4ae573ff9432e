// The name of the directory that a relative path begins at, as the kernel gives it. A program that
// opens many files relative to one descriptor (grep -r, tar, find) asks for the same name each
// time, so each thread keeps the last one.
#pragma once

#include <cstddef>

#include "observe/shim/shim.h"

namespace assay::shim {

// A piece of text that is not terminated.
struct Text {
  const char* data = nullptr;
  std::size_t length = 0;
  bool too_long = false;  // the name is longer than the buffer, and therefore empty
};

// Whether the kernel marks a name as that of a removed file.
inline constexpr char kDeleted[] = " (deleted)";
inline constexpr std::size_t kDeletedLength = sizeof kDeleted - 1;
bool ends_deleted(Text name);

// The kernel's name for a descriptor's file; empty when it has none that can be reached from "/".
Text name_of_descriptor(int file, char* buffer, std::size_t size);

// The prefix of a relative path. Empty if the directory no longer has a name.
Text name_of_directory(int directory, char* buffer, std::size_t size);

}  // namespace assay::shim
