// RUN: ds-opt %s --split-input-file --ds-shard-zero | FileCheck %s

// Two biases whose layers' results are added have one gradient, which is there once: in the first micro-step as one sum that two
// states get. Each has its window of the flat gradient, and its squares count twice.

module attributes {ds.training = #ds.training<gradient_accumulation_steps = 2, zero_optimization = {stage = 1}>} {
  ds.mesh @mesh axes [dp = 2] samples dp zero dp
  ds.state @a.b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<32xf32>
  ds.state @c.b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<32xf32>
  ds.state @a.b.grad role(gradient) slot("grad") owner(@a.b) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<32xf32>
  ds.state @c.b.grad role(gradient) slot("grad") owner(@c.b) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<32xf32>
  ds.state @grad_norm role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f64>
  // CHECK-LABEL: func.func @first
  // CHECK: %[[SUM:.*]] = ds.add %arg0, %{{.*}} {ds.work = #ds.work<backward>} : tensor<32xf32>
  // CHECK: %[[FLAT:.*]] = ds.concat %[[SUM]], %[[SUM]] dim 0
  // CHECK: return %[[FLAT]]
  func.func @first(%x: tensor<32xf32> {ds.input = "x"}, %a: tensor<32xf32> {ds.state = @a.b}, %c: tensor<32xf32> {ds.state = @c.b})
      -> (tensor<32xf32> {ds.state = @a.b.grad}, tensor<32xf32> {ds.state = @c.b.grad}) attributes {ds.segment = #ds.segment<forward, backward>} {
    %y = ds.add %a, %c {ds.work = #ds.work<forward>} : tensor<32xf32>
    %d = ds.add %x, %y {ds.work = #ds.work<backward>} : tensor<32xf32>
    %s = ds.accumulate %d {ds.work = #ds.work<backward>} : (tensor<32xf32>) -> tensor<32xf32>
    return %s, %s : tensor<32xf32>, tensor<32xf32>
  }
  // CHECK-LABEL: func.func @last
  // CHECK: %[[SUM:.*]] = ds.add %arg0, %{{.*}} {ds.work = #ds.work<backward>} : tensor<32xf32>
  // CHECK: %[[FLAT:.*]] = ds.concat %[[SUM]], %[[SUM]] dim 0
  // CHECK: ds.reduce_scatter sum %{{.*}} along dp{{.*}} : tensor<64xf32> -> tensor<32xf32>
  // CHECK: ds.sum_of_squares %{{.*}} : tensor<32xf32> -> tensor<f64>
  // CHECK: ds.sub
  // CHECK: ds.all_gather
  func.func @last(%x: tensor<32xf32> {ds.input = "x"}, %a: tensor<32xf32> {ds.state = @a.b}, %c: tensor<32xf32> {ds.state = @c.b},
                  %ka: tensor<32xf32> {ds.state = @a.b.grad}, %kc: tensor<32xf32> {ds.state = @c.b.grad})
      -> (tensor<32xf32> {ds.state = @a.b}, tensor<32xf32> {ds.state = @c.b}, tensor<f64> {ds.state = @grad_norm})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %y = ds.add %a, %c {ds.work = #ds.work<forward>} : tensor<32xf32>
    %d = ds.add %x, %y {ds.work = #ds.work<backward>} : tensor<32xf32>
    %sa = ds.accumulate %d into %ka {ds.work = #ds.work<backward>} : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
    %sc = ds.accumulate %d into %kc {ds.work = #ds.work<backward>} : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
    %q = ds.sum_of_squares %sa, %sc {ds.work = #ds.work<update>} : tensor<32xf32>, tensor<32xf32> -> tensor<f64>
    %na = ds.update @a.b states(%a) gradient(%sa) {ds.work = #ds.work<update>} : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32> {
    ^bb0(%p: tensor<32xf32>, %g: tensor<32xf32>):
      %n = ds.sub %p, %g : tensor<32xf32>
      ds.yield %n : tensor<32xf32>
    }
    %nc = ds.update @c.b states(%c) gradient(%sc) {ds.work = #ds.work<update>} : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32> {
    ^bb0(%p: tensor<32xf32>, %g: tensor<32xf32>):
      %n = ds.sub %p, %g : tensor<32xf32>
      ds.yield %n : tensor<32xf32>
    }
    return %na, %nc, %q : tensor<32xf32>, tensor<32xf32>, tensor<f64>
  }
}

// -----

// Without accumulation both updates read one gradient, and one sum of squares has it twice.
module attributes {ds.training = #ds.training<zero_optimization = {stage = 0}>} {
  ds.mesh @mesh axes [dp = 2] samples dp zero dp
  ds.state @a.b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<32xf32>
  ds.state @c.b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<32xf32>
  ds.state @grad_norm role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f64>
  // CHECK-LABEL: func.func @last
  // CHECK: %[[SUM:.*]] = ds.add %arg0, %{{.*}} {ds.work = #ds.work<backward>} : tensor<32xf32>
  // CHECK: %[[FLAT:.*]] = ds.concat %[[SUM]], %[[SUM]] dim 0
  // CHECK: %[[ALL:.*]] = ds.all_reduce sum %[[FLAT]]
  // CHECK: ds.sum_of_squares %[[ALL]]
  func.func @last(%x: tensor<32xf32> {ds.input = "x"}, %a: tensor<32xf32> {ds.state = @a.b}, %c: tensor<32xf32> {ds.state = @c.b})
      -> (tensor<32xf32> {ds.state = @a.b}, tensor<32xf32> {ds.state = @c.b}, tensor<f64> {ds.state = @grad_norm})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %y = ds.add %a, %c {ds.work = #ds.work<forward>} : tensor<32xf32>
    %d = ds.add %x, %y {ds.work = #ds.work<backward>} : tensor<32xf32>
    %q = ds.sum_of_squares %d, %d {ds.work = #ds.work<update>} : tensor<32xf32>, tensor<32xf32> -> tensor<f64>
    %na = ds.update @a.b states(%a) gradient(%d) {ds.work = #ds.work<update>} : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32> {
    ^bb0(%p: tensor<32xf32>, %g: tensor<32xf32>):
      %n = ds.sub %p, %g : tensor<32xf32>
      ds.yield %n : tensor<32xf32>
    }
    %nc = ds.update @c.b states(%c) gradient(%d) {ds.work = #ds.work<update>} : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32> {
    ^bb0(%p: tensor<32xf32>, %g: tensor<32xf32>):
      %n = ds.sub %p, %g : tensor<32xf32>
      ds.yield %n : tensor<32xf32>
    }
    return %na, %nc, %q : tensor<32xf32>, tensor<32xf32>, tensor<f64>
  }
}
