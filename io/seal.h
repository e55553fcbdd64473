// defines: Seal, the block in front of every HDF5 file of Basin's that shows whether the file is intact.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace basin {

/// HDF5's readers skip a user block of 512 bytes; ours holds, little-endian,
///
///   0    8  magic "\x89BSEAL\r\n"
///   8    8  version of the block, 1
///   16   8  bytes that follow the block
///   24  32  SHA-256 of them
///   56   8  update: the root attribute; -1 where there is none
///   64  64  kind: the schema's name, zero-padded
///   128 256 label of a checkpoint, zero-padded; empty where it has none or it doesn't fit
///   508  4  CRC-32 of the 508 bytes before
///
/// Some files with damaged metadata crash libhdf5 1.10 or keep it busy for ever, and a changed attribute has no checksum there. So the
/// seal is checked before libhdf5 sees the file: a file with a whole seal is, byte for byte, what was written. Cost: one pass of
/// SHA-256, about a second per gigabyte. It guards against damage and edits, not against somebody who seals anew.
struct Seal {
  std::string kind, label;
  int64_t update = -1;
};

inline constexpr int64_t kSealBytes = 512;
inline constexpr std::string_view kHdf5Signature("\x89HDF\r\n\x1a\n");

/// The block for `content`.
std::string seal_block(const Seal& seal, std::string_view content);

/// What the block of the file at `path` says, without a look at what follows but for its length. nullopt for an HDF5 file
/// without a block: an older version's, or another program's. DamagedError where the block is damaged or the length is another;
/// IoError where the file can't be read or has nothing to do with HDF5.
std::optional<Seal> read_seal(const std::string& path);

/// The same, and DamagedError where what follows isn't what was sealed.
std::optional<Seal> check_seal(const std::string& path);

}  // namespace basin
