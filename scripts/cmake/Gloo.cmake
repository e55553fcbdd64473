# basin_gloo: what torch's header of its Gloo process group includes from Gloo, whose headers the wheel lacks. Declarations alone: our
# objects refer to ProcessGroupGloo, its options and devices in libtorch_cpu, and to nothing of Gloo's own, so a Gloo of another version
# than torch's own has no way in. Nothing may be made of GlooStore or derived from it here, since its table of functions would be ours then.
set(BASIN_GLOO ${CMAKE_BINARY_DIR}/generated/gloo_declarations)
foreach(empty IN ITEMS config.h algorithm.h common/error.h)
  file(CONFIGURE OUTPUT ${BASIN_GLOO}/gloo/${empty} CONTENT "#pragma once\n")
endforeach()
file(CONFIGURE OUTPUT ${BASIN_GLOO}/gloo/transport/device.h CONTENT [[
#pragma once
namespace gloo::transport {
class Device;
class UnboundBuffer;
}
]])
file(CONFIGURE OUTPUT ${BASIN_GLOO}/gloo/context.h CONTENT [[
#pragma once
#include <chrono>
#include <memory>
#include <gloo/transport/device.h>
namespace gloo {
class Context {
 public:
  void setTimeout(std::chrono::milliseconds);
};
}
]])
file(CONFIGURE OUTPUT ${BASIN_GLOO}/gloo/rendezvous/store.h CONTENT [[
#pragma once
#include <chrono>
#include <string>
#include <vector>
namespace gloo::rendezvous {
class Store {
 public:
  virtual ~Store();
  virtual void set(const std::string&, const std::vector<char>&) = 0;
  virtual std::vector<char> get(const std::string&) = 0;
  virtual void wait(const std::vector<std::string>&) = 0;
  virtual void wait(const std::vector<std::string>&, const std::chrono::milliseconds&);
};
}
]])
add_library(basin_gloo INTERFACE)
target_include_directories(basin_gloo SYSTEM INTERFACE $<BUILD_INTERFACE:${BASIN_GLOO}>)
