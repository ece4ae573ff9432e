// Passes an open descriptor to another process, with a message, over a Unix socket. In wire and not
// in base, because the shim's tests, which use nothing above wire, pass the gate's listener as
// well.
//
// Makes only system calls: the gate sends between fork and exec.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace assay::wire {

// False if the message was not sent completely. `descriptor` may be -1: none.
inline bool send_message(int socket, const void* data, std::size_t size, int descriptor) {
  iovec content{const_cast<void*>(data), size};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(size);
}

// False if no complete message came: the other end has closed. `descriptor` is -1 if none came with
// it; else it is close-on-exec and owned by the caller.
inline bool receive_message(int socket, void* data, std::size_t size, int& descriptor) {
  descriptor = -1;
  iovec content{data, size};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  const cmsghdr* rights = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (rights != nullptr && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS) {
    std::memcpy(&descriptor, CMSG_DATA(rights), sizeof descriptor);
  }
  return got == static_cast<ssize_t>(size);
}

// The descriptor alone; a message cannot be empty.
inline bool send_descriptor(int socket, int descriptor) {
  const char byte = 0;
  return send_message(socket, &byte, sizeof byte, descriptor);
}

// -1 if none came.
inline int receive_descriptor(int socket) {
  char byte = 0;
  int descriptor = -1;
  receive_message(socket, &byte, sizeof byte, descriptor);
  return descriptor;
}

}  // namespace assay::wire
