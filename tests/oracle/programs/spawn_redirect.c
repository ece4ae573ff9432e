/* posix_spawn with file actions: the opens happen in a child that shares memory (vfork). */
#include "must.h"

#include <spawn.h>
extern char** environ;
int main(void) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "in.txt", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "spawned.txt", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  char* words[] = {"cat", NULL};
  pid_t child;
  int status;
  if (posix_spawnp(&child, "cat", &actions, NULL, words, environ) != 0) return 1;
  MUST(waitpid(child, &status, 0));
  if (status != 0) return 1;
  child = vfork();
  if (child == 0) {
    int fd = open("old.txt", O_WRONLY | O_TRUNC);
    dup2(fd, 1);
    execlp("echo", "echo", "by a vfork child", NULL);
    _exit(127);
  }
  MUST(waitpid(child, &status, 0));
  return status != 0;
}
