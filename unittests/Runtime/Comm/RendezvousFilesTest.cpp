//===- RendezvousFilesTest.cpp - What others may put where ranks meet -------------===//
#include "Ranks.h"

#include "../../../lib/Runtime/Comm/Rendezvous.h"
#include "../../../lib/Runtime/Comm/SmallFile.h"
#include "Comm/Control/Card.h"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <fstream>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace ds::rt {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using test::placeOf;
using test::TemporaryDirectory;
using testing::AllOf;
using testing::HasSubstr;

void writeFile(const std::string &path, const std::string &text) { std::ofstream(path) << text; }

void makeSocket(const std::string &path) {
  const Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr *>(&address), sizeof address), 0);
}

/// Things that are no file of a rank, by how a message calls them.
const std::pair<const char *, void (*)(const std::string &)> kPlanted[] = {
    {"is a FIFO", [](const std::string &path) { ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0); }},
    {"is a directory", [](const std::string &path) { fs::create_directory(path); }},
    {"is a symbolic link",
     [](const std::string &path) {
       const Card card{"alpha", "127.0.0.1", 1, randomHex()};
       writeFile(path + ".target", spellCard(card));
       fs::create_symlink(path + ".target", path);
     }},
    {"is a symbolic link", [](const std::string &path) { fs::create_symlink("/nowhere", path); }},
    {"is a socket", makeSocket},
    {"has 4097 bytes, and at most 4096 are expected",
     [](const std::string &path) { writeFile(path, std::string(4097, 'x')); }},
    {"has 1099511627776 bytes",
     [](const std::string &path) {
       writeFile(path, "");
       fs::resize_file(path, uintmax_t(1) << 40);
     }},
};

/// Meets as rank 1 of 2 where `file` has been planted.
Error meetBeside(const std::string &file, void (*plant)(const std::string &)) {
  TemporaryDirectory directory;
  plant(directory.path + "/" + file);
  const auto cards = meetInDirectory(placeOf(directory.path, 1, 2), {"alpha", "127.0.0.1", 1, randomHex()},
                                     Clock::now() + std::chrono::minutes(5));
  return cards ? Error() : cards.error();
}

TEST(PlantedFiles, end_the_meeting_unread) {
  for (const auto &[why, plant] : kPlanted)
    for (const char *file : {"job.0", "job.absent"}) {
      const Error error = meetBeside(file, plant);
      EXPECT_EQ(error.code, ExitCode::Peer) << why;
      EXPECT_THAT(error.message, AllOf(HasSubstr(file), HasSubstr(why), HasSubstr("no rank has left it")));
      EXPECT_THAT(error.hint, HasSubstr("DS_RENDEZVOUS"));
    }
}

TEST(PlantedFiles, of_others_are_refused) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only root can give files away";
  const Error error = meetBeside("job.0", [](const std::string &path) {
    writeFile(path, spellCard({"alpha", "127.0.0.1", 1, randomHex()}));
    ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  });
  EXPECT_THAT(error.message, HasSubstr("belongs to user 65534, not to user 0"));
}

TEST(PlantedFiles, that_make_no_sense_are_shown) {
  TemporaryDirectory directory;
  writeFile(directory.path + "/job.0", "garbage\x1b[2J" + std::string(100, '.'));
  const auto cards = meetInDirectory(placeOf(directory.path, 1, 2), {"alpha", "127.0.0.1", 1, randomHex()},
                                     Clock::now() + milliseconds(200));
  ASSERT_FALSE(cards);
  EXPECT_EQ(cards.error().code, ExitCode::Peer);
  EXPECT_THAT(cards.error().message, AllOf(HasSubstr("rank 0 of 2 did not come"),
                                           HasSubstr("job.0' is no card: \"garbage?[2J....")));
}

TEST(SmallFiles, are_read) {
  TemporaryDirectory directory;
  writeFile(directory.path + "/a", std::string(4096, 'x'));
  EXPECT_EQ(readSmallFile(AT_FDCWD, directory.path + "/a", ::geteuid()).text, std::string(4096, 'x'));
  const SmallFile none = readSmallFile(AT_FDCWD, directory.path + "/b", ::geteuid());
  EXPECT_EQ(none.text + none.refusal, "");
}

} // namespace
} // namespace ds::rt
