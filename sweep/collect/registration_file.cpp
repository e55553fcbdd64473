#include "sweep/collect/registration_file.h"

#include <filesystem>

#include "core/error.h"
#include "core/files.h"

namespace basin {

namespace fs = std::filesystem;

std::string registration_path(const SweepPaths& out) { return out.path() + "/registration.toml"; }

bool same_name(const Claim& a, const Claim& b) { return a.kind == b.kind && a.name == b.name; }

Registration parse_registration(const std::string& text, const std::string& file_name) {
  Registration registration;
  const TomlDocument document = parse_toml(text, file_name);
  OptionTable head;
  head.add("hash", registration.hash, anything(), "");
  set_all(head, document.entries);
  for (const TomlTableArray& array : document.table_arrays) {
    if (array.key != "registered")
      throw ConfigError(fmt::format("{}: unknown table [[{}]]", array.where.front(), array.key));
    for (const std::vector<TomlEntry>& entries : array.tables) {
      RegisteredClaim& claim = registration.claims.emplace_back();
      OptionTable table;
      table.add("kind", claim.claim.kind, one_of({"contrast", "hypothesis"}), "");
      table.add("name", claim.claim.name, anything(), "");
      table.add("hash", claim.claim.hash, anything(), "");
      table.add("utc", claim.utc, anything(), "");
      table.add("runs_before", claim.runs_before, anything(), "");
      table.add("exploratory", claim.claim.exploratory, anything(), "");
      set_all(table, entries);
    }
  }
  return registration;
}

Registration read_registration(const SweepPaths& out) {
  const std::string path = registration_path(out);
  return fs::exists(path) ? parse_registration(read_file(path), path) : Registration();
}

void write_registration(const SweepPaths& out, const Registration& registration) {
  if (registration.claims.empty()) {
    fs::remove(registration_path(out));  // what an earlier one asked is asked no more
    return;
  }
  std::string text =
      fmt::format("# What this study claims, and since when; written by basin sweep.\nhash = \"{}\"\n",
                  registration.hash);
  for (const RegisteredClaim& claim : registration.claims) {
    text += fmt::format(
        "\n[[registered]]\nkind = \"{}\"\nname = \"{}\"\nhash = \"{}\"\nutc = \"{}\"\nruns_before = {}\n"
        "exploratory = {}\n",
        claim.claim.kind, claim.claim.name, claim.claim.hash, claim.utc, claim.runs_before,
        claim.runs_before || claim.claim.exploratory);
  }
  write_file_atomically(registration_path(out), text);
}

}  // namespace basin
