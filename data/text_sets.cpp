// The sets of texts: Moby-Dick, which comes with Basin, tiny-shakespeare, and the user's own.
#include "data/registry.h"
#include "data/text.h"

namespace basin {
namespace {

/// Data sets say "official" of the copy that their authors publish.
Manifest one_file(const std::string& set, const std::string& file, const std::string& sha256) {
  Manifest m;
  m.set = set;
  m.folder = set;
  m.files = {{file, false, 0, FileRole::text}};
  m.copies = {{"official", {sha256}}};
  return m;
}

Manifest moby_dick() {
  Manifest m = one_file("moby_dick", "moby_dick.txt",
                        "cf8e4d534fbcc51266e64d366106455b72796ed697c76a7ae9a4f340ab2e4290");
  m.must_be_known = true;
  return m;
}

/// The hash is that of the file as nanoGPT's data/shakespeare_char/prepare.py fetches it.
Manifest tinyshakespeare() {
  Manifest m = one_file("tinyshakespeare", "input.txt",
                        "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed");
  m.archive_url = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt";
  m.archive_sha256 = m.copies.front().sha256.front();
  return m;
}

}  // namespace

DatasetEntry moby_dick_entry() {
  return embedded_set(
      {.label = "Moby-Dick",
       .help = "embedded: Melville's novel, 1,176,120 characters, 89 different ones, as windows of text"},
      moby_dick());
}

DatasetEntry tinyshakespeare_entry() {
  return published_set({.label = "tiny-shakespeare",
                        .help = "1,115,394 characters of Shakespeare, 65 different ones, as windows of text"},
                       tinyshakespeare());
}

DatasetEntry text_entry() {
  return {.name = "text",
          .label = "text",
          .help = "a text file of your own, as windows of characters or bytes",
          .needs_path = true,
          .takes_validation = true,
          .read = [](const DataOptions& options) {
            Dataset data = text_windows("text", read_text_file(options.path), options);
            data.pixels = "user's own";
            return data;
          }};
}

}  // namespace basin
