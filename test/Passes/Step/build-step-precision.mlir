// RUN: ds-opt %s --split-input-file --ds-lower-precision --ds-differentiate --ds-build-step | FileCheck %s

// bf16 without ZeRO: the optimizer steps an f32 master, from which the parameter is rounded; a step whose gradients
// are not finite changes nothing. Frozen parameters have no master. Gradients of micro-steps add up in f32.
// CHECK-LABEL: module @masters
module @masters attributes {ds.training = #ds.training<gradient_accumulation_steps = 2, optimizer = {type = lion, lr = 0.5},
    precision = {compute = bf16, gradient = f32}, loss_scale = {skip = true}>} {
  // CHECK-DAG: ds.state @w.master role{{ ?}}(master) slot("master") owner(@w) {{.*}} : tensor<6x8xf32>
  // CHECK-DAG: ds.state @w.exp_avg role{{ ?}}(moment) slot("exp_avg") owner(@w) {{.*}} : tensor<6x8xf32>
  // CHECK-DAG: ds.state @w.grad role{{ ?}}(gradient) slot("grad") owner(@w) {{.*}} : tensor<6x8xf32>
  // CHECK-DAG: ds.state @skipped role{{ ?}}(scalar) {{.*}} : tensor<i64>
  // CHECK-NOT: @frozen.master
  // CHECK-NOT: @loss_scale
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6x8xf32>
  ds.state @frozen role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
  func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}, %w: tensor<6x8xf32> {ds.state = @w}, %b: tensor<6xf32> {ds.state = @frozen}) -> tensor<f32> {
    %h = ds.matmul %x, %w bias(%b) transpose_rhs : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6xf32> -> tensor<4x6xf32>
    %loss = ds.reduce sum %h dims [0, 1] : tensor<4x6xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
  // CHECK: func.func @first
  // CHECK: %[[GRAD:.*]] = ds.matmul {{.*}} transpose_lhs{{.*}} : tensor<4x6xbf16>, tensor<4x8xbf16> -> tensor<6x8xbf16>
  // CHECK: %[[KEPT:.*]] = ds.accumulate %[[GRAD]] {{.*}} : (tensor<6x8xbf16>) -> tensor<6x8xf32>
  // CHECK: return {{.*}}%[[KEPT]]

  // CHECK: func.func @last
  // CHECK-SAME: %[[STEP:[a-z0-9]*]]: tensor<i64> {ds.state = @step}
  // CHECK-SAME: %[[GRAD:[a-z0-9]*]]: tensor<6x8xf32> {ds.state = @w.grad}
  // CHECK: %[[INFINITE:.*]] = ds.constant dense<0x7FF0000000000000>{{.*}} : tensor<f64>
  // CHECK: %[[OWN:.*]] = ds.matmul {{.*}} transpose_lhs{{.*}} -> tensor<6x8xbf16>
  // CHECK: %[[SUM:.*]] = ds.accumulate %[[OWN]] into %[[GRAD]] {{.*}} : (tensor<6x8xbf16>, tensor<6x8xf32>) -> tensor<6x8xf32>
  // CHECK: %[[SQUARES:.*]] = ds.sum_of_squares %[[SUM]]
  // CHECK: %[[FINITE:.*]] = ds.compare lt %[[SQUARES]], %[[INFINITE]]
  // CHECK: %[[SKIPPED:.*]] = ds.select %[[FINITE]], {{.*}} : tensor<i64>
  // CHECK: %[[DONE:.*]] = ds.select %[[FINITE]], {{.*}}, %[[STEP]]{{.*}} : tensor<i64>
  // CHECK: %[[NEW:.*]]:3 = ds.update @w states({{.*}}) gradient(%[[SUM]]) scalars(%[[FINITE]])
  // CHECK: ^bb0(%[[MASTER:.*]]: tensor<6x8xf32>, %[[MEAN:.*]]: tensor<6x8xf32>, %[[GRADIENT:.*]]: tensor<6x8xf32>, %[[OK:.*]]: tensor<i1>):
  // All of the update waits for the verdict: what did not would be computed, and kept, before the norm is known.
  // CHECK: %[[GOOD:.*]] = ds.broadcast %[[OK]]
  // CHECK: ds.select %[[GOOD]], %[[GRADIENT]], %{{.*}} : tensor<6x8xf32>
  // CHECK: %[[OKS:.*]] = ds.broadcast %[[OK]]
  // CHECK: %[[M:.*]] = ds.select %[[OKS]], %{{.*}}, %[[MEAN]]
  // CHECK: %[[P:.*]] = ds.select %{{.*}}, %{{.*}}, %[[MASTER]]
  // CHECK: %[[ROUNDED:.*]] = ds.convert %[[P]]{{.*}} : tensor<6x8xf32> -> tensor<6x8xbf16>
  // CHECK: ds.yield %[[M]], %[[P]], %[[ROUNDED]]
}

// -----

// 16-bit masters are the parameters themselves; moments are as asked.
// CHECK-LABEL: module @narrow_states
module @narrow_states attributes {ds.training = #ds.training<optimizer = {type = lion}, precision = {compute = bf16, gradient = bf16, master = bf16, moment = bf16}>} {
  // CHECK-NOT: .master
  // CHECK: ds.state @w.exp_avg role{{ ?}}(moment) slot("exp_avg") owner(@w) {{.*}} : tensor<8xbf16>
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  func.func @forward(%x: tensor<8xf32> {ds.input = "x"}, %w: tensor<8xf32> {ds.state = @w}) -> tensor<f32> {
    %y = ds.mul %x, %w : tensor<8xf32>
    %loss = ds.reduce sum %y dims [0] : tensor<8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// The backward pass starts from the scale; the norm is unscaled, and so is the gradient: both divide by the same state.
// CHECK-LABEL: module @scaled
module @scaled attributes {ds.training = #ds.training<gradient_accumulation_steps = 2, optimizer = {type = sgd}, precision = {compute = f16, gradient = f16},
    loss_scale = {skip = true, scale = true, dynamic = true, initial = 256.0, hysteresis = 3}>} {
  // CHECK-DAG: ds.state @loss_scale role{{ ?}}(scalar) init(#ds.init<constant, 2.560000e+02, 0.000000e+00>) {{.*}} : tensor<f32>
  // CHECK-DAG: ds.state @hysteresis role{{ ?}}(scalar) init(#ds.init<constant, 3.000000e+00, 0.000000e+00>) {{.*}} : tensor<i64>
  // CHECK-DAG: ds.state @good_steps role{{ ?}}(scalar) init(#ds.init<zero, {{.*}} : tensor<i64>
  // CHECK-DAG: ds.state @w.grad {{.*}} : tensor<8xf16>
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  func.func @forward(%x: tensor<8xf32> {ds.input = "x"}, %w: tensor<8xf32> {ds.state = @w}) -> tensor<f32> {
    %y = ds.mul %x, %w : tensor<8xf32>
    %loss = ds.reduce sum %y dims [0] : tensor<8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
  // CHECK: func.func @last
  // CHECK-SAME: %[[SCALE:[a-z0-9]*]]: tensor<f32> {ds.state = @loss_scale}
  // CHECK-SAME: {ds.state = @skipped}
  // CHECK: %[[HALF:.*]] = ds.constant dense<5.000000e-01>{{.*}} : tensor<f32>
  // CHECK: %[[SEED:.*]] = ds.mul %[[SCALE]], %[[HALF]]
  // CHECK-NEXT: ds.broadcast %[[SEED]]
  // CHECK: ds.accumulate %{{.*}} into %{{.*}} : (tensor<8xf16>, tensor<8xf16>) -> tensor<8xf16>
  // CHECK: %[[WIDE:.*]] = ds.convert %[[SCALE]]{{.*}} : tensor<f32> -> tensor<f64>
  // CHECK: %[[NORM:.*]] = ds.sqrt
  // CHECK: ds.div %[[NORM]], %[[WIDE]]
  // CHECK: ds.div %{{.*}}, %[[WIDE]]
  // CHECK: func.func @evaluate
  // CHECK-NOT: @loss_scale
}
