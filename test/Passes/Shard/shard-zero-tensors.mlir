// RUN: ds-opt %s --ds-shard-zero --ds-decompose --ds-verify-sharded | FileCheck %s

// A step that tensor parallelism has cut already: what its layers exchange stays as it is, and passes that look for buckets, parameters
// and statistics find theirs alone. A buffer that counts what came through an exchange still depends on the data.
// CHECK-LABEL: func.func @last
// CHECK: %[[PART:.*]] = ds.mul
// CHECK: %[[SUM:.*]] = ds.all_reduce sum %[[PART]] along tp {{.*}}: tensor<64xf32>
// CHECK: %[[COUNT:.*]] = ds.reduce max %[[SUM]] dims [0]
// CHECK: ds.reduce_scatter sum %{{.*}} along dp carries bucket{{.*}} : tensor<64xf32> -> tensor<32xf32>
// CHECK-DAG: ds.all_reduce sum %[[COUNT]] along dp carries statistic
// CHECK: return
module attributes {ds.phase = #ds.phase<step>, ds.training = #ds.training<zero_optimization = {stage = 2}>} {
  ds.mesh @mesh axes [dp = 2, tp = 2] samples dp zero dp
  ds.state @h.0.w role(parameter) trainable shards [tp] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<128xf32>
  ds.state @largest role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
  func.func @last(%x: tensor<64xf32> {ds.input = "x"}, %w: tensor<64xf32> {ds.state = @h.0.w})
      -> (tensor<64xf32> {ds.state = @h.0.w}, tensor<f32> {ds.state = @largest})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %p = ds.mul %x, %w {ds.work = #ds.work<forward>} : tensor<64xf32>
    %s = ds.all_reduce sum %p along tp {ds.work = #ds.work<forward>} : tensor<64xf32>
    %m = ds.reduce max %s dims [0] {ds.work = #ds.work<forward>} : tensor<64xf32> -> tensor<f32>
    %dw = ds.mul %x, %s {ds.work = #ds.work<backward>} : tensor<64xf32>
    %n = ds.update @h.0.w states(%w) gradient(%dw) {ds.work = #ds.work<update>} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32> {
    ^bb0(%a: tensor<64xf32>, %g: tensor<64xf32>):
      %d = ds.sub %a, %g : tensor<64xf32>
      ds.yield %d : tensor<64xf32>
    }
    return %n, %m : tensor<64xf32>, tensor<f32>
  }
  ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set, reduced true>]
}
