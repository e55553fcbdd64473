// defines: AuditRow and AuditFile, what an audit found and its HDF5 file.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/options.h"
#include "runs/audit/verdict.h"

namespace basin {

/// One quantity of one probe under one transformation.
struct AuditRow {
  std::string probe, settings, quantity, definition, transformation;
  Kept kind = Kept::function;
  double strength = 0;
  AuditValue before = {}, after = {};
  Verdict verdict = Verdict::unresolved;

  double ratio() const { return after.value / before.value; }
  /// The number is no property of the function.
  bool greyed() const { return verdict == Verdict::moved && kind == Kept::function; }
};

struct AuditFile {
  /// Attributes of the root: run_id, checkpoint, checkpoint_sha256, n_examples, subset_hash, dtype, seed, ...
  std::vector<std::pair<std::string, OptionValue>> attributes;
  std::vector<std::pair<std::string, std::string>> provenance;
  std::vector<AuditRow> rows;
};

/// One column per field under /audit, in the rows' order.
void write_audit_file(const std::string& path, const AuditFile& audit);

}  // namespace basin
