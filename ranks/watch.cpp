#include "ranks/watch.h"

#include <chrono>

#include "ranks/words.h"

namespace basin {
namespace {

constexpr auto kBeat = std::chrono::seconds(1);
constexpr int kBeatsToFindOut = 4;
constexpr char kLost[] = "watch/lost";

std::string beat_key(int rank) { return fmt::format("watch/beat/{}", rank); }

}  // namespace

RankWatch::RankWatch(c10::intrusive_ptr<c10d::Store> store, int rank, std::vector<std::string> names,
                     double silence)
    : store_(std::move(store)), rank_(rank), names_(std::move(names)), silence_(silence) {
  thread_ = std::thread([this] { watch(); });
}

RankWatch::~RankWatch() { stop(); }

void RankWatch::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::string RankWatch::what_is_lost() const {
  const std::lock_guard lock(mutex_);
  if (!lost_.empty() || seconds_since(last_look_) <= silence_) return lost_;
  return fmt::format("{} has been silent for {:.0f} s", names_[0], seconds_since(last_look_));
}

void RankWatch::say(const std::string& what) {
  {
    const std::lock_guard lock(mutex_);
    if (lost_.empty()) lost_ = what;
  }
  changed_.notify_all();
}

void RankWatch::announce(const std::string& why) noexcept {
  try {
    store_->compareSet(kLost, {}, bytes_of(fmt::format("{}: {}", names_[static_cast<size_t>(rank_)], why)));
  } catch (const std::exception&) {
    return;  // rank 0 is gone, which the others see for themselves
  }
}

std::vector<int64_t> RankWatch::beats() {
  std::vector<int64_t> counted;
  for (int rank = 0; rank < static_cast<int>(names_.size()); ++rank)
    counted.push_back(store_->add(beat_key(rank), rank == rank_ ? 1 : 0));
  return counted;
}

void RankWatch::watch() {
  std::vector<int64_t> last(names_.size(), -1);
  std::vector<double> since(names_.size(), 0);
  const Clock::time_point start = Clock::now();
  std::unique_lock lock(mutex_);
  while (!stopping_ && lost_.empty()) {
    lock.unlock();
    const double now = seconds_since(start);
    try {
      if (rank_ != 0) store_->add(beat_key(rank_), 1);
      if (store_->check({kLost})) {
        say(text_of(store_->get(kLost)));
      }
      if (rank_ == 0) {
        const std::vector<int64_t> counted = beats();
        for (size_t rank = 0; rank < counted.size(); ++rank) {
          if (counted[rank] != last[rank]) since[rank] = now;
          last[rank] = counted[rank];
          if (now - since[rank] <= silence_) continue;
          const std::string what =
              fmt::format("{} has been silent for {:.0f} s", names_[rank], now - since[rank]);
          store_->compareSet(kLost, {}, bytes_of(what));
          say(what);
        }
      }
    } catch (const std::exception&) {
      say(names_[0] + " is gone, or its store doesn't answer");
    }
    lock.lock();
    last_look_ = Clock::now();
    changed_.wait_for(lock, kBeat, [&] { return stopping_; });
  }
}

std::string RankWatch::find_out() {
  const std::string known = what_is_lost();
  if (!known.empty()) return known;
  const auto standing = [&](const std::vector<int64_t>& before, const std::vector<int64_t>& after) {
    std::string still;
    for (size_t rank = 0; rank < names_.size(); ++rank)
      if (static_cast<int>(rank) != rank_ && before[rank] == after[rank])
        still += (still.empty() ? "" : ", ") + names_[rank];
    return still;
  };
  try {
    const std::vector<int64_t> before = beats();
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kBeat * kBeatsToFindOut, [&] { return !lost_.empty(); });
    if (!lost_.empty()) return lost_;
    lock.unlock();
    const std::string still = standing(before, beats());
    const std::string what = still.empty() ? "the connection to another rank broke" : still + " is gone";
    store_->compareSet(kLost, {}, bytes_of(what));
    say(what);
  } catch (const std::exception&) {
    say(names_[0] + " is gone");
  }
  return what_is_lost();
}

}  // namespace basin
