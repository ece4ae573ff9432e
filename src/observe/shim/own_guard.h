// A guard that a process of the command starts for itself when keeper, collector and guard have all
// been killed. Nobody answers at the gate then: every stopped call fails with ENOSYS, and a program
// that this process executes could not even open its libraries.
//
// The kernel allows a second filter with a listener once the first one's is gone, and when two
// filters stop a call, the newer one's listener is asked. So the process installs a filter that
// stops the same calls, and a small process behind it lets them all continue. Children and the
// programs that they execute inherit the filter; the guard ends with the last of them.
#pragma once

namespace assay::shim {

// True if somebody answers at the gate now. Costs a stopped call where somebody did before. Keeps
// errno.
bool start_own_guard();

// The same, if some process of the command has found the gate deserted; else this costs a load.
void start_own_guard_if_deserted();

// Makes a call of the C library's that makes stopped calls itself, and repeats it behind a guard if
// it failed because nobody answered: `deserted(result)` says whether it did.
template <typename Call, typename Deserted>
auto behind_guard(Call call, Deserted deserted) {
  auto result = call();
  if (__builtin_expect(deserted(result), 0) && start_own_guard()) result = call();
  return result;
}

}  // namespace assay::shim
