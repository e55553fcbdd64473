// defines: Share, consecutive items of a list; share_of(), those of one among several.
#pragma once

#include <cstdint>

namespace basin {

/// Items [first, last) of a list.
struct Share {
  int64_t first = 0, last = 0;
  int64_t count() const { return last - first; }
};

/// Which of `count` items are those of `member`, 0 to `members` - 1: consecutive, in the order of members, as many as another's or one more.
inline Share share_of(int64_t count, int64_t member, int64_t members) {
  return {count * member / members, count * (member + 1) / members};
}

}  // namespace basin
