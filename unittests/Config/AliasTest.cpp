//===- AliasTest.cpp - Old and informal spellings ------------------------------------===//
//
// Each is read as the key it stands for, with a notice; together with that key it is refused.
//
//===---------------------------------------------------------------------------===//
#include "ConfigTestUtil.h"

using namespace ds;
using namespace ds::config;
using testing::HasSubstr;

namespace {
struct Case {
  const char *members, *key, *value;
  const char *withNew; ///< the same members with the new spelling beside the old; "": not tested
};
} // namespace

TEST(Alias, IsReadAsItsKeyWithANotice) {
#define Z "zero_optimization"
  const Case cases[] = {
      {"bfloat16: {enabled: true}", "bf16.enabled", "true",
       "bfloat16: {enabled: true}, bf16: {enabled: true}"},
      {Z ": {stage: 3, cpu_offload: true}", Z ".offload_optimizer.device", "\"cpu\"",
       Z ": {cpu_offload: true, offload_optimizer: {device: 'cpu'}}"},
      {Z ": {stage: 3, cpu_offload_param: true}", Z ".offload_param.device", "\"cpu\"",
       Z ": {cpu_offload_param: true, offload_param: {device: 'cpu'}}"},
      {Z ": {cpu_offload: false}", Z ".offload_optimizer.device", "\"none\"", ""},
      {Z ": {cpu_offload_use_pin_memory: false}", Z ".offload_optimizer.pin_memory", "true", ""},
      {Z ": {stage3_gather_fp16_weights_on_model_save: true}", Z ".stage3_gather_16bit_weights_on_model_save",
       "true",
       Z
       ": {stage3_gather_fp16_weights_on_model_save: true, stage3_gather_16bit_weights_on_model_save: true}"},
      {Z ": {gather_16bit_weights_on_model_save: true}", Z ".stage3_gather_16bit_weights_on_model_save",
       "true", ""},
      {Z ": {prefetch_bucket_size: 7}", Z ".stage3_prefetch_bucket_size", "7",
       Z ": {prefetch_bucket_size: 7, stage3_prefetch_bucket_size: 7}"},
      {Z ": {param_persistence_threshold: 7}", Z ".stage3_param_persistence_threshold", "7", ""},
      {Z ": {model_persistence_threshold: 7}", Z ".stage3_model_persistence_threshold", "7", ""},
      {Z ": {max_live_parameters: 7}", Z ".stage3_max_live_parameters", "7", ""},
      {Z ": {max_reuse_distance: 7}", Z ".stage3_max_reuse_distance", "7", ""},
      {Z ": {module_granularity_threshold: 7}", Z ".stage3_module_granularity_threshold", "7", ""},
      {Z ": {use_all_reduce_for_fetch_params: true}", Z ".stage3_use_all_reduce_for_fetch_params", "true",
       ""},
      {Z ": {allgather_sequential: true}", Z ".stage3_allgather_sequential", "true", ""},
      {Z ": {partition_stream_chunk_size: 7}", Z ".stage3_partition_stream_chunk_size", "7", ""},
      {"tensor_parallel: {kernel_inject: true}", "tensor_parallel.replace_with_kernel_inject", "true", ""},
      {"sequence_parallel: {degree: 1}", "sequence_parallel_size", "1", ""},
      {"sequence_parallel: {sp_size: 1}", "sequence_parallel_size", "1", ""},
      {Z ": true", Z ".stage", "1", ""},
      {Z ": true, allgather_size: 64", Z ".allgather_bucket_size", "64", ""},
      {Z ": false", Z ".stage", "0", ""},
      {"pipeline: {micro_batches: 4}", "gradient_accumulation_steps", "4",
       "pipeline: {micro_batches: 4}, gradient_accumulation_steps: 4"},
      {"tensor_parallel: {tp_size: 1}", "tensor_parallel.autotp_size", "1",
       "tensor_parallel: {tp_size: 1, autotp_size: 1}"},
      {"aio: {thread_count: 2}", "aio.intra_op_parallelism", "2",
       "aio: {thread_count: 2, intra_op_parallelism: 2}"},
      {"elasticity: {prefer_large_batch: false}", "elasticity.prefer_larger_batch", "false", ""},
      {"sequence_parallel: {size: 1}", "sequence_parallel_size", "1",
       "sequence_parallel: {size: 1}, sequence_parallel_size: 1"},
      {"sequence_parallel: {enabled: true, sequence_parallel_size: 1}", "sequence_parallel_size", "1", ""},
      {"sequence_parallel: {enabled: true}", "sequence_parallel_size", "null", ""},
      {"sequence_parallel: {enabled: false, size: 8}", "sequence_parallel_size", "null", ""},
      {Z ": {stage: 2, offload_param: {device: 'cpu'}}", Z ".offload_param.device", "\"none\"", ""},
  };
#undef Z
  for (const Case &c : cases) {
    Result<Config> config = readMembers(c.members);
    EXPECT_EQ(valueOf(config, c.key), c.value) << c.members;
    EXPECT_THAT(noticesOf(config), testing::AnyOf(HasSubstr("is read as"), HasSubstr("has no effect"),
                                                  HasSubstr("names no size")))
        << c.members;
    if (*c.withNew) {
      EXPECT_THAT(told(readMembers(c.withNew)), HasSubstr("are both given")) << c.withNew;
    }
  }
}

TEST(Alias, NoticeNamesPlaceAndBothSpellings) {
  EXPECT_THAT(noticesOf(readMembers("bfloat16: {}")),
              HasSubstr("c:2:1 (byte 36): \"bfloat16\" is read as \"bf16\""));
}

TEST(Alias, OfAnotherTypeIsRefused) {
  EXPECT_THAT(told(readMembers("zero_optimization: {cpu_offload: 'yes'}")), HasSubstr("unknown key"));
  EXPECT_THAT(told(readMembers("zero_optimization: 2")),
              HasSubstr("\"zero_optimization\" expects an object, but got the number 2"));
  EXPECT_THAT(told(readMembers("sequence_parallel: {size: 2, degre: 1}")),
              HasSubstr("unknown key \"sequence_parallel.degre\""));
  EXPECT_THAT(told(readMembers("sequence_parallel: {size: 2, degree: 1}")),
              HasSubstr("gives its size twice"));
}
