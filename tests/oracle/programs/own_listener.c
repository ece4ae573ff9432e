/* A seccomp filter with a listener, that reports nothing. Where there is one already, it fails. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "must.h"
int main(void) {
  struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
  struct sock_fprog program = {1, &allow};
  MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
  drain(MUST(open("in.txt", O_RDONLY)));
  say_and_close(MUST(creat("made.txt", 0644)), "made");
  return 0;
}
