// defines: DOES_NOT_APPLY(), the end of a case that its parameter rules out.
#pragma once

#include <gtest/gtest.h>

/// `DOES_NOT_APPLY() << "why"`: on this machine as on any other there is nothing to test, so the case needs no ctest test of its own. A
/// GTEST_SKIP() has one (scripts/cmake/DiscoverTests.cmake), which shows what this machine can't test.
#define DOES_NOT_APPLY() GTEST_SKIP()
