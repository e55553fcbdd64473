// defines: kAssignment, the best assignment of 20 x 20 sine numbers, and its score. Written by tests/oracles/linear_assignment.py; don't edit.
#pragma once


namespace basin::golden {

inline constexpr int kAssignment[] = {17, 18, 0, 3, 4, 7, 8, 11, 12, 15, 16, 19, 1, 2, 5, 6, 9, 10, 13, 14};
inline constexpr double kAssignmentScore = 9.897549545666395;

}  // namespace basin::golden
