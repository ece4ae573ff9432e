// What the fake driver knows of itself, for tests: found with dlsym, like the rest of it.
#pragma once

extern "C" {

// How often the entry point was called; all ones if there is none of this name.
unsigned long fakecuda_calls(const char* symbol);
// Nodes of graphs that were launched.
unsigned long fakecuda_nodes();
// The GPU's time that this process has had.
unsigned long fakecuda_had_ns();
// Bytes of a device that are in use, whoever has them and whatever anybody is told.
unsigned long fakecuda_used(int device);
// What cuGetProcAddress must answer, and which symbol that is.
void* fakecuda_function(const char* name, int version, int per_thread);
const char* fakecuda_symbol(const void* function);
}
