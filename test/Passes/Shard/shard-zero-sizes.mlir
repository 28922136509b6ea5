// Sizes of -1 are chosen from a cluster's rates; others stay as they are.
// RUN: sed 's/STAGE/3/;s/stage3_param_persistence_threshold = 8/allgather_bucket_size = -1 : i64, reduce_bucket_size = -1 : i64, sub_group_size = -1 : i64, stage3_param_persistence_threshold = -1/' %S/shard-zero.mlir > %t.mlir
// RUN: ds-opt %t.mlir --ds-shard-zero | FileCheck %s
// RUN: ds-opt %t.mlir --ds-shard-zero=cluster=dgx-a100 | FileCheck %s --check-prefix=FAST
// RUN: sed 's/STAGE/1/;s/stage3_param_persistence_threshold = 8/allgather_bucket_size = 48 : i64, reduce_bucket_size = -1/' %S/shard-zero.mlir | ds-opt - --ds-shard-zero | FileCheck %s --check-prefix=BOUND
// RUN: not ds-opt %t.mlir --ds-shard-zero=cluster=nowhere 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: sed 's/STAGE/1/' %S/shard-zero.mlir | ds-opt - --ds-shard-zero | FileCheck %s --check-prefix=ONCE
// RUN: sed 's/STAGE : i64/1 : i64, reduce_each_micro_step = true/' %S/shard-zero.mlir | ds-opt - --ds-shard-zero | FileCheck %s --check-prefix=EACH
// RUN: sed 's/STAGE : i64/2 : i64, reduce_each_micro_step = false/' %S/shard-zero.mlir | ds-opt - --ds-shard-zero | FileCheck %s --check-prefix=ONCE
// RUN: sed 's/STAGE/3/;s/threshold = 8/threshold = 8 : i64, stage3_model_persistence_threshold = 8/' %S/shard-zero.mlir | ds-opt - --ds-shard-zero | FileCheck %s --check-prefix=WHOLE
// RUN: sed 's/STAGE/3/;s/threshold = 8/threshold = 8 : i64, stage3_model_persistence_threshold = 7/' %S/shard-zero.mlir | ds-opt - --ds-shard-zero | FileCheck %s --check-prefix=DIVIDED

// Two ranks over loopback: 62 us (60 and 2 for the launch), 1.5 GB/s for the half that is sent, so 3 GB/s of the whole.
// Nine tenths of that: 9 * 62 us * 3 GB/s / 4 bytes = 418500 elements, so 2^19. Half: 62 us * 3 GB/s / 4 = 46500.
// Of 56 elements none may be whole: 56 / 64 = 0; the bias is divided, too.
// CHECK: ds.choices = ["reduce_bucket_size: 524288 elements, of which a reduce_scatter reaches 90 % of the link's bandwidth (62 us and 3 GB/s)",
// CHECK-SAME: "allgather_bucket_size: 524288 elements, of which an all_gather reaches 90 % of the link's bandwidth (62 us and 3 GB/s)",
// CHECK-SAME: "sub_group_size: as the other bounds of a bucket, for nothing is updated piece by piece",
// CHECK-SAME: "stage3_param_persistence_threshold: 46500 elements, whose gather alone spends more time waiting than sending (62 us and 3 GB/s)",
// CHECK-SAME: "stage3_model_persistence_threshold: 0 elements, one part in 64",
// CHECK: ds.bucket @bucket_0 members [@h.0.w, @h.0.b]

// FAST: reduce_bucket_size: {{[0-9]+}} elements, of which a reduce_scatter reaches 90 % of the link's bandwidth ({{.*}} us and {{[0-9.]+}} GB/s)

// A number that is given is a bound as it stands: 32 and 8 elements, each padded to 32, do not both go into 48.
// BOUND: ds.choices = ["reduce_bucket_size:
// BOUND-NOT: allgather_bucket_size:
// BOUND: ds.bucket @bucket_0 members [@h.0.w] offsets
// BOUND: ds.bucket @bucket_1 members [@h.0.b] offsets

// ERROR: error: expects option cluster to name a cluster:

// ONCE: gradients are reduced once per step; until then a rank keeps all of them (512 B)
// ONCE: ds.state @bucket_0.grad role (gradient) slot("grad") bucket(@bucket_0) init
// EACH: gradients are reduced in each micro-step; a rank keeps its part of them (256 B)
// EACH: ds.state @bucket_0.grad role (gradient) slot("grad") bucket(@bucket_0) shards [dp] init

// The bias of 8 elements stays whole where all that do may have 8, and not where they may have 7.
// WHOLE: ds.bucket @bucket_1 members [@h.0.b]
// WHOLE-NEXT: ds.state @bucket_1.parameter role (parameter) bucket(@bucket_1) init
// DIVIDED: ds.bucket @bucket_0 members [@h.0.w, @h.0.b]
// DIVIDED-NEXT: ds.state @bucket_0.parameter role (parameter) bucket(@bucket_0) shards [dp] init
