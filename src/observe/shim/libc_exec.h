// Shared by the functions that start processes.
#pragma once

namespace assay::shim {

// Looks up the C library's exec functions: before a fork, because the child of a program with
// threads must not ask the dynamic loader.
void find_exec();

}  // namespace assay::shim
