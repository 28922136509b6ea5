//===- Format.h - Numbers as people read them --------------------------------------===//
#ifndef DS_SUPPORT_FORMAT_H
#define DS_SUPPORT_FORMAT_H

#include <cstdint>
#include <string>

namespace ds {

/// "812.4 MiB"; bytes below 1 KiB exactly.
std::string formatBytes(int64_t bytes);

/// "852,123,648".
std::string formatExact(int64_t number);

} // namespace ds

#endif // DS_SUPPORT_FORMAT_H
