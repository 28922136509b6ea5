// RUN: ds-opt %s --ds-schedule-pipeline --ds-plan-pipeline | FileCheck %s
// RUN: ds-opt %s --ds-schedule-pipeline --ds-plan-pipeline | FileCheck %s --check-prefix=COPIES

// Two layers at stage 3 on two ranks, from sharded to planned with every check on the way. The second layer's
// parameters are gathered while the first computes, and kept for backward. Each reduction is issued behind its
// operand; the updates come last. Nothing is copied on the way from a gather to the layer or from a gradient to its
// reduction.
// COPIES-LABEL: func.func @last
// COPIES-NOT: ds.call copy(
// COPIES: return

// CHECK: gathers = [{{.*}}{function = "last", kept = ["b1.parameter"], kept_bytes = {{[0-9]+}}, exposed_seconds
// CHECK: ds.arena device
// CHECK-LABEL: func.func @last
// CHECK: ds.communicate all_gather {{.*}} carries parameter number 0 on gather
// CHECK: ds.communicate all_gather {{.*}} carries parameter number 1 on gather
// CHECK: ds.call matmul
// CHECK-NOT: all_gather
// CHECK: ds.call matmul{{.*}} params [1, 0, 0, 0]
// CHECK: ds.communicate reduce_scatter {{.*}} workspace
// CHECK: ds.call matmul{{.*}} params [1, 0, 0, 0]
// CHECK: ds.communicate reduce_scatter {{.*}} workspace
// CHECK: ds.wait {{.*}} on compute
// CHECK: ds.launch {{.*}} outs(%arg2)
// CHECK: ds.wait {{.*}} on compute
// CHECK: ds.launch {{.*}} outs(%arg1)
// CHECK: return
module attributes {ds.training = #ds.training<gradient_accumulation_steps = 1>} {
  ds.mesh @mesh axes [dp = 2]
  ds.state @h.0.w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x64xf32>
  ds.state @h.0.b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64xf32>
  ds.bucket @b0 members [@h.0.w, @h.0.b] offsets [0, 4096] elements 4160
  ds.state @b0.parameter role(parameter) bucket(@b0) shards [dp] init(#ds.init<zero, 0.0, 0.0>) home(device) {stay = #ds.stay<segment>} : tensor<4160xf32>
  ds.state @h.1.w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x64xf32>
  ds.state @h.1.b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64xf32>
  ds.bucket @b1 members [@h.1.w, @h.1.b] offsets [0, 4096] elements 4160
  ds.state @b1.parameter role(parameter) bucket(@b1) shards [dp] init(#ds.init<zero, 0.0, 0.0>) home(device) {stay = #ds.stay<segment>} : tensor<4160xf32>
  ds.state @loss role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
  func.func @last(%x: tensor<32x64xf32> {ds.input = "x"}, %p0: tensor<2080xf32> {ds.state = @b0.parameter}, %p1: tensor<2080xf32> {ds.state = @b1.parameter}) -> (tensor<f32> {ds.state = @loss}, tensor<2080xf32> {ds.state = @b0.parameter}, tensor<2080xf32> {ds.state = @b1.parameter}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %ff0 = ds.all_gather %p0 along dp carries parameter : tensor<2080xf32> -> tensor<4160xf32>
    %wsf0 = ds.slice %ff0 offsets [0] strides [1] : tensor<4160xf32> -> tensor<4096xf32>
    %wf0 = ds.reshape %wsf0 : tensor<4096xf32> -> tensor<64x64xf32>
    %bsf0 = ds.slice %ff0 offsets [4096] strides [1] : tensor<4160xf32> -> tensor<64xf32>
    %m0 = ds.matmul %x, %wf0 : tensor<32x64xf32>, tensor<64x64xf32> -> tensor<32x64xf32>
    %bb0 = ds.broadcast %bsf0 dims [1] : tensor<64xf32> -> tensor<32x64xf32>
    %a0 = ds.add %m0, %bb0 : tensor<32x64xf32>
    %h0 = ds.tanh %a0 : tensor<32x64xf32>
    %ff1 = ds.all_gather %p1 along dp carries parameter : tensor<2080xf32> -> tensor<4160xf32>
    %wsf1 = ds.slice %ff1 offsets [0] strides [1] : tensor<4160xf32> -> tensor<4096xf32>
    %wf1 = ds.reshape %wsf1 : tensor<4096xf32> -> tensor<64x64xf32>
    %bsf1 = ds.slice %ff1 offsets [4096] strides [1] : tensor<4160xf32> -> tensor<64xf32>
    %m1 = ds.matmul %h0, %wf1 : tensor<32x64xf32>, tensor<64x64xf32> -> tensor<32x64xf32>
    %bb1 = ds.broadcast %bsf1 dims [1] : tensor<64xf32> -> tensor<32x64xf32>
    %a1 = ds.add %m1, %bb1 : tensor<32x64xf32>
    %h1 = ds.tanh %a1 : tensor<32x64xf32>
    %ls = ds.reduce sum %h1 dims [0, 1] : tensor<32x64xf32> -> tensor<f32>
    %lr = ds.all_reduce sum %ls along dp carries statistic : tensor<f32>
    %half = ds.constant dense<0.5> : tensor<f32>
    %loss = ds.mul %lr, %half : tensor<f32>
    %one = ds.constant dense<1.0> : tensor<32x64xf32>
    %q1 = ds.mul %h1, %h1 : tensor<32x64xf32>
    %s1 = ds.sub %one, %q1 : tensor<32x64xf32>
    %d1 = ds.mul %one, %s1 : tensor<32x64xf32>
    %gw1 = ds.matmul %h0, %d1 transpose_lhs : tensor<32x64xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
    %gb1 = ds.reduce sum %d1 dims [0] : tensor<32x64xf32> -> tensor<64xf32>
    %fg1 = ds.all_gather %p1 along dp carries parameter : tensor<2080xf32> -> tensor<4160xf32>
    %wsg1 = ds.slice %fg1 offsets [0] strides [1] : tensor<4160xf32> -> tensor<4096xf32>
    %wg1 = ds.reshape %wsg1 : tensor<4096xf32> -> tensor<64x64xf32>
    %bsg1 = ds.slice %fg1 offsets [4096] strides [1] : tensor<4160xf32> -> tensor<64xf32>
    %dx1 = ds.matmul %d1, %wg1 transpose_rhs : tensor<32x64xf32>, tensor<64x64xf32> -> tensor<32x64xf32>
    %gf1 = ds.reshape %gw1 : tensor<64x64xf32> -> tensor<4096xf32>
    %flat1 = ds.concat %gf1, %gb1 dim 0 : tensor<4096xf32>, tensor<64xf32> -> tensor<4160xf32>
    %rs1 = ds.reduce_scatter sum %flat1 along dp carries bucket : tensor<4160xf32> -> tensor<2080xf32>
    %n1 = ds.sub %p1, %rs1 : tensor<2080xf32>
    %q0 = ds.mul %h0, %h0 : tensor<32x64xf32>
    %s0 = ds.sub %one, %q0 : tensor<32x64xf32>
    %d0 = ds.mul %dx1, %s0 : tensor<32x64xf32>
    %gw0 = ds.matmul %x, %d0 transpose_lhs : tensor<32x64xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
    %gb0 = ds.reduce sum %d0 dims [0] : tensor<32x64xf32> -> tensor<64xf32>
    %gf0 = ds.reshape %gw0 : tensor<64x64xf32> -> tensor<4096xf32>
    %flat0 = ds.concat %gf0, %gb0 dim 0 : tensor<4096xf32>, tensor<64xf32> -> tensor<4160xf32>
    %rs0 = ds.reduce_scatter sum %flat0 along dp carries bucket : tensor<4160xf32> -> tensor<2080xf32>
    %n0 = ds.sub %p0, %rs0 : tensor<2080xf32>
    return %loss, %n0, %n1 : tensor<f32>, tensor<2080xf32>, tensor<2080xf32>
  }
}
