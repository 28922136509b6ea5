//===- FileSizeLimit.h - The largest file that a process may write ----------------===//
#ifndef DS_SUPPORT_FILESIZELIMIT_H
#define DS_SUPPORT_FILESIZELIMIT_H

#include <cstdint>
#include <string>
#include <sys/resource.h>

namespace ds {

/// In bytes; UINT64_MAX if there is no limit.
inline uint64_t fileSizeLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return UINT64_MAX;
  return limit.rlim_cur;
}

/// What to do about EFBIG; empty where the limit is not the reason.
inline std::string fileSizeHint() {
  const uint64_t limit = fileSizeLimit();
  if (limit == UINT64_MAX)
    return {};
  return "files of this process may have " + std::to_string(limit) +
         " bytes: raise the limit with `ulimit -f`";
}

} // namespace ds

#endif // DS_SUPPORT_FILESIZELIMIT_H
