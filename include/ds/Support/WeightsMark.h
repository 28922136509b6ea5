//===- WeightsMark.h - What a weights file says of who has written it -------------===//
#ifndef DS_SUPPORT_WEIGHTSMARK_H
#define DS_SUPPORT_WEIGHTSMARK_H

namespace ds {

/// An entry of the header's metadata, {"format": "pt", "writer": "ds-opt"}, of the files that ds-opt writes
/// beside programs. It replaces no other file there: those are somebody's own.
inline constexpr const char *kWeightsWriterKey = "writer", *kWeightsWriter = "ds-opt";

} // namespace ds

#endif // DS_SUPPORT_WEIGHTSMARK_H
