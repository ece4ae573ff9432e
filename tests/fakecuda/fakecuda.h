// Queries about the fake driver's state, for tests; found with dlsym like its entry points.
#pragma once

extern "C" {

// Calls of the entry point; all ones if there is none of this name.
unsigned long fakecuda_calls(const char* symbol);
// Nodes of graphs that were launched.
unsigned long fakecuda_nodes();
// GPU time used by this process.
unsigned long fakecuda_busy_ns();
// Bytes of a device in use by all processes, independent of limits.
unsigned long fakecuda_used(int device);
// What cuGetProcAddress must return, and which symbol that is.
void* fakecuda_function(const char* name, int version, int per_thread);
const char* fakecuda_symbol(const void* function);
}
