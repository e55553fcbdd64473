#include "runs/probe_record.h"

#include "core/provenance.h"

namespace basin {

ProbeRecord record_of(const ProbeResult& result, ProbeAttributes settings) {
  ProbeRecord record;
  record.probe = result.probe;
  record.status = result.status;
  record.message = result.message;
  // A name stands once.
  for (const auto& attribute : result.attributes) {
    std::erase_if(settings, [&](const auto& known) { return known.first == attribute.first; });
    settings.push_back(attribute);
  }
  settings.emplace_back("seconds", result.seconds);
  record.attributes = std::move(settings);
  record.provenance = collect_provenance();
  record.provenance.emplace_back("ended_utc", utc_now());
  record.quantities = result.quantities;
  return record;
}

}  // namespace basin
