//===- Plugin.cpp - Ranks of mpirun and srun find each other by PMIx -------------===//
//
// No fence: a rank that never comes would hold the others in it for ever. Each asks for each card instead,
// without blocking. A server answers "not found" at once for a local rank that has not published yet, and
// holds the question for a remote one: the first is asked again, the second stays asked.
//
//===---------------------------------------------------------------------------===//
#include "Comm/PmixPlugin.h"

#include <pmix.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>

namespace ds::rt {
namespace {

constexpr const char *kKey = "ds.card";

/// One question to the server; the answer comes from a thread of PMIx.
struct Question {
  bool answered = false, found = false;
  std::string card;
};

std::mutex mutex; ///< guards the questions
std::condition_variable answers;
pmix_proc_t self;
bool joined = false;

/// Keeps the question alive until its answer has come, however late.
using Shared = std::shared_ptr<Question>;
std::map<uint32_t, Shared> &questions() {
  static std::map<uint32_t, Shared> open;
  return open;
}

pmix_proc_t processOf(uint32_t rank) {
  pmix_proc_t process = self;
  process.rank = rank;
  return process;
}

/// A number that the launcher tells about the job.
bool jobNumber(const char *key, uint32_t &number) {
  const pmix_proc_t job = processOf(PMIX_RANK_WILDCARD);
  pmix_value_t *value = nullptr;
  if (PMIx_Get(&job, key, nullptr, 0, &value) != PMIX_SUCCESS || !value)
    return false;
  const bool isNumber = value->type == PMIX_UINT32;
  if (isNumber)
    number = value->data.uint32;
  PMIX_VALUE_RELEASE(value);
  return isNumber;
}

bool failWith(const char *step, pmix_status_t status, std::string &error) {
  error = std::string(step) + ": " + PMIx_Error_string(status);
  return false;
}

bool join(PmixJob &job, std::string &error) {
  if (!joined) {
    if (const pmix_status_t status = PMIx_Init(&self, nullptr, 0); status != PMIX_SUCCESS)
      return failWith("PMIx_Init", status, error);
    joined = true;
  }
  uint32_t local = 0;
  job.rank = self.rank;
  if (!jobNumber(PMIX_JOB_SIZE, job.world))
    return failWith("the number of ranks", PMIX_ERR_NOT_FOUND, error);
  job.oneHost = jobNumber(PMIX_LOCAL_SIZE, local) && local == job.world;
  return true;
}

bool publish(const std::string &card, std::string &error) {
  pmix_value_t value;
  PMIX_VALUE_CONSTRUCT(&value);
  value.type = PMIX_STRING;
  value.data.string = const_cast<char *>(card.c_str());
  if (const pmix_status_t status = PMIx_Put(PMIX_GLOBAL, kKey, &value); status != PMIX_SUCCESS)
    return failWith("PMIx_Put", status, error);
  if (const pmix_status_t status = PMIx_Commit(); status != PMIX_SUCCESS)
    return failWith("PMIx_Commit", status, error);
  return true;
}

void onAnswer(pmix_status_t status, pmix_value_t *value, void *data) {
  const std::unique_ptr<Shared> owner(static_cast<Shared *>(data));
  std::lock_guard<std::mutex> lock(mutex);
  Question &question = **owner;
  question.answered = true;
  if (status == PMIX_SUCCESS && value && value->type == PMIX_STRING && value->data.string) {
    question.found = true;
    question.card = value->data.string;
  }
  answers.notify_all();
}

bool lookUp(uint32_t rank, std::string &card) {
  std::unique_lock<std::mutex> lock(mutex);
  Shared &question = questions()[rank];
  if (!question) {
    question = std::make_shared<Question>();
    auto owner = std::make_unique<Shared>(question);
    const pmix_proc_t process = processOf(rank);
    lock.unlock();
    if (PMIx_Get_nb(&process, kKey, nullptr, 0, onAnswer, owner.get()) == PMIX_SUCCESS)
      owner.release(); // onAnswer has it
    lock.lock();
    if (owner) {
      question.reset();
      return false;
    }
  }
  const Shared asked = question;
  answers.wait_for(lock, std::chrono::milliseconds(5), [&] { return asked->answered; });
  if (!asked->answered)
    return false;
  card = asked->card;
  question.reset(); // if it was not found, the next call asks again
  return asked->found;
}

void leave() {
  if (joined)
    PMIx_Finalize(nullptr, 0);
  joined = false;
}

constexpr PmixApi kApi{kPmixAbi, join, publish, lookUp, leave};

} // namespace
} // namespace ds::rt

/// The plugin's one symbol.
extern "C" __attribute__((visibility("default"))) const ds::rt::PmixApi *dsPmix() { return &ds::rt::kApi; }
