// RUN: ds-opt %s --split-input-file --ds-differentiate | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-differentiate --ds-build-step --ds-decompose --ds-simplify --ds-verify-step | FileCheck %s --check-prefix=STEP

// The first of two stages has no loss: gradients start from what comes back for what is sent, in the other order. What is sent for its value
// alone brings nothing back.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: -> (tensor<4x4xf32> {ds.state = #ds.gradient<@w>})
// CHECK: %[[A:.*]] = ds.matmul %[[X:.*]], %[[W:.*]] {ds.work = #ds.work<forward>}
// CHECK: %[[B:.*]] = ds.tanh %[[A]]
// CHECK: ds.send %[[A]] to 1 along pp trained {ds.work = #ds.work<forward>}
// CHECK: ds.send %[[B]] to 1 along pp trained {ds.work = #ds.work<forward>}
// CHECK: ds.send %[[X]] to 1 along pp {ds.work = #ds.work<forward>}
// CHECK-NEXT: %[[DB:.*]] = ds.recv from 1 along pp {ds.work = #ds.work<backward>}
// CHECK-NEXT: %[[DA:.*]] = ds.recv from 1 along pp {ds.work = #ds.work<backward>}
// CHECK-NOT: ds.recv
// CHECK: %[[SUM:.*]] = ds.add %[[DA]], %{{.*}}
// CHECK: ds.matmul %{{.*}}, %[[SUM]] transpose_lhs
// Its evaluation sends, and waits for nothing; a step has no loss.
// STEP-LABEL: module
// STEP-NOT: ds.state @loss
// STEP: ds.schedule stage 0
// STEP: func.func @last{{.*}} attributes {ds.segment = #ds.segment<forward, backward, update>}
// STEP: func.func @evaluate
// STEP-COUNT-3: ds.send
// STEP-NOT: ds.recv
module attributes {ds.training = #ds.training<optimizer = {type = sgd, lr = 1.0e-02}>} {
  ds.mesh @mesh axes [pp = 2] stages pp
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
  func.func @forward(%x: tensor<2x4xf32> {ds.input = "x"}, %w: tensor<4x4xf32> {ds.state = @w}) attributes {ds.segment = #ds.segment<forward>} {
    %a = ds.matmul %x, %w : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
    %b = ds.tanh %a : tensor<2x4xf32>
    ds.send %a to 1 along pp trained : tensor<2x4xf32>
    ds.send %b to 1 along pp trained : tensor<2x4xf32>
    ds.send %x to 1 along pp : tensor<2x4xf32>
    return
  }
}

// -----

// The last stage: a gradient goes back for what was received, zeros where the loss does not depend on it, for the other stage waits.
// CHECK-LABEL: func.func @forward
// CHECK: %[[A:.*]] = ds.recv from 0 along pp trained {ds.work = #ds.work<forward>}
// CHECK: %[[B:.*]] = ds.recv from 0 along pp trained {ds.work = #ds.work<forward>}
// CHECK: %[[ZERO:.*]] = ds.constant dense<0.000000e+00> : tensor<2x4xf32>
// CHECK: ds.send %[[ZERO]] to 0 along pp {ds.work = #ds.work<backward>}
// CHECK: ds.send %[[DA:.*]] to 0 along pp {ds.work = #ds.work<backward>}
// CHECK-NOT: ds.send
// CHECK: return
// STEP-LABEL: module
// STEP: ds.state @loss
// STEP: ds.schedule stage 1 [#ds.run<@last
// STEP: func.func @last{{.*}} attributes {ds.segment = #ds.segment<stage 1, forward, backward, update>}
// STEP: func.func @evaluate{{.*}} attributes {ds.segment = #ds.segment<stage 1, evaluation>}
// STEP-COUNT-2: ds.recv
// STEP-NOT: ds.send
module attributes {ds.training = #ds.training<optimizer = {type = sgd, lr = 1.0e-02}>} {
  ds.mesh @mesh axes [pp = 2] stages pp
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x4xf32>
  func.func @forward(%w: tensor<2x4xf32> {ds.state = @w}) -> tensor<f32> attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward>} {
    %a = ds.recv from 0 along pp trained : tensor<2x4xf32>
    %b = ds.recv from 0 along pp trained : tensor<2x4xf32>
    %y = ds.mul %a, %w : tensor<2x4xf32>
    %loss = ds.reduce sum %y dims [0, 1] : tensor<2x4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
