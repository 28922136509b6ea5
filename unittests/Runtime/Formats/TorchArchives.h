//===- TorchArchives.h - Archives of torch.save, written by tests ---------------===//
#ifndef DS_UNITTESTS_RUNTIME_FORMATS_TORCHARCHIVES_H
#define DS_UNITTESTS_RUNTIME_FORMATS_TORCHARCHIVES_H

#include <string>
#include <utility>
#include <vector>

#include <zip.h>

namespace ds::rt {

/// Name below the archive's directory, and contents.
using ArchiveEntries = std::vector<std::pair<std::string, std::string>>;

/// Writes entries as they are named here, stored as torch.save does, or by another method.
inline void writeArchive(const std::string &path, const ArchiveEntries &entries, int method = ZIP_CM_STORE) {
  int code = 0;
  zip_t *archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  for (const auto &[name, contents] : entries) {
    zip_source_t *source = zip_source_buffer(archive, contents.data(), contents.size(), 0);
    zip_int64_t index = zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8);
    zip_set_file_compression(archive, zip_uint64_t(index), method, 0);
  }
  if (zip_close(archive) != 0)
    abort();
}

} // namespace ds::rt

#endif // DS_UNITTESTS_RUNTIME_FORMATS_TORCHARCHIVES_H
