// RUN: sed 's/STAGE/3, secondary_axes = ["dp.local"]/;s/dp = 2/dp.node = 2, dp.local = 2/' %S/shard-zero.mlir | ds-opt - --ds-shard-zero | FileCheck %s
// RUN: sed 's/STAGE/3, secondary_axes = ["dp.local"]/;s/dp = 2/dp.node = 2, dp.local = 1/' %S/shard-zero.mlir | ds-opt - --ds-shard-zero | FileCheck %s --check-prefix=ALONE
// RUN: sed 's/STAGE/3, secondary_axes = ["dp"]/;s/dp = 2/dp.node = 2, dp.local = 2/' %S/shard-zero.mlir | ds-opt - --ds-shard-zero | FileCheck %s --check-prefix=ALONE
// RUN: sed 's/STAGE/3, secondary_axes = ["sp", "dp.local"]/;s/dp = 2\(.*\) zero dp/dp.node = 2, dp.local = 2, sp = 2\1 zero (dp, sp)/' %S/shard-zero.mlir | ds-opt - --ds-shard-zero | FileCheck %s --check-prefix=SEVERAL
// RUN: sed 's/STAGE/3, secondary_axes = ["tp"]/' %S/shard-zero.mlir | not ds-opt - --ds-shard-zero 2>&1 | FileCheck %s --check-prefix=STRANGE
// RUN: sed 's/STAGE/3, gather_first_axes = ["dp.local"]/;s/dp = 2/dp.node = 2, dp.local = 2/' %S/shard-zero.mlir | not ds-opt - --ds-shard-zero 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: sed 's/STAGE/2, secondary_axes = ["dp"]/' %S/shard-zero.mlir | not ds-opt - 2>&1 | FileCheck %s --check-prefix=STAGE
// RUN: sed 's/STAGE/1, gather_first_axes = ["dp"]/' %S/shard-zero.mlir | not ds-opt - 2>&1 | FileCheck %s --check-prefix=FIRST

// Four ranks on two nodes. The weight's bucket has 128 elements, 32 on each rank, and 64 on each of a node's two. The bias stays whole,
// and the frozen table, which backward does not read, is read in both micro-steps.
// CHECK: ds.bucket @bucket_0 members [@h.0.w] offsets [0] elements 128
// CHECK-NEXT: ds.state @bucket_0.parameter role (parameter) bucket(@bucket_0) shards [dp]
// CHECK-NEXT: ds.state @bucket_0.secondary role (buffer) shards [dp.local] init({{.*}}) home (device) {gathered_from = @bucket_0.parameter} : tensor<128xf32>
// CHECK-NOT: @bucket_1.secondary
// CHECK: ds.state @bucket_2.secondary role (buffer) shards [dp.local]

// The first micro-step fills it as soon as it has gathered, and its backward reads it.
// CHECK-LABEL: func.func @first
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<32xf32> {ds.state = @bucket_0.parameter}
// CHECK-NOT: @bucket_0.secondary}, %
// CHECK-SAME: tensor<64xf32> {ds.state = @bucket_0.secondary}, tensor<64xf32> {ds.state = @bucket_2.secondary}
// CHECK: %[[ALL:.*]] = ds.all_gather %[[W]] along dp carries parameter {{.*}}work<forward>{{.*}} : tensor<32xf32> -> tensor<128xf32>
// CHECK-NEXT: %[[PART:.*]] = ds.local_shard %[[ALL]] along dp.local {{.*}}work<forward>{{.*}} : tensor<128xf32> -> tensor<64xf32>
// CHECK: ds.all_gather %[[PART]] along dp.local carries parameter {{.*}}work<backward>{{.*}} : tensor<64xf32> -> tensor<128xf32>
// CHECK: return %{{.*}}, %[[PART]], %

// The other reads it in forward and in backward, and gathers nothing along dp but what was updated.
// CHECK-LABEL: func.func @last
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<64xf32> {ds.state = @bucket_0.secondary}
// CHECK: ds.all_gather %[[W]] along dp.local carries parameter {{.*}}work<forward>
// CHECK-NOT: along dp carries parameter {{.*}}work<forward>
// CHECK: ds.all_gather %[[W]] along dp.local carries parameter {{.*}}work<backward>

// Where a node has one rank, or there is one node, nothing is kept twice.
// ALONE: ds.bucket @bucket_0
// ALONE-NOT: secondary

// With sequences divided as well, all ranks of a node have it together.
// SEVERAL: ds.state @bucket_0.secondary role (buffer) shards [(dp.local, sp)]
// SEVERAL: ds.local_shard %{{.*}} along (dp.local, sp)

// STRANGE: error: expects axes along which ZeRO divides, dp, in zero_optimization.secondary_axes, but got tp
// ORDER: error: expects zero_optimization.gather_first_axes before dp.node in the mesh, but got dp.local
// STAGE: ds.training expects stage 3 for zero_optimization.secondary_axes, but got stage 2
// FIRST: ds.training expects stage 3 for zero_optimization.gather_first_axes, but got stage 1
