#include "tests/support/fork_client.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <stdexcept>

#include "tests/support/environment.h"

namespace basin::testing {
namespace {

void need(bool done, const char* what) {
  if (!done) throw std::runtime_error(std::string("fork server: ") + what);
}

unsigned long ignored_signals() {
  unsigned long mask = 0;
  for (int signal = 1; signal < 32; ++signal) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN)
      mask |= 1UL << static_cast<unsigned>(signal - 1);
  }
  return mask;
}

std::string request_text(const std::vector<std::string>& arguments) {
  std::string text = std::to_string(arguments.size() + 1) + '\0' + std::to_string(ignored_signals()) + '\0';
  text += environment("BASIN_BINARY") + '\0';
  for (const std::string& argument : arguments) text += argument + '\0';
  for (char** variable = environ; *variable != nullptr; ++variable) text += std::string(*variable) + '\0';
  return text;
}

void send_with(int socket, const std::array<int, 5>& descriptors) {
  int requester = ::getpid();
  std::array<char, CMSG_SPACE(sizeof(descriptors))> control{};
  iovec content{&requester, sizeof(requester)};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(descriptors));
  std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof(descriptors));
  need(::sendmsg(socket, &message, MSG_NOSIGNAL) == sizeof(requester), "it has ended");
}

}  // namespace

ForkServer* ForkServer::of_this_process() {
  static const char* library = std::getenv("BASIN_FORK_SERVER");
  if (library == nullptr) return nullptr;
  static ForkServer server(library);
  return &server;
}

ForkServer::ForkServer(const char* library) {
  std::array<int, 2> ends{};
  need(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0, "no socket");
  const std::string binary = environment("BASIN_BINARY");
  const pid_t child = ::fork();
  need(child >= 0, "cannot fork");
  if (child == 0) {
    ::fcntl(ends[1], F_SETFD, 0);
    ::setenv("LD_PRELOAD", library, 1);
    ::setenv("FORK_SERVER_SOCKET", std::to_string(ends[1]).c_str(), 1);
    ::execl(binary.c_str(), binary.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  socket_ = ends[0];
}

int ForkServer::answer() const {
  int number = 0;
  need(::recv(socket_, &number, sizeof(number), 0) == sizeof(number), "it has ended");
  return number;
}

int ForkServer::run(const std::vector<std::string>& arguments, int out, int error) {
  const std::string text = request_text(arguments);
  const int request = ::memfd_create("request", MFD_CLOEXEC),
            folder = ::open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  need(::write(request, text.data(), text.size()) == static_cast<ssize_t>(text.size()), "no memory");
  send_with(socket_, {folder, STDIN_FILENO, out, error, request});
  ::close(folder);
  ::close(request);
  answer();  // the process's number
  return answer();
}

}  // namespace basin::testing
