/* A library that changes what a program opens: "a" becomes "a.real", "conf" becomes "conf.real", and
 * it says which names are changed. Preloaded, or linked by a program. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return NEXT(open)(strcmp(path, "a") == 0 ? "a.real" : path, flags, mode);
}
int openat(int at, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return NEXT(openat)(at, strcmp(path, "a") == 0 ? "a.real" : path, flags, mode);
}
FILE* fopen(const char* path, const char* mode) {
  return NEXT(fopen)(strcmp(path, "conf") == 0 ? "conf.real" : path, mode);
}
int rename(const char* from, const char* to) {
  fprintf(stderr, "rename %s %s\n", from, to);
  return NEXT(rename)(from, to);
}
int unlink(const char* path) {
  fprintf(stderr, "unlink %s\n", path);
  return NEXT(unlink)(path);
}
int chdir(const char* path) {
  fprintf(stderr, "chdir %s\n", path);
  return NEXT(chdir)(path);
}
