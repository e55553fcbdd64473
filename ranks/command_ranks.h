// defines: CommandRanks and Whose, the processes that share what one command does.
#pragma once

#include <memory>
#include <optional>

#include "ranks/local_ranks.h"
#include "ranks/rank_group.h"

namespace basin {

/// Whose processes the ranks are. `this_programs`: whatever launcher started the process that this one works for, it has other work for
/// its processes.
enum class Whose { any_launchers, this_programs };

/// Those of a launcher (place_of_environment()), or else as many copies of this program as were asked for. ConfigError where they have
/// other builds or other processors, whose roundings differ: every rank does the arithmetic that is not shared by itself, and all must
/// come to the same bits.
class CommandRanks {
 public:
  explicit CommandRanks(int asked, Whose whose = Whose::any_launchers);
  const RankGroup& group() const { return group_ ? *group_ : RankGroup::alone(); }
  bool is_first() const { return group().is_first(); }
  /// Who goes on: the group, or after RankGroup::part() rank 0 by itself and nobody (null) else.
  const RankGroup* going_on() const {
    if (!group().has_parted()) return &group();
    return is_first() ? &RankGroup::alone() : nullptr;
  }

  /// What `work` returns. The other ranks hear of its fault.
  template <class F>
  auto run(const F& work) {
    try {
      const auto result = work();
      if (group_) group_->leave();
      return result;
    } catch (const RankLost&) {
      throw;
    } catch (const std::exception& error) {
      if (group_) group_->fail(one_line(error));
      throw;
    }
  }

 private:
  std::optional<LocalRanks> local_;
  std::unique_ptr<RankGroup> group_;
};

}  // namespace basin
