#include "ranks/rank_group.h"

#include <ATen/ops/full.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Logging.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include "core/interrupt.h"
#include "core/math/nan.h"
#include "core/provenance.h"
#include "ranks/device_sums.h"
#include "ranks/watch.h"
#include "ranks/words.h"

namespace basin {
namespace {

using std::chrono::milliseconds;

// Nothing is given up for lasting long: the watch knows who is gone.
constexpr milliseconds kAnyTime = std::chrono::hours(24 * 30);
constexpr std::chrono::microseconds kLookAtDevice(20);
constexpr double kConnect = 5;  // seconds of an attempt to reach rank 0, between looks for signals

milliseconds milliseconds_of(double seconds) {
  return milliseconds(std::max<int64_t>(1, std::llround(1000 * seconds)));  // 0 would be for ever
}

std::shared_ptr<gloo::transport::Device> device_for(bool one_host) {
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  try {
    if (interface && *interface) return c10d::ProcessGroupGloo::createDeviceForInterface(interface);
    if (one_host) return c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
    return c10d::ProcessGroupGloo::createDefaultDevice();
  } catch (const std::exception& error) {
    if (interface && *interface)
      throw ConfigError(fmt::format("GLOO_SOCKET_IFNAME = \"{}\": no such network interface ({})", interface,
                                    one_line(error)));
    throw ConfigError(fmt::format(
        "this host's name leads to no network interface: set GLOO_SOCKET_IFNAME ({})", one_line(error)));
  }
}

c10::intrusive_ptr<c10d::Store> meet(const RankPlace& place, double seconds) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(place.port);
  options.isServer = place.rank == 0;
  options.numWorkers = place.size;
  options.waitWorkers = false;
  options.masterListenFd = place.listening;
  for (const Clock::time_point start = Clock::now();;) {
    throw_if_interrupted();
    const double left = seconds - seconds_since(start);
    options.timeout = milliseconds_of(std::min(left, kConnect));
    try {
      auto store = c10::make_intrusive<c10d::TCPStore>(place.host, options);
      store->setTimeout(milliseconds_of(seconds));
      return store;
    } catch (const std::system_error& error) {
      throw ConfigError(
          fmt::format("rank {} can't start a thread: {} (too little memory, or too many processes)",
                      place.rank, error.code().message()));
    } catch (const std::exception& error) {
      if (place.rank == 0)
        throw ConfigError(
            fmt::format("rank 0 can't listen at port {} (MASTER_PORT): {}", place.port, one_line(error)));
      if (left > kConnect) continue;
      throw RankLost(fmt::format("rank 0 was not at {}:{} within {:.0f} s: {}", place.host, place.port,
                                 seconds, one_line(error)));
    }
  }
}

/// What torch has to log of sockets, with its stack, is in our one line. In tests ranks are threads: torch's record of the last two
/// thousand sums, one for the process and without a lock, crashed there, and nobody here reads it.
void silence_torch() {
  static std::once_flag done;
  std::call_once(done, [] {
    if (!std::getenv("TORCH_CPP_LOG_LEVEL")) FLAGS_caffe2_log_level = c10::GLOG_FATAL;
    ::setenv("TORCH_FR_BUFFER_SIZE", "0", 0);
  });
}

/// Whether another rank sets the key within `seconds`, by looks between which signals are seen.
bool comes(c10d::Store& store, const std::string& key, double seconds, milliseconds look,
           const std::function<void()>& meanwhile = {}) {
  for (const Clock::time_point start = Clock::now();;) {
    throw_if_interrupted();
    if (meanwhile) meanwhile();
    try {
      store.wait({key}, look);
      return true;
    } catch (const std::exception&) {
      if (seconds_since(start) > seconds) return false;
    }
    try {
      if (store.check({key})) return true;
    } catch (const std::exception&) {
      throw RankLost("rank 0 is gone, or can't be reached any more");
    }
  }
}

c10::intrusive_ptr<c10d::Store> prefixed(const std::string& prefix,
                                         const c10::intrusive_ptr<c10d::Store>& store) {
  return c10::make_intrusive<c10d::PrefixStore>(prefix, store);
}

c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_of(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                                   int size, bool one_host) {
  const auto options = c10d::ProcessGroupGloo::Options::create(kAnyTime);
  options->devices.push_back(device_for(one_host));
  options->threads = 2;
  return c10::make_intrusive<c10d::ProcessGroupGloo>(prefixed("gloo", store), rank, size, options);
}

}  // namespace

struct RankGroup::Link {
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo;
  std::optional<at::Device> device;        // by use_device()
  c10::intrusive_ptr<c10d::Backend> nccl;  // of GPUs' tensors; null: they go through the host
  std::shared_ptr<RankWatch> watch;
  std::vector<std::string> names;   // by rank
  bool one_host = false;            // has every rank, of the whole run
  int64_t messages = 0, parts = 0;  // words that went through the store; groups of first ranks
  bool is_part = false;
  RankTraffic traffic;
  bool left = false;
  milliseconds look{};

  /// Some of these ranks by themselves, this process `rank` among them; without a watch.
  std::unique_ptr<Link> part(const std::string& prefix, int rank, std::vector<std::string> members) const;
  c10d::Backend& backend_of(const at::Tensor& tensor) const;
  /// Looks for those that are gone while it waits.
  void wait(c10d::Work& work) const;
  /// The value of a key that another rank will set.
  std::string word(const std::string& key) const;
  /// A signal that all ranks were sent ends them one after another: it is no loss.
  [[noreturn]] void lose() const {
    throw_if_interrupted();
    throw RankLost(watch->find_out());
  }
};

std::unique_ptr<RankGroup::Link> RankGroup::Link::part(const std::string& prefix, int rank,
                                                       std::vector<std::string> members) const {
  auto link = std::make_unique<Link>();
  link->store = prefixed(prefix, store);
  link->gloo = gloo_of(link->store, rank, static_cast<int>(members.size()), one_host);
  link->names = std::move(members);
  link->one_host = one_host;
  link->look = look;
  return link;
}

c10d::Backend& RankGroup::Link::backend_of(const at::Tensor& tensor) const {
  return nccl && !tensor.is_cpu() ? *nccl : *gloo;
}

// NCCL's work ends on the device, where a lost rank is waited for in vain; the host looks, and lets the device wait for nothing but what
// is done.
void RankGroup::Link::wait(c10d::Work& work) const {
  while (nccl && !work.isCompleted()) {
    if (!watch->what_is_lost().empty()) lose();
    std::this_thread::sleep_for(kLookAtDevice);
  }
  while (true) {
    const bool has_ended =
        work.isCompleted();  // before the wait: work that ends as a look ends hasn't failed
    try {
      work.wait(look);
      return;
    } catch (const std::exception&) {
      if (has_ended || !watch->what_is_lost().empty()) lose();
    }
  }
}

std::string RankGroup::Link::word(const std::string& key) const {
  while (true) {
    try {
      store->wait({key}, look);
      return text_of(store->get(key));
    } catch (const std::exception&) {
      if (!watch->what_is_lost().empty()) lose();
    }
  }
}

namespace {

class Pending final : public PendingSum {
 public:
  Pending(std::function<void()> wait, std::function<bool()> is_done)
      : wait_(std::move(wait)), is_done_(std::move(is_done)) {}
  void wait() override { wait_(); }
  bool is_done() const override { return is_done_(); }

 private:
  std::function<void()> wait_;
  std::function<bool()> is_done_;
};

std::atomic<bool> has_met_others = false;  // ranks may be threads

}  // namespace

bool RankGroup::has_joined() { return has_met_others; }

RankGroup::RankGroup(RankPlace place) : place_(std::move(place)) {}

const RankGroup& RankGroup::alone() {
  static const RankGroup one{RankPlace()};
  return one;
}

std::unique_ptr<RankGroup> RankGroup::join(const RankPlace& place, double seconds, double look,
                                           const std::function<void()>& meanwhile) {
  std::unique_ptr<RankGroup> group(new RankGroup(place));
  if (place.size == 1) return group;
  has_met_others = true;
  require_open_files(place.size);
  // Writing to a rank that is gone is a fault to report, not the end of this process.
  std::signal(SIGPIPE, SIG_IGN);
  silence_torch();
  auto link = std::make_unique<Link>();
  link->look = milliseconds_of(look);
  link->store = meet(place, seconds);
  const std::string mine = fmt::format("rank {} (pid {} on {})", place.rank, getpid(), host_name());
  const auto key = [](int rank) { return fmt::format("name/{}", rank); };
  link->store->set(key(place.rank), bytes_of(mine));
  const Clock::time_point start = Clock::now();
  for (int rank = 0; rank < place.size; ++rank) {
    if (!comes(*link->store, key(rank), seconds - seconds_since(start), link->look, meanwhile)) {
      std::vector<int> missing;
      for (int other = 0; other < place.size; ++other)
        if (!link->store->check({key(other)})) missing.push_back(other);
      throw RankLost(fmt::format("{} of {} ranks came within {:.0f} s; missing: {}",
                                 static_cast<size_t>(place.size) - missing.size(), place.size, seconds,
                                 fmt::join(missing, ", ")));
    }
    link->names.push_back(text_of(link->store->get(key(rank))));
  }
  link->one_host = place.local_size == place.size;
  link->gloo = gloo_of(link->store, place.rank, place.size, link->one_host);
  link->watch = std::make_shared<RankWatch>(link->store->clone(), place.rank, link->names, kSilence);
  group->link_ = std::move(link);
  return group;
}

std::unique_ptr<RankGroup> RankGroup::first(int count) const {
  const int64_t number = link_ ? link_->parts++ : 0;
  if (rank() >= count) return nullptr;
  RankPlace place = place_;
  place.size = count;
  std::unique_ptr<RankGroup> group(new RankGroup(place));
  if (count == 1) return group;
  group->link_ = link_->part(fmt::format("first/{}", number), rank(),
                             {link_->names.begin(), link_->names.begin() + count});
  Link& link = *group->link_;
  if (link_->nccl) link.nccl = nccl_backend(prefixed("nccl", link.store), rank(), count, kAnyTime);
  link.watch = link_->watch;
  link.is_part = true;
  return group;
}

std::unique_ptr<RankGroup> RankGroup::pair(int other) const {
  RankPlace place = place_;
  place.rank = is_first() ? 0 : 1;
  place.size = 2;
  std::unique_ptr<RankGroup> group(new RankGroup(place));
  group->link_ = link_->part(fmt::format("pair/{}", other), place.rank, {name_of(0), name_of(other)});
  Link& link = *group->link_;
  link.watch = std::make_shared<RankWatch>(link.store->clone(), place.rank, link.names, kSilence);
  return group;
}

bool RankGroup::has_lost() const { return link_ && !link_->watch->what_is_lost().empty(); }

void RankGroup::part() const {
  if (!link_) return;
  link_->watch->stop();
  link_->left = true;
}

bool RankGroup::has_parted() const { return link_ && link_->left; }

// Where a rank is lost, or this one fails, Gloo's threads may wait for ever: nothing is cleaned up then, the process is about to end.
RankGroup::~RankGroup() {
  if (link_ && !link_->left) (void)link_.release();
}

at::Device RankGroup::use_device(at::Device asked) const {
  if (!link_) return asked;
  if (link_->device) return *link_->device;
  agree("the device", asked.is_cpu() ? "a CPU" : "a GPU");
  link_->device = asked;
  if (asked.is_cpu()) return asked;
  const c10::impl::VirtualGuardImpl gpus(asked.type());
  const at::Device device(asked.type(),
                          static_cast<c10::DeviceIndex>(place_.local_rank % gpus.deviceCount()));
  gpus.setDevice(device);
  link_->device = device;
  const std::vector<std::string> used = gather(host_name() + " " + gpu_identity(device));
  const bool own = std::set<std::string>(used.begin(), used.end()).size() == used.size();
  if (own) link_->nccl = nccl_backend(prefixed("nccl", link_->store), rank(), size(), kAnyTime);
  return device;
}

int64_t RankGroup::even_piece(int64_t items, int64_t most) const {
  const int64_t n = size(), rounds = (items + n * most - 1) / (n * most);
  return n == 1 ? most : std::min(most, (items + n * rounds - 1) / (n * rounds));
}

std::unique_ptr<PendingSum> RankGroup::begin_sum(const at::Tensor& tensor) const {
  if (!link_) return std::make_unique<Pending>([] {}, [] { return true; });
  ++link_->traffic.sums;
  link_->traffic.bytes += static_cast<int64_t>(tensor.nbytes());
  std::vector<at::Tensor> tensors{tensor.detach()};
  try {
    const auto work = link_->backend_of(tensor).allreduce(tensors, c10d::AllreduceOptions());
    const auto wait = [this, work, is_cpu = tensor.is_cpu()] {
      const Clock::time_point start = Clock::now();
      link_->wait(*work);
      // On a GPU what was computed before is waited for too, and can't be told from it.
      link_->traffic.waited += is_cpu ? seconds_since(start) : kNaN;
    };
    return std::make_unique<Pending>(wait, [work] { return work->isCompleted(); });
  } catch (const std::exception&) {
    link_->lose();
  }
}

void RankGroup::sum(const at::Tensor& tensor) const { begin_sum(tensor)->wait(); }

double RankGroup::sum(double here) const {
  if (!link_) return here;
  const at::Tensor whole = at::full({}, here, at::kDouble);
  sum(whole);
  return whole.item<double>();
}

void RankGroup::put_together(const at::Tensor& whole) const {
  if (link_) sum(whole.view(-1).view(at::kByte));
}

RankTraffic RankGroup::traffic() const { return link_ ? link_->traffic : RankTraffic(); }

void RankGroup::broadcast(const at::Tensor& tensor) const {
  if (!link_) return;
  std::vector<at::Tensor> tensors{tensor.detach()};
  link_->wait(*link_->backend_of(tensor).broadcast(tensors, c10d::BroadcastOptions()));
}

std::string RankGroup::broadcast(const std::string& words) const {
  if (!link_) return words;
  const std::string key = fmt::format("words/{}", link_->messages++);
  if (!is_first()) return link_->word(key);
  link_->store->set(key, bytes_of(words));
  return words;
}

std::vector<std::string> RankGroup::gather(const std::string& words) const {
  if (!link_) return {words};
  const std::string key = fmt::format("words/{}", link_->messages++);
  link_->store->set(fmt::format("{}/{}", key, rank()), bytes_of(words));
  std::vector<std::string> all;
  for (int rank = 0; rank < size(); ++rank) all.push_back(link_->word(fmt::format("{}/{}", key, rank)));
  return all;
}

bool RankGroup::any(bool here) const { return sum(here ? 1.0 : 0.0) > 0; }

void RankGroup::agree(const std::string& what, const std::string& words) const {
  const std::vector<std::string> all = gather(words);
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    wait_for_readers();
    throw ConfigError(fmt::format("ranks disagree on {}: {} has {}, {} has {}", what, name_of(0), all[0],
                                  name_of(static_cast<int>(rank)), all[rank]));
  }
}

void RankGroup::wait_for_readers() const {
  const std::string key = fmt::format("words/{}", link_->messages++);
  if (!is_first()) return link_->store->set(fmt::format("{}/{}", key, rank()), bytes_of("read"));
  try {
    for (int rank = 1; rank < size(); ++rank) link_->word(fmt::format("{}/{}", key, rank));
  } catch (const RankLost&) {
    // One that has ended reads nothing any more.
  }
}

bool RankGroup::all_say(const std::string& words, double seconds) const {
  if (!link_) return true;
  const std::string key = fmt::format("words/{}", link_->messages++);
  link_->store->set(fmt::format("{}/{}", key, rank()), bytes_of(words));
  const Clock::time_point start = Clock::now();
  for (int rank = 0; rank < size(); ++rank) {
    const std::string theirs = fmt::format("{}/{}", key, rank);
    while (!link_->store->check({theirs})) {
      if (seconds_since(start) > seconds || !link_->watch->what_is_lost().empty()) return false;
      std::this_thread::sleep_for(milliseconds(20));
    }
    if (text_of(link_->store->get(theirs)) != words) return false;
  }
  return true;
}

std::string RankGroup::name_of(int rank) const {
  return link_ ? link_->names.at(static_cast<size_t>(rank)) : fmt::format("rank {}", rank);
}

void RankGroup::leave() {
  if (!link_ || link_->left) return;
  gather("done");
  if (link_->nccl) link_->nccl->shutdown();
  if (link_->is_part) {
    link_->left = true;
    return;
  }
  link_->watch->stop();
  // Rank 0 has the store, and goes last: the others ask it until they have heard of all.
  if (!is_first()) link_->store->set(fmt::format("left/{}", rank()), bytes_of("left"));
  for (int rank = 1; is_first() && rank < size(); ++rank) link_->store->wait({fmt::format("left/{}", rank)});
  link_->left = true;
}

void RankGroup::fail(const std::string& why) noexcept {
  if (link_) link_->watch->announce(why);
}

}  // namespace basin
