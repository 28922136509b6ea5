// communication_data_type is what gradients are exchanged in: rounded before and widened after, by each stage's
// own collective.
// RUN: sed 's/STAGE/2/;s/zero_optimization = {/communication_data_type = bf16, zero_optimization = {/' %S/shard-zero.mlir | ds-opt - --ds-shard-zero | FileCheck %s --check-prefixes=CHECK,PART
// RUN: sed 's/STAGE/0/;s/zero_optimization = {/communication_data_type = bf16, zero_optimization = {/' %S/shard-zero.mlir | ds-opt - --ds-shard-zero | FileCheck %s --check-prefixes=CHECK,WHOLE

// CHECK-LABEL: func.func @last
// PART: %[[SENT:.*]] = ds.convert %{{.*}} : tensor<64xf32> -> tensor<64xbf16>
// PART-NEXT: %[[SUM:.*]] = ds.reduce_scatter sum %[[SENT]] along dp{{.*}} : tensor<64xbf16> -> tensor<32xbf16>
// PART-NEXT: ds.convert %[[SUM]]{{.*}} : tensor<32xbf16> -> tensor<32xf32>
// WHOLE: %[[SENT:.*]] = ds.convert %{{.*}} : tensor<64xf32> -> tensor<64xbf16>
// WHOLE-NEXT: %[[SUM:.*]] = ds.all_reduce sum %[[SENT]] along dp{{.*}} : tensor<64xbf16>
// WHOLE-NEXT: ds.convert %[[SUM]]{{.*}} : tensor<64xbf16> -> tensor<64xf32>
