// A library that is loaded before the program under test (LD_PRELOAD) and takes the place of its main(): libtorch, whose operators take
// 0.2 s to register at every start, is loaded once, and every call of the program is a fork of that process. A sixth of the time of `make
// test` went into those starts. Tests that watch, signal or kill the program start it themselves. All forks have one layout of addresses.
//
// One request is a message on the socket that FORK_SERVER_SOCKET names: five descriptors (the folder to be in, standard input, output and
// error, a file with the text of the request) and an int, the requester's process. The text: fields that end with 0, first how many
// arguments there are, then the mask of signals to ignore, the arguments, the environment. The answers: an int, the process that was
// forked, and, when it has ended, another, its status as of waitpid().
#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Main = int (*)(int, char**, char**);
Main program;

constexpr int kDescriptors = 5;
struct Request {
  int requester = 0;
  int descriptors[kDescriptors];  // folder, standard input, output and error, text
};

bool receive(int socket, Request& request) {
  char control[CMSG_SPACE(sizeof(request.descriptors))];
  iovec content{&request.requester, sizeof(request.requester)};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  if (::recvmsg(socket, &message, 0) != sizeof(request.requester)) return false;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_len != CMSG_LEN(sizeof(request.descriptors))) return false;
  std::memcpy(request.descriptors, CMSG_DATA(header), sizeof(request.descriptors));
  return true;
}

std::vector<char*> fields_of(int file) {
  static std::string text;  // the program's arguments point into it
  struct stat about {};
  ::fstat(file, &about);
  text.resize(static_cast<size_t>(about.st_size));
  if (::pread(file, text.data(), text.size(), 0) != about.st_size) std::exit(126);
  std::vector<char*> fields;
  for (size_t at = 0; at < text.size(); at += std::strlen(&text[at]) + 1) fields.push_back(&text[at]);
  return fields;
}

// Those that exec() would have handed down.
void take_limits_of(int requester) {
  for (int kind = 0; kind < RLIM_NLIMITS; ++kind) {
    rlimit limit{};
    const auto resource = static_cast<__rlimit_resource>(kind);
    if (::prlimit(requester, resource, nullptr, &limit) == 0) ::setrlimit(resource, &limit);
  }
}

void ignore(unsigned long mask) {
  for (int signal = 1; signal < 32; ++signal)
    if (mask >> (signal - 1) & 1) std::signal(signal, SIG_IGN);
}

[[noreturn]] void be_the_program(const Request& request) {
  std::vector<char*> fields = fields_of(request.descriptors[4]);
  const auto count = static_cast<size_t>(std::atoi(fields.at(0)));
  ignore(std::strtoul(fields.at(1), nullptr, 10));
  static std::vector<char*> arguments(fields.begin() + 2, fields.begin() + 2 + static_cast<long>(count));
  arguments.push_back(nullptr);
  static std::vector<char*> variables(fields.begin() + 2 + static_cast<long>(count), fields.end());
  variables.push_back(nullptr);
  environ = variables.data();
  if (::fchdir(request.descriptors[0]) != 0) std::exit(126);
  for (const int stream : {0, 1, 2}) ::dup2(request.descriptors[1 + stream], stream);
  ::close_range(3, ~0U, 0);
  take_limits_of(request.requester);
  std::exit(program(static_cast<int>(count), arguments.data(), environ));
}

int serve(int, char**, char**) {
  for (int signal = 1; signal < 32; ++signal) std::signal(signal, SIG_DFL);  // requests say which to ignore
  const int socket = std::atoi(std::getenv("FORK_SERVER_SOCKET"));
  for (Request request; receive(socket, request);) {
    const pid_t child = ::fork();
    if (child == 0) be_the_program(request);
    for (const int descriptor : request.descriptors) ::close(descriptor);
    int status = 126 << 8;
    ::send(socket, &child, sizeof(child), MSG_NOSIGNAL);
    if (child > 0) ::waitpid(child, &status, 0);
    ::send(socket, &status, sizeof(status), MSG_NOSIGNAL);
  }
  ::_exit(0);
}

}  // namespace

extern "C" int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(),
                                 void (*dynamic_fini)(), void* stack_end) {
  program = main;
  const auto start = reinterpret_cast<decltype(&__libc_start_main)>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  return start(serve, argc, argv, init, fini, dynamic_fini, stack_end);
}
