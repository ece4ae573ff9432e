/* What the programs of the corpus share: every call must succeed, or the program says which did not
 * and fails; a machine that cannot run the program at all makes it exit with 77. */
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUST(call)                                                                    \
  ({                                                                                  \
    long must_result = (long)(call);                                                  \
    if (must_result == -1) {                                                          \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, strerror(errno)); \
      exit(1);                                                                        \
    }                                                                                 \
    must_result;                                                                      \
  })
#define NOT_HERE(why)                       \
  do {                                      \
    fprintf(stderr, "not here: %s\n", why); \
    exit(77);                               \
  } while (0)

/* Reads all that is left of a descriptor, and closes it. */
static inline long drain(int fd) {
  char buffer[4096];
  long total = 0, count;
  while ((count = MUST(read(fd, buffer, sizeof buffer))) > 0) total += count;
  close(fd);
  return total;
}

static inline void say(int fd, const char* text) {
  if (MUST(write(fd, text, strlen(text))) != (long)strlen(text)) exit(1);
}

static inline void say_and_close(int fd, const char* text) {
  say(fd, text);
  MUST(close(fd));
}
