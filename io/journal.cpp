#include "io/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "core/error.h"
#include "core/files.h"
#include "io/journal_codec.h"
#include "io/journal_frames.h"

namespace basin {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kSyncInterval = std::chrono::seconds(10);

[[noreturn]] void fail(const std::string& path, const char* what) {
  throw IoError(fmt::format("{}: cannot {}: {}", path, what, std::strerror(errno)));
}

void decode(JournalDecoder& decoder, const std::string& path, const Frame& frame) {
  try {
    decoder.take(frame.payload);
  } catch (const std::exception& error) {
    throw IoError(fmt::format("{}: malformed frame at byte {}: {}", path, frame.start, error.what()));
  }
}

}  // namespace

struct JournalWriter::State {
  std::string path;
  int descriptor = -1;
  uint64_t offset = 0;
  Clock::time_point synced = Clock::now();
  std::vector<Table> tables;  // definitions, in order

  ~State() {
    if (descriptor >= 0) ::close(descriptor);
  }

  void open(int flags) {
    descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC | flags, 0644);
    if (descriptor < 0) fail(path, "open");
  }

  /// All or nothing: where the disk is full the file keeps its last whole frame.
  void write(const std::string& bytes) {
    size_t written = 0;
    while (written < bytes.size()) {
      const ssize_t n = ::pwrite(descriptor, bytes.data() + written, bytes.size() - written,
                                 static_cast<off_t>(offset + written));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        const int error = errno;
        if (::ftruncate(descriptor, static_cast<off_t>(offset)) != 0)
          errno = error;  // a torn frame: replay drops it
        errno = error;
        fail(path, "write");
      }
      written += static_cast<size_t>(n);
    }
    offset += bytes.size();
  }

  void sync() {
    if (::fsync(descriptor) != 0) fail(path, "sync");
    synced = Clock::now();
  }

  const Table* find(const std::string& name, size_t* index) const {
    for (*index = 0; *index < tables.size(); ++*index) {
      if (tables[*index].name == name) return &tables[*index];
    }
    return nullptr;
  }
};

JournalWriter::JournalWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
JournalWriter::JournalWriter(JournalWriter&&) noexcept = default;
JournalWriter& JournalWriter::operator=(JournalWriter&&) noexcept = default;
JournalWriter::~JournalWriter() = default;

JournalWriter JournalWriter::create(const std::string& path, const RunHeader& header) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->open(O_CREAT | O_EXCL);
  state->write(journal_start() + framed(encode_header(header, journal_now())));
  state->sync();
  const std::string folder = std::filesystem::path(path).parent_path().string();
  fsync_path(folder.empty() ? "." : folder);
  return JournalWriter(std::move(state));
}

JournalWriter JournalWriter::resume(const std::string& path, uint64_t offset) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->open(0);
  const std::string journal = read_file(path);
  if (journal.size() < offset) {
    throw IoError(
        fmt::format("{}: {} bytes, but its checkpoint was taken at byte {}", path, journal.size(), offset));
  }
  bool torn = false;
  JournalDecoder decoder;
  for (const Frame& frame : split_frames(path, std::string_view(journal).substr(0, offset), &torn)) {
    decode(decoder, path, frame);
  }
  if (torn || !decoder.has_header())
    throw IoError(fmt::format("{}: no frame ends at the checkpoint's byte {}", path, offset));
  for (const std::string& name : decoder.table_names()) {
    Table& table = decoder.record().tables.at(name);
    table.rows.clear();
    state->tables.push_back(table);
  }
  if (::ftruncate(state->descriptor, static_cast<off_t>(offset)) != 0) fail(path, "cut");
  state->offset = offset;
  state->sync();
  return JournalWriter(std::move(state));
}

void JournalWriter::define_table(const Table& definition) {
  size_t index = 0;
  if (const Table* known = state_->find(definition.name, &index)) {  // after resume
    TORCH_CHECK(known->row_width() == definition.row_width(), "table ", definition.name,
                " was defined with other columns");
    return;
  }
  Table columns = definition;
  columns.rows.clear();
  state_->write(framed(encode_table(columns)));
  state_->tables.push_back(std::move(columns));
}

void JournalWriter::append_row(const std::string& table, const std::vector<double>& row) {
  size_t index = 0;
  const Table* definition = state_->find(table, &index);
  TORCH_CHECK(definition, "table ", table, " is not defined");
  TORCH_CHECK(static_cast<int64_t>(row.size()) == definition->row_width(), "a row of table ", table, " has ",
              definition->row_width(), " entries, not ", row.size());
  state_->write(framed(encode_row(static_cast<uint16_t>(index), row)));
}

void JournalWriter::append_outcomes(const std::string& split, const ExampleOutcomes& outcomes) {
  TORCH_CHECK(outcomes.correct.size() == outcomes.margin.size() &&
                  (outcomes.correct.empty() || outcomes.correct.size() == outcomes.loss.size()),
              "outcomes of unequal length");
  state_->write(framed(encode_outcomes(split, outcomes)));
}

void JournalWriter::set_summary(const std::vector<std::pair<std::string, OptionValue>>& summary) {
  state_->write(framed(encode_summary(summary)));
}

void JournalWriter::set_status(RunState status, const std::string& message) {
  state_->write(framed(encode_status(status, message, journal_now())));
  state_->sync();
}

void JournalWriter::append_event(const std::string& level, const std::string& text) {
  state_->write(framed(encode_event(level, text, journal_now())));
}

uint64_t JournalWriter::offset() {
  state_->sync();  // a checkpoint must not remember bytes that a power cut could take
  return state_->offset;
}

void JournalWriter::sync() { state_->sync(); }

void JournalWriter::sync_if_due() {
  if (Clock::now() - state_->synced >= kSyncInterval) state_->sync();
}

RunRecord replay_journal(const std::string& path, bool* torn) {
  const std::string journal = read_file(path);
  bool cut_off = false;
  JournalDecoder decoder;
  for (const Frame& frame : split_frames(path, journal, &cut_off)) decode(decoder, path, frame);
  if (!decoder.has_header())
    throw IoError(path + ": the journal ends before its header; nothing was recorded");
  if (torn) *torn = cut_off;
  return std::move(decoder.record());
}

}  // namespace basin
