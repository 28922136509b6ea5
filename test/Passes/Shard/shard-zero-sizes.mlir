// Sizes of -1 are chosen from a cluster's rates; others stay as they are.
// RUN: sed 's/STAGE/3/;s/stage3_param_persistence_threshold = 8/allgather_bucket_size = -1, reduce_bucket_size = -1, sub_group_size = -1, stage3_param_persistence_threshold = -1/' %S/shard-zero.mlir > %t.mlir
// RUN: ds-opt %t.mlir --ds-shard-zero | FileCheck %s
// RUN: ds-opt %t.mlir --ds-set-machine=cluster=dgx-a100 --ds-shard-zero | FileCheck %s --check-prefix=FAST
// RUN: sed 's/STAGE/1/;s/stage3_param_persistence_threshold = 8/allgather_bucket_size = 48, reduce_bucket_size = -1/' %S/shard-zero.mlir | ds-opt - --ds-shard-zero | FileCheck %s --check-prefix=BOUND
// RUN: not ds-opt %t.mlir --ds-set-machine=cluster=nowhere 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: sed 's/STAGE/1/' %S/shard-zero.mlir | ds-opt - --ds-shard-zero | FileCheck %s --check-prefix=ONCE
// RUN: sed 's/STAGE/1, reduce_each_micro_step = true/' %S/shard-zero.mlir | ds-opt - --ds-shard-zero | FileCheck %s --check-prefix=EACH
// RUN: sed 's/STAGE/1/' %S/shard-zero.mlir | ds-opt - --ds-shard-zero=reduce-each-micro-step | FileCheck %s --check-prefix=EACH
// RUN: sed 's/STAGE/2, reduce_each_micro_step = false/' %S/shard-zero.mlir | ds-opt - --ds-shard-zero=reduce-each-micro-step | FileCheck %s --check-prefix=ONCE
// RUN: sed 's/STAGE/2, reduce_each_micro_step = false/' %S/shard-zero.mlir | ds-opt - --ds-shard-zero | FileCheck %s --check-prefix=ONCE
// RUN: sed 's/STAGE/3/;s/threshold = 8/threshold = 8, stage3_model_persistence_threshold = 8/' %S/shard-zero.mlir | ds-opt - --ds-shard-zero | FileCheck %s --check-prefix=WHOLE
// RUN: sed 's/STAGE/3/;s/threshold = 8/threshold = 8, stage3_model_persistence_threshold = 7/' %S/shard-zero.mlir | ds-opt - --ds-shard-zero | FileCheck %s --check-prefix=DIVIDED

// Two ranks over loopback: 62 us (60 and 2 for the launch), 1.5 GB/s for the half that is sent, so 3 GB/s of the whole.
// Nine tenths of that: 9 * 62 us * 3 GB/s / 4 bytes = 418500 elements, so 2^19. Half: 62 us * 3 GB/s / 4 = 46500.
// Of 56 elements none may be whole: 56 / 64 = 0; the bias is divided, too.
// CHECK: #ds.decisions<choices = [{of = reduce_bucket, elements = 524288, collective = reduce_scatter, latency_seconds = {{6\.[12][0-9]*}}E-5, bytes_per_second = {{3\.[0-9e+]+}}, share = 9.000000e-01},
// CHECK-SAME: {of = gather_bucket, elements = 524288, latency_seconds = {{6\.[12][0-9]*}}E-5, bytes_per_second = {{3\.[0-9e+]+}}, share = 9.000000e-01},
// CHECK-SAME: {of = sub_group},
// CHECK-SAME: {of = parameter_threshold, elements = 46500, latency_seconds = {{6\.[12][0-9]*}}E-5, bytes_per_second = {{3\.[0-9e+]+}}},
// CHECK-SAME: {of = model_threshold, part = 64}
// CHECK: ds.bucket @bucket_0 members [@h.0.w, @h.0.b]

// FAST: choices = [{of = reduce_bucket, elements = {{[0-9]+}}, collective = reduce_scatter, latency_seconds =

// A number that is given is a bound as it stands: 32 and 8 elements, each padded to 32, do not both go into 48.
// BOUND: choices = [{of = reduce_bucket, elements = {{.*}}, collective = reduce_scatter,
// BOUND-NOT: of = gather_bucket
// BOUND: ds.bucket @bucket_0 members [@h.0.w] offsets
// BOUND: ds.bucket @bucket_1 members [@h.0.b] offsets

// ERROR: error: ds.machine expects a cluster that can be read, but got "nowhere":

// ONCE: {of = reduce_once_per_step, bytes = 512}
// ONCE: ds.state @bucket_0.grad role (gradient) slot("grad") bucket(@bucket_0) init
// EACH: {of = reduce_each_micro_step, bytes = 256}
// EACH: ds.state @bucket_0.grad role (gradient) slot("grad") bucket(@bucket_0) shards [dp] init

// The bias of 8 elements stays whole where all that do may have 8, and not where they may have 7.
// WHOLE: ds.bucket @bucket_1 members [@h.0.b]
// WHOLE-NEXT: ds.state @bucket_1.parameter role (parameter) bucket(@bucket_1) init
// DIVIDED: ds.bucket @bucket_0 members [@h.0.w, @h.0.b]
// DIVIDED-NEXT: ds.state @bucket_0.parameter role (parameter) bucket(@bucket_0) shards [dp] init
