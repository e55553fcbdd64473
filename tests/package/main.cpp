// A user's program: sees every room through the installed headers and libraries, and makes a network.
#include <cstdio>

#include "core/seed.h"
#include "models/registry.h"
#include "probes/registry.h"

int main() {
  for (const auto& entry : basin::probe_registry()) std::printf("probe %s\n", entry.name.c_str());
  for (const auto& entry : basin::model_registry()) {
    if (entry.needs_file) continue;
    const auto options = entry.make_options();
    at::Generator generator = basin::make_generator(basin::derive_seed(1, "init"));
    const auto model = entry.make(*options, {3, 32, 32, 10}, generator);
    std::printf("model %s with %zu parameters\n", entry.name.c_str(), model->parameters().size());
  }
}
