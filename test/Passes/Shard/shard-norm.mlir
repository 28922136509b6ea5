// RUN: ds-opt %s --ds-shard-zero | FileCheck %s

// Where updates do not wait for the norm, the squares of a rank's part are summed up as soon as it is there, so that the part
// may die; they meet where the sum over all gradients was formed.

module attributes {ds.training = #ds.training<zero_optimization = {stage = 2, reduce_bucket_size = 64}>} {
  ds.mesh @mesh axes [dp = 2] samples dp zero dp
  ds.state @h.0.w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64xf32>
  ds.state @h.1.w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64xf32>
  ds.state @grad_norm role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f64>
  func.func @last(%x: tensor<64xf32> {ds.input = "x"}, %v: tensor<64xf32> {ds.state = @h.0.w}, %w: tensor<64xf32> {ds.state = @h.1.w})
      -> (tensor<64xf32> {ds.state = @h.0.w}, tensor<64xf32> {ds.state = @h.1.w}, tensor<f64> {ds.state = @grad_norm})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %dw = ds.mul %x, %w {ds.work = #ds.work<backward>} : tensor<64xf32>
    %qw = ds.sum_of_squares %dw {ds.work = #ds.work<update>} : tensor<64xf32> -> tensor<f64>
    %nw = ds.update @h.1.w states(%w) gradient(%dw) {ds.work = #ds.work<update>} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32> {
    ^bb0(%p: tensor<64xf32>, %g: tensor<64xf32>):
      %n = ds.sub %p, %g : tensor<64xf32>
      ds.yield %n : tensor<64xf32>
    }
    %dv = ds.mul %x, %v {ds.work = #ds.work<backward>} : tensor<64xf32>
    %qv = ds.sum_of_squares %dv {ds.work = #ds.work<update>} : tensor<64xf32> -> tensor<f64>
    %nv = ds.update @h.0.w states(%v) gradient(%dv) {ds.work = #ds.work<update>} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32> {
    ^bb0(%p: tensor<64xf32>, %g: tensor<64xf32>):
      %n = ds.sub %p, %g : tensor<64xf32>
      ds.yield %n : tensor<64xf32>
    }
    %q = ds.add %qw, %qv {ds.work = #ds.work<update>} : tensor<f64>
    return %nv, %nw, %q : tensor<64xf32>, tensor<64xf32>, tensor<f64>
  }
}
// CHECK-LABEL: func.func @last
// CHECK: %[[W:.*]] = ds.reduce_scatter sum %{{.*}} along dp{{.*}} : tensor<64xf32> -> tensor<32xf32>
// CHECK-NEXT: %[[OFW:.*]] = ds.sum_of_squares %[[W]]{{.*}} : tensor<32xf32> -> tensor<f64>
// CHECK: %[[V:.*]] = ds.reduce_scatter sum %{{.*}} along dp{{.*}} : tensor<64xf32> -> tensor<32xf32>
// CHECK-NEXT: %[[OFV:.*]] = ds.sum_of_squares %[[V]]{{.*}} : tensor<32xf32> -> tensor<f64>
// CHECK: %[[OWN:.*]] = ds.add %[[OFW]], %[[OFV]]{{.*}} : tensor<f64>
// CHECK-NEXT: %[[NORM:.*]] = ds.all_reduce sum %[[OWN]] along dp{{.*}} : tensor<f64>
// CHECK: return %[[NORM]]
