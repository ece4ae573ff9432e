// Sends a message, once per process and name, when stat, access or readlink finds a file, and when
// these or open find none: if that is different in a later run, the program may behave differently.
#pragma once

#include "observe/collect/ebpf/bpf/open.h"

// Compares the first bytes of a name, as a little-endian word.
#define BEGINS(word, mask, text) (((word) & (mask)) == (text))

// The folders of wire/system_folders.h, where programs constantly look for libraries, settings and
// devices.
static __always_inline bool is_system_word(__u64 word) {
  const __u64 four = 0xffffffff, five = 0xffffffffff, six = 0xffffffffffff;
  return BEGINS(word, five, 0x2f7273752f) ||   // /usr/
         BEGINS(word, four, 0x62696c2f) ||     // /lib
         BEGINS(word, five, 0x2f6374652f) ||   // /etc/
         BEGINS(word, six, 0x2f636f72702f) ||  // /proc/
         BEGINS(word, five, 0x2f7379732f) ||   // /sys/
         BEGINS(word, five, 0x2f7665642f) ||   // /dev/
         BEGINS(word, five, 0x2f6e75722f) ||   // /run/
         BEGINS(word, five, 0x2f7261762f) ||   // /var/
         BEGINS(word, five, 0x2f6e69622f) ||   // /bin/
         BEGINS(word, six, 0x2f6e6962732f);    // /sbin/
}

// Longer names are reported each time.
enum { kWordsHashed = 16 };

// Whether the name, by its first bytes, may be in the project: the collector looks at the rest.
static __always_inline bool may_be_in_project(__u64 word) {
  return shared.project_mask && (word & shared.project_mask) == shared.project_word;
}

// `kind` is kAssayQueried or kAssayAbsent.
static __always_inline int report_lookup(struct task_struct* task, const struct member* member,
                                         unsigned int call, unsigned long kind, unsigned long first,
                                         const char* given) {
  const __u32 zero = 0;
  struct open_scratch* scratch = bpf_map_lookup_elem(&open_scratches, &zero);
  if (!scratch) return 0;
  // All words are hashed, whatever the length: if the loop could end early, the verifier would
  // check the rest of the program once for each possible end.
  __u64* words = (__u64*)scratch->text;
  __builtin_memset(words, 0, 8 * kWordsHashed);
  long length = bpf_probe_read_user_str(scratch->text, kAssayPathMax, given);
  if (length <= 1) return 0;
  const bool absolute = scratch->text[0] == '/';
  if (absolute && is_system_word(words[0]) && !may_be_in_project(words[0])) return 0;

  const __u64 answer = kind | (call & kAssayTellsSize) << 8;
  __u64 hash = mixed(shared.seed ^ shared.epoch, member->id | answer << 40);
  for (int i = 0; i < kWordsHashed; ++i) hash = mixed(hash, words[i]);
  if (!absolute) {
    const struct vfsmount* mount = 0;
    const struct dentry* dentry = 0;
    if (call & kAssayPathSecond && (int)first != kCurrentDirectory) {
      const struct file* directory = file_at(task, (int)first);
      if (!directory) return 0;
      mount = FIELD(file, directory, f_path.mnt);
      dentry = FIELD(file, directory, f_path.dentry);
    } else {
      const struct fs_struct* fs = FIELD(task_struct, task, fs);
      mount = FIELD(fs_struct, fs, pwd.mnt);
      dentry = FIELD(fs_struct, fs, pwd.dentry);
    }
    begin_walk(&scratch->walk, &shared, mount, dentry);
    hash = mixed(hash, scratch->walk.dentry);
  }
  __u64* slot = &seen[hash & (kAssaySeenSlots - 1)];
  if (*slot == hash && length <= 8 * kWordsHashed) return 0;

  __u64 at = 0;
  if (!absolute) {
    at = write_path(&scratch->walk, scratch->text);
    if (at > kAssayPathMax) return 0;
  }
  length = bpf_probe_read_user_str(scratch->text + at, kAssayPathMax, given);
  if (length <= 1) return 0;
  struct assay_message* message = &scratch->message;
  __builtin_memset(message, 0, sizeof *message);
  address(message, task);
  message->kind = kind;
  message->access = call & kAssayTellsSize;
  message->path_length = at;
  message->other_length = length - 1;
  if (send(message, at + length - 1, 2 * kAssayPathMax, false)) *slot = hash;
  return 0;
}
