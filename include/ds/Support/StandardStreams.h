//===- StandardStreams.h - Descriptors 0, 1 and 2 are taken ----------------------===//
//
// A program that was started with stdout or stderr closed (`>&-`) would get their numbers for the files that
// it opens, and print its messages into them.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_SUPPORT_STANDARDSTREAMS_H
#define DS_SUPPORT_STANDARDSTREAMS_H

#include <fcntl.h>

namespace ds {

/// Puts /dev/null in the place of each that is closed, opened the wrong way round: whoever writes to stdout
/// still learns that nobody gets it. Call before anything is opened.
inline void occupyStandardStreams() {
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) < 0)
      (void)!::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY); // gets the lowest free number
}

} // namespace ds

#endif // DS_SUPPORT_STANDARDSTREAMS_H
