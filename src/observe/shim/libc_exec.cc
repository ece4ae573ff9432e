// The C library's functions that execute programs or load libraries. They make calls that the gate
// stops, and the shim has nothing to record about them: it only repeats them behind a guard where
// nobody answers at the gate any more (own_guard.h).
#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "observe/shim/libc_exec.h"
#include "observe/shim/next_definition.h"
#include "observe/shim/own_guard.h"
#include "observe/shim/shim.h"

namespace assay::shim {
namespace {

using Words = char* const*;
using Exec = int(const char*, Words);
using ExecIn = int(const char*, Words, Words);
using ExecFile = int(int, Words, Words);
using ExecAt = int(int, const char*, Words, Words, int);
using Spawn = int(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*,
                  Words, Words);

template <typename Signature, typename... Arguments>
int exec_by(Function function, Arguments... arguments) {
  return behind_guard([=] { return next_once<Signature>(function)(arguments...); },
                      [](int result) { return result == -1 && errno == ENOSYS; });
}

int spawn_by(Function function, pid_t* child, const char* program,
             const posix_spawn_file_actions_t* actions, const posix_spawnattr_t* attributes,
             Words arguments, Words environment) {
  return behind_guard(
      [=] {
        return next_once<Spawn>(function)(child, program, actions, attributes, arguments,
                                          environment);
      },
      [](int error) { return error == ENOSYS; });
}

}  // namespace

void find_exec() {
  static std::atomic<bool> found{false};
  if (found.load(std::memory_order_relaxed)) return;
  for (const Function function : {Function::kExecv, Function::kExecvp}) next_once<Exec>(function);
  for (const Function function : {Function::kExecve, Function::kExecvpe}) {
    next_once<ExecIn>(function);
  }
  next_once<ExecFile>(Function::kFexecve);
  next_once<ExecAt>(Function::kExecveat);
  found.store(true, std::memory_order_relaxed);
}

}  // namespace assay::shim

using assay::shim::exec_by;
using assay::shim::Function;
using assay::shim::next_once;

extern "C" {

ASSAY_EXPORTED int execve(const char* program, char* const arguments[],
                          char* const environment[]) noexcept {
  return exec_by<assay::shim::ExecIn>(Function::kExecve, program, arguments, environment);
}
ASSAY_EXPORTED int execv(const char* program, char* const arguments[]) noexcept {
  return exec_by<assay::shim::Exec>(Function::kExecv, program, arguments);
}
ASSAY_EXPORTED int execvp(const char* program, char* const arguments[]) noexcept {
  return exec_by<assay::shim::Exec>(Function::kExecvp, program, arguments);
}
ASSAY_EXPORTED int execvpe(const char* program, char* const arguments[],
                           char* const environment[]) noexcept {
  return exec_by<assay::shim::ExecIn>(Function::kExecvpe, program, arguments, environment);
}
ASSAY_EXPORTED int fexecve(int file, char* const arguments[], char* const environment[]) noexcept {
  return exec_by<assay::shim::ExecFile>(Function::kFexecve, file, arguments, environment);
}
ASSAY_EXPORTED int execveat(int directory, const char* path, char* const arguments[],
                            char* const environment[], int flags) noexcept {
  return exec_by<assay::shim::ExecAt>(Function::kExecveat, directory, path, arguments, environment,
                                      flags);
}

// The arguments in an array on the stack, as the C library's own: a child of vfork must not
// allocate.
#define ASSAY_ARGUMENTS_AFTER(first)                                                             \
  va_list counted;                                                                               \
  va_start(counted, first);                                                                      \
  va_list copied;                                                                                \
  va_copy(copied, counted);                                                                      \
  int count = 1;                                                                                 \
  while (va_arg(counted, char*) != nullptr) ++count;                                             \
  va_end(counted);                                                                               \
  auto** arguments =                                                                             \
      static_cast<char**>(__builtin_alloca((static_cast<unsigned>(count) + 1) * sizeof(char*))); \
  arguments[0] = const_cast<char*>(first);                                                       \
  for (int i = 1; i <= count; ++i) arguments[i] = va_arg(copied, char*);

ASSAY_EXPORTED int execl(const char* program, const char* first, ...) noexcept {
  ASSAY_ARGUMENTS_AFTER(first)
  va_end(copied);
  return execv(program, arguments);
}
ASSAY_EXPORTED int execlp(const char* program, const char* first, ...) noexcept {
  ASSAY_ARGUMENTS_AFTER(first)
  va_end(copied);
  return execvp(program, arguments);
}
ASSAY_EXPORTED int execle(const char* program, const char* first, ...) noexcept {
  ASSAY_ARGUMENTS_AFTER(first)
  char** environment = va_arg(copied, char**);
  va_end(copied);
  return execve(program, arguments, environment);
}
#undef ASSAY_ARGUMENTS_AFTER

ASSAY_EXPORTED int posix_spawn(pid_t* child, const char* program,
                               const posix_spawn_file_actions_t* actions,
                               const posix_spawnattr_t* attributes, char* const arguments[],
                               char* const environment[]) {
  return assay::shim::spawn_by(Function::kPosixSpawn, child, program, actions, attributes,
                               arguments, environment);
}
ASSAY_EXPORTED int posix_spawnp(pid_t* child, const char* program,
                                const posix_spawn_file_actions_t* actions,
                                const posix_spawnattr_t* attributes, char* const arguments[],
                                char* const environment[]) {
  return assay::shim::spawn_by(Function::kPosixSpawnp, child, program, actions, attributes,
                               arguments, environment);
}

// A shell that could not be started looks like one that ended with 127; only errno tells.
ASSAY_EXPORTED int system(const char* command) {
  const int before = errno;
  errno = 0;
  const int status = assay::shim::behind_guard(
      [=] { return next_once<int(const char*)>(Function::kSystem)(command); },
      [](int result) { return result != 0 && errno == ENOSYS; });
  if (errno == 0) errno = before;
  return status;
}
// It does not say why it failed.
ASSAY_EXPORTED FILE* popen(const char* command, const char* type) {
  if (assay::shim::on()) assay::shim::start_own_guard();
  return next_once<FILE*(const char*, const char*)>(Function::kPopen)(command, type);
}

// What dlopen reports is text, and where it searches depends on its caller. So the gate is tried
// before, and the C library's function is jumped to, with its caller's return address.
[[gnu::used]] void* assay_shim_before_dlopen() {
  const int before = errno;
  if (assay::shim::on()) assay::shim::start_own_guard();
  void* next = dlsym(RTLD_NEXT, "dlopen");
  errno = before;
  return next;
}

}  // extern "C"

asm(R"(
  .text
  .globl dlopen
  .type dlopen, @function
dlopen:
  push %rdi
  push %rsi
  sub $8, %rsp
  call assay_shim_before_dlopen
  add $8, %rsp
  pop %rsi
  pop %rdi
  jmp *%rax
  .size dlopen, . - dlopen
)");
