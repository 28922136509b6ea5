//===- Environment.h - Switches that a user sets in the environment -------------===//
#ifndef DS_SUPPORT_ENVIRONMENT_H
#define DS_SUPPORT_ENVIRONMENT_H

#include <cstdlib>
#include <cstring>

namespace ds {

/// Whether `variable` is set to anything but 0; `otherwise` where it is missing or empty.
inline bool isSet(const char *variable, bool otherwise) {
  const char *value = std::getenv(variable);
  return value && *value ? std::strcmp(value, "0") != 0 : otherwise;
}

} // namespace ds

#endif // DS_SUPPORT_ENVIRONMENT_H
