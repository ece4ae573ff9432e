/* Reading, creating, cutting, renaming and removing through symbolic links and beside them. */
#include "must.h"
int main(void) {
  MUST(symlink("in.txt", "to_file"));
  MUST(symlink("data", "to_dir"));
  MUST(symlink("to_file", "to_link"));
  MUST(symlink("data/dangling_made.txt", "dangling"));
  drain(MUST(open("to_link", O_RDONLY)));
  drain(MUST(open("to_dir/a.txt", O_RDONLY)));
  say_and_close(MUST(open("dangling", O_WRONLY | O_CREAT, 0644)), "made through a link");
  say_and_close(MUST(open("to_dir/new.txt", O_WRONLY | O_CREAT, 0644)), "n");
  MUST(rename("to_dir/new.txt", "to_dir/new2.txt"));
  MUST(truncate("old_link", 2)); /* set up beforehand: old.txt */
  MUST(unlink("to_dir/b.txt"));
  MUST(unlink("to_file")); /* the link goes, in.txt stays */
  MUST(rename("to_dir", "to_dir2"));
  return 0;
}
