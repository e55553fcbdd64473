// main() of every test program: ends without taking libtorch apart.
#include <gmock/gmock.h>

#include "core/runtime.h"

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  basin::end_process(RUN_ALL_TESTS());
}
