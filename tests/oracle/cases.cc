#include "oracle/cases.h"

namespace assay::oracle {

namespace {

// What one_of_many leaves when it is run with all numbers below `count`.
Lineage of_many(int count) {
  Lineage lineage = {.inputs = {"in.txt"}};
  for (int i = 100; i < count; i += 100) lineage.outputs["out_" + std::to_string(i)] = "created";
  return lineage;
}

// strace does not see them. eBPF sees opens, and says that names were changed.
Case io_uring_names(const std::string& ring) {
  return {.name = "io_uring_names_" + ring,
          .command = "$RUN $P/io_uring_names " + ring,
          .setup = "echo 1 > one; echo 2 > two",
          .by_hand = Lineage{.inputs = {"data/a.txt", "in.txt", "one", "two"},
                             .outputs = {{"old.txt", "modified"},
                                         {"renamed.txt", "created"},
                                         {"linked.txt", "linked"},
                                         {"data/b.txt", "deleted"}}},
          .not_for = {"ebpf"}};
}

// Which ring it is cannot be known: the run says so, and nothing that it did not do.
Case io_uring_in_a_closed_ring() {
  Case which = io_uring_names("closed");
  which.may_miss = {"io_uring"};
  which.must_miss = {{"preload", "io_uring"}, {"ptrace", "io_uring"}};
  return which;
}

// A file whose path is longer than PATH_MAX, which is reported as missed. eBPF counts such files as
// dropped. strace cannot name them either.
Case deep_folder(const std::string& program) {
  return {.name = program,
          .command = "$RUN $P/" + program,
          .by_hand = Lineage{.inputs = {"in.txt"}, .outputs = {{"out.txt", "created"}}},
          .too_big_for_strace = true,
          .must_miss = {{"preload", "long-path"}, {"ptrace", "long-path"}},
          .not_for = {"ebpf"}};
}

}  // namespace

const std::vector<Case>& all_cases() {
  static const std::vector<Case> cases = {
      // The plain ways.
      {.name = "read_write", .command = "$RUN $P/read_write in.txt out.txt"},
      {.name = "read_write_over_old", .command = "$RUN $P/read_write in.txt old.txt"},
      {.name = "stdio", .command = "$RUN $P/stdio_files"},
      {.name = "stdio_static", .command = "$RUN $P/stdio_files_static"},
      {.name = "go", .command = "$RUN $P/go_copy", .needs = "$P/go_copy"},
      {.name = "python",
       .command = "$RUN /usr/bin/python3 -B $S/work.py",
       .needs = "/usr/bin/python3"},

      // Shells, pipes, inherited descriptors.
      {.name = "shell_pipeline",
       .command = "$RUN sh -c 'sort < in.txt | tr a-z A-Z | tee copy.txt | wc -c > out.txt; "
                  "cat data/a.txt >> old.txt'"},
      {.name = "bash_redirects",
       .command = "$RUN bash -c 'exec 5<data/a.txt 6>six.txt; cat <&5 >&6; read line <in.txt; "
                  "echo \"$line\" >|old.txt; cat <<<here >here.txt; diff <(cat in.txt) <(cat "
                  "data/b.txt) >differences.txt; true'"},
      {.name = "inherited", .command = "$RUN cat < in.txt > out.txt"},
      {.name = "inherited_append", .command = "$RUN cat < in.txt >> old.txt", .grows = {"old.txt"}},
      {.name = "inherited_numbers",
       .command = "$RUN sh -c 'cat <&7 >&8' 7< data/a.txt 8> eight.txt"},
      {.name = "inherited_unused", .command = "$RUN sh -c 'cat in.txt > out.txt' 9>> old.txt"},
      {.name = "inherited_shared", .command = "exec 9>> old.txt; $RUN sh -c 'cat in.txt >&9'"},
      {.name = "inherited_static", .command = "$RUN $P/stdio_files_static < data/b.txt"},
      {.name = "pipe_into_run",
       .command = "cat data/a.txt | $RUN sh -c 'cat - in.txt > out.txt' | cat",
       .must_miss = {{"preload", "stdin"}, {"ptrace", "stdin"}, {"ebpf", "stdin"}}},
      {.name = "pipe_that_is_not_read",
       .command = "cat data/a.txt | $RUN sh -c 'cat in.txt > out.txt' | cat"},
      {.name = "dev_stdin", .command = "$RUN cp /dev/stdin out.txt < in.txt"},
      {.name = "env_i",
       .command = "$RUN env -i sh -c 'cat in.txt > out.txt; mv data/a.txt moved.txt'"},

      // Where a path leads.
      {.name = "chdir_relative", .command = "$RUN $P/chdir_relative"},
      {.name = "started_elsewhere", .command = "cd data && $RUN cp a.txt ../copied.txt"},
      {.name = "openat_dirfd", .command = "$RUN $P/openat_dirfd"},
      {.name = "openat2", .command = "$RUN $P/openat2_call"},
      {.name = "creat", .command = "$RUN $P/creat_call"},
      {.name = "long_path", .command = "$RUN $P/long_path"},
      {.name = "long_path_static", .command = "$RUN $P/long_path_static"},
      deep_folder("deep_folder"),
      deep_folder("deep_folder_static"),
      {.name = "symlinks", .command = "$RUN $P/symlinks", .setup = "ln -s old.txt old_link"},
      {.name = "symlink_switch",
       .command = "$RUN sh -c 'ln -s v2 next && mv -T next current && cat current/data > out.txt'",
       .setup = "mkdir v1 v2; echo 1 > v1/data; echo 2 > v2/data; ln -s v1 current"},
      {.name = "turned_links",
       .command = "$RUN $P/turned_links",
       .setup = "mkdir run1 run2 run3 run4; for i in 1 2 3 4; do echo c$i > run$i/cfg; done; "
                "ln -s run1 latest"},
      {.name = "turned_links_static",
       .command = "$RUN $P/turned_links_static",
       .setup = "mkdir run1 run2 run3 run4; for i in 1 2 3 4; do echo c$i > run$i/cfg; done; "
                "ln -s run1 latest"},
      {.name = "link_turned_by_ln",
       .command = "$RUN sh -c 'cat latest/cfg; ln -sfn run2 latest; cat latest/cfg; rm latest; "
                  "mkdir latest; echo 3 > latest/cfg'",
       .setup = "mkdir run1 run2; echo c1 > run1/cfg; echo c2 > run2/cfg; ln -s run1 latest"},
      {.name = "symlink_removed",
       .command = "$RUN rm to_file to_dir",
       .setup = "ln -s in.txt to_file; ln -s data to_dir"},
      {.name = "magic_links", .command = "$RUN $P/magic_links"},
      {.name = "by_handle",
       .command = "$RUN $P/by_handle",
       .for_root = true,
       .may_miss = {"open_by_handle_at", "unseen"},
       .by_hand = Lineage{.inputs = {"in.txt"}, .outputs = {{"old.txt", "modified"}}}},
      {.name = "chroot",
       .command = "$RUN $P/chroot_files_static",
       .for_root = true,
       .may_miss = {"view"}},
      {.name = "mount_namespace",
       .command = "$RUN $P/own_mounts",
       .setup = "mkdir sub mnt; echo sub > sub/x; echo mnt > mnt/x",
       .for_root = true,
       .may_miss = {"namespace"},
       .by_hand = Lineage{.inputs = {"sub/x"}, .outputs = {{"sub/made.txt", "created"}}},
       .must_miss = {{"preload", "namespace"}, {"ptrace", "namespace"}, {"ebpf", "namespace"}}},
      {.name = "thread_chdir", .command = "$RUN $P/thread_chdir"},
      {.name = "odd_names",
       .command = "$RUN $P/odd_names",
       .setup = "echo x > $'was\\nthere\\xff'"},

      // What happens to files.
      {.name = "hard_links", .command = "$RUN $P/link_calls", .setup = "ln -s old.txt old_link"},
      {.name = "hard_link_read", .command = "$RUN cat second.txt", .setup = "ln in.txt second.txt"},
      {.name = "tmpfile_linkat", .command = "$RUN $P/tmpfile_linkat"},
      {.name = "mmap_write", .command = "$RUN $P/mmap_write"},
      {.name = "copy_calls", .command = "$RUN $P/copy_calls"},
      {.name = "dup_calls", .command = "$RUN $P/dup_calls"},
      {.name = "truncate_only",
       .command = "$RUN $P/truncate_only",
       .setup = "echo cut > cut.txt; echo kept > kept.txt"},
      {.name = "unlink", .command = "$RUN $P/unlink_calls"},
      {.name = "rename_chain", .command = "$RUN $P/rename_calls"},
      {.name = "rename_exchange", .command = "$RUN $P/rename_exchange"},
      {.name = "rename_new_folder",
       .command =
           "$RUN sh -c 'mkdir made; echo 1 > made/1.txt; mkdir made/sub; echo 2 > made/sub/2.txt; "
           "mv made moved; cat moved/1.txt'"},
      {.name = "rename_old_folder",
       .command = "$RUN sh -c 'cat data/a.txt; mv data moved; cat moved/b.txt'"},
      {.name = "rename_unread_folder",
       .command = "$RUN mv data moved",
       .setup = "mkdir data/sub; echo c > data/sub/c.txt; ln -s a.txt data/link"},
      {.name = "rename_folder_over_another",
       .command = "$RUN sh -c 'cat data/a.txt; mv data away; mv other data; cat data/a.txt'",
       .setup = "mkdir other; echo other > other/a.txt"},
      {.name = "exchange_folders",
       .command = "$RUN $P/exchange_folders",
       .setup = "mkdir other; echo other > other/a.txt; mkdir -p one/two; echo c > one/two/c.txt"},
      {.name = "atomic_save",
       .command = "$RUN sh -c 'cat in.txt; echo new > in.txt.new; mv in.txt.new in.txt'"},
      {.name = "pre_images",
       .command = "$RUN $P/pre_images",
       .setup = "for i in 0 1 2 3 4 5 6; do echo before$i > pre$i.txt; done"},
      {.name = "pre_images_large",
       .command = "$RUN $P/pre_images_static",
       .setup =
           "for i in 0 1 2 3 4 5 6; do head -c 3000000 /dev/zero | tr '\\0' $i > pre$i.txt; done"},
      {.name = "read_write_both", .command = "$RUN $P/rdwr"},
      {.name = "written_into",
       .command = "$RUN sh -c 'cat in.txt >> old.txt; echo x | dd of=data/a.txt conv=notrunc "
                  "2>/dev/null; truncate -s 3 data/b.txt; echo new > in.txt'",
       .grows = {"old.txt", "data/a.txt", "data/b.txt"}},
      {.name = "read_while_open_for_writing", .command = "$RUN $P/write_then_read"},
      {.name = "changed_without_a_name", .command = "$RUN $P/changed_nameless"},
      {.name = "odd_opens", .command = "$RUN $P/odd_opens"},
      {.name = "failed_calls", .command = "$RUN $P/failed_calls", .setup = "ln -s loop loop"},
      {.name = "failed_calls_static",
       .command = "$RUN $P/failed_calls_static",
       .setup = "ln -s loop loop"},
      {.name = "own_output", .command = "$RUN $P/own_output"},
      {.name = "temporary", .command = "$RUN $P/temporary"},
      {.name = "mknod", .command = "$RUN $P/mknod_file"},

      // Processes and threads.
      {.name = "daemon", .command = "$RUN $P/daemon", .least_processes = 3},
      {.name = "spawn_redirect", .command = "$RUN $P/spawn_redirect", .least_processes = 3},
      {.name = "threads", .command = "$RUN $P/threads"},
      {.name = "thread_exec", .command = "$RUN $P/thread_exec"},
      // Without the shim a stopped call can be interrupted (docs/tracers.md).
      {.name = "signals", .command = "$RUN $P/signals", .not_for = {"ebpf"}},
      {.name = "script",
       .command = "$RUN ./tool in.txt",
       .setup = "printf '#!/bin/sh\\ncat \"$1\" > by_script.txt\\n' > tool; chmod +x tool"},
      {.name = "exec_calls",
       .command = "$RUN $P/exec_calls",
       .setup = "mkdir bin; cp $P/read_write bin/copy; cp $P/read_write_static bin/copy2"},
      {.name = "exec_memory", .command = "$RUN $P/exec_memory"},
      {.name = "own_listener",
       .command = "$RUN $P/own_listener",
       .must_miss = {{"ptrace", "seccomp"}}},
      {.name = "dlopen", .command = "$RUN $P/dlopen_library", .setup = "cp $P/libanswer.so ."},
      {.name = "many_processes",
       .command = "$RUN $P/many_processes 500 $P/one_of_many",
       .least_processes = 501},
      {.name = "ten_thousand_processes",
       .command = "$RUN $P/many_processes 10001 $P/one_of_many",
       .by_hand = of_many(10001),
       .too_big_for_strace = true,
       .least_processes = 10002},
      {.name = "many_files", .command = "$RUN $P/many_files", .least_processes = 31},
      {.name = "many_opens", .command = "$RUN $P/many_opens"},
      {.name = "setuid",
       .command = "$RUN ./as_nobody",
       .setup = "mkdir open_to_all; chmod 777 . open_to_all; cp $P/setuid_copy as_nobody; "
                "chown nobody as_nobody; chmod 4755 as_nobody; chmod 644 in.txt",
       .for_root = true,
       .may_miss = {"setuid"}},

      // Other ways into the kernel.
      {.name = "raw_calls", .command = "$RUN $P/raw_calls"},
      {.name = "raw_calls_static", .command = "$RUN $P/raw_calls_static"},
      {.name = "i386", .command = "$RUN $P/i386_calls", .needs = "$P/i386_calls"},
      {.name = "int80_in_64_bits", .command = "$RUN $P/int80_calls", .needs = "$P/int80_calls"},
      {.name = "io_uring",
       .command = "$RUN $P/io_uring_files",
       .by_hand = Lineage{.inputs = {"in.txt"}, .outputs = {{"ring.txt", "created"}}}},
      io_uring_names("plain"),
      io_uring_names("noarray"),
      io_uring_names("registered"),
      io_uring_in_a_closed_ring(),
      {.name = "io_uring_sqpoll",
       .command = "$RUN $P/io_uring_files sqpoll",
       .may_miss = {"io_uring"},
       .by_hand = Lineage{.inputs = {"in.txt"}, .outputs = {{"ring.txt", "created"}}},
       .must_miss = {{"preload", "io_uring"}, {"ptrace", "io_uring"}}},

      // What people run.
      {.name = "sed_in_place", .command = "$RUN sed -i s/o/0/ in.txt data/a.txt"},
      {.name = "tar_round_trip",
       .command = "$RUN sh -c 'tar cf all.tar data in.txt && mkdir out && tar xf all.tar -C out'"},
      {.name = "copy_and_remove_tree",
       .command = "$RUN sh -c 'cp -a data copy && rm -r data && cp -l in.txt in2.txt'"},
      {.name = "compile",
       .command = "$RUN sh -c 'cc -c main.c -o main.o && cc main.o -o main && ./main > out.txt'",
       .setup = "printf '#include \"say.h\"\\n#include <stdio.h>\\nint main(void) { puts(SAY); "
                "return 0; }\\n' > main.c; "
                "echo '#define SAY \"hello\"' > say.h",
       .needs = "cc"},
  };
  return cases;
}

}  // namespace assay::oracle
