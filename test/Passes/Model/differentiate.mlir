// RUN: ds-opt %s --split-input-file --ds-differentiate | FileCheck %s --implicit-check-not=ds.transpose

// A module in which nothing is trainable stays as it is.

ds.state @w role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>

// CHECK-LABEL: func.func @forward
// CHECK-SAME: -> tensor<f32> {
// CHECK-NEXT: %[[LOSS:.*]] = ds.reduce
// CHECK-NEXT: return %[[LOSS]] : tensor<f32>
func.func @forward(%w: tensor<8xf32> {ds.state = @w}) -> tensor<f32> {
  %loss = ds.reduce sum %w dims [0] : tensor<8xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Gradients come in argument order, in the layout of their parameter; the input x is not differentiated: the only
// product whose result has its shape is the forward's. Without ds.training the seed is 1.

ds.state @w1 role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<16x8xf32>
ds.state @b1 role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<16xf32>
ds.state @w2 role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<16x5xf32>

// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[X:.*]]: tensor<2x4x8xf32> {ds.input = "x"}, %[[T:.*]]: tensor<8xi64>
// CHECK-SAME: %[[W1:.*]]: tensor<16x8xf32> {{.*}}, %[[B1:.*]]: tensor<16xf32> {{.*}}, %[[W2:.*]]: tensor<16x5xf32>
// CHECK-SAME: -> (tensor<f32>, tensor<16x8xf32> {ds.state = #ds.gradient<@w1>}, tensor<16xf32> {ds.state = #ds.gradient<@b1>}, tensor<16x5xf32> {ds.state = #ds.gradient<@w2>})
func.func @forward(%x: tensor<2x4x8xf32> {ds.input = "x"}, %t: tensor<8xi64> {ds.input = "t"},
                   %w1: tensor<16x8xf32> {ds.state = @w1}, %b1: tensor<16xf32> {ds.state = @b1},
                   %w2: tensor<16x5xf32> {ds.state = @w2}) -> tensor<f32> {
  %h = ds.matmul %x, %w1 bias(%b1) transpose_rhs : tensor<2x4x8xf32>, tensor<16x8xf32>, tensor<16xf32> -> tensor<2x4x16xf32>
  %a = ds.tanh %h : tensor<2x4x16xf32>
  %y = ds.matmul %a, %w2 : tensor<2x4x16xf32>, tensor<16x5xf32> -> tensor<2x4x5xf32>
  %z = ds.reshape %y : tensor<2x4x5xf32> -> tensor<8x5xf32>
  %loss, %lse, %count = ds.cross_entropy %z, %t ignore_index -100 : (tensor<8x5xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
  return %loss : tensor<f32>
}
// CHECK: %[[A:.*]] = ds.tanh
// CHECK: %[[LOSS:.*]], %[[LSE:.*]], %[[COUNT:.*]] = ds.cross_entropy %[[Z:.*]], %[[T]]
// CHECK: %[[SEED:.*]] = ds.constant dense<1.000000e+00>{{.*}} : tensor<f32>
// CHECK: %[[DZ:.*]] = ds.cross_entropy_grad %[[Z]], %[[T]], %[[LSE]], %[[COUNT]], %[[SEED]] ignore_index -100
// CHECK: %[[DY:.*]] = ds.reshape %[[DZ]]{{.*}} : tensor<8x5xf32> -> tensor<2x4x5xf32>
// CHECK: %[[DA:.*]] = ds.matmul %[[DY]], %[[W2]] transpose_rhs{{.*}} : tensor<2x4x5xf32>, tensor<16x5xf32> -> tensor<2x4x16xf32>
// CHECK: %[[ROWS:.*]] = ds.reshape %[[A]]{{.*}} : tensor<2x4x16xf32> -> tensor<8x16xf32>
// CHECK: %[[DW2:.*]] = ds.matmul %[[ROWS]], %{{.*}} transpose_lhs{{.*}} : tensor<8x16xf32>, tensor<8x5xf32> -> tensor<16x5xf32>
// CHECK: %[[DH:.*]] = ds.mul %[[DA]]
// CHECK: %[[X_ROWS:.*]] = ds.reshape %[[X]]{{.*}} : tensor<2x4x8xf32> -> tensor<8x8xf32>
// CHECK: %[[DH_ROWS:.*]] = ds.reshape %[[DH]]{{.*}} : tensor<2x4x16xf32> -> tensor<8x16xf32>
// CHECK: %[[DW1:.*]] = ds.matmul %[[DH_ROWS]], %[[X_ROWS]] transpose_lhs{{.*}} : tensor<8x16xf32>, tensor<8x8xf32> -> tensor<16x8xf32>
// CHECK-NOT: ds.matmul
// CHECK: %[[DB1:.*]] = ds.reduce sum %[[DH]] dims [0, 1]
// CHECK: return %[[LOSS]], %[[DW1]], %[[DB1]], %[[DW2]]

// -----

// With 4 micro-steps the seed is 1/4. A value used twice gets the sum of both gradients, last use first: here
// d loss / d e = 1/4 (second reduce) + 1/4 * e (product), and each use of w in w * w counts.

module attributes {ds.training = #ds.training<gradient_accumulation_steps = 4>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  // CHECK-LABEL: func.func @forward
  // CHECK-SAME: %[[W:.*]]: tensor<8xf32>
  func.func @forward(%w: tensor<8xf32> {ds.state = @w}) -> tensor<f32> {
    %e = ds.exp %w : tensor<8xf32>
    %p = ds.mul %e, %w : tensor<8xf32>
    %q = ds.add %p, %e : tensor<8xf32>
    %loss = ds.reduce sum %q dims [0] : tensor<8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
  // CHECK: %[[E:.*]] = ds.exp %[[W]]
  // CHECK: %[[SEED:.*]] = ds.constant dense<2.500000e-01>{{.*}} : tensor<f32>
  // CHECK: %[[G:.*]] = ds.constant dense<2.500000e-01>{{.*}} : tensor<8xf32>
  // CHECK: %[[GE:.*]] = ds.mul %[[W]], %[[G]]
  // CHECK: %[[GW:.*]] = ds.mul %[[E]], %[[G]]
  // CHECK: %[[DE:.*]] = ds.add %[[GE]], %[[G]]
  // CHECK: %[[GW2:.*]] = ds.mul %[[DE]], %[[E]]
  // CHECK: %[[DW:.*]] = ds.add %[[GW]], %[[GW2]]
  // CHECK: return %{{.*}}, %[[DW]]
}

// -----

// The frozen weight f has no gradient, but gradients pass through it; the parameter u, which does not reach the
// loss, has none, nor is anything emitted for it.

ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
ds.state @f role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
ds.state @u role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>

// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[F:[a-z0-9]*]]: tensor<4x4xf32> {ds.state = @f}
// CHECK-SAME: -> (tensor<f32>, tensor<4x4xf32> {ds.state = #ds.gradient<@w>}) {
func.func @forward(%x: tensor<4x4xf32> {ds.input = "x"}, %w: tensor<4x4xf32> {ds.state = @w},
                   %f: tensor<4x4xf32> {ds.state = @f}, %u: tensor<4x4xf32> {ds.state = @u}) -> tensor<f32> {
  %unused = ds.exp %u : tensor<4x4xf32>
  %a = ds.matmul %x, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %b = ds.matmul %a, %f : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %loss = ds.reduce sum %b dims [0, 1] : tensor<4x4xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
// CHECK: %[[G:.*]] = ds.constant dense<1.000000e+00>{{.*}} : tensor<4x4xf32>
// CHECK-NEXT: %[[DA:.*]] = ds.matmul %[[G]], %[[F]] transpose_rhs
// CHECK-NEXT: %[[DW:.*]] = ds.matmul %{{.*}}, %[[DA]] transpose_lhs
// CHECK-NEXT: return %{{.*}}, %[[DW]] : tensor<f32>, tensor<4x4xf32>

// -----

// What is not differentiable (floor, a comparison, an integer) ends the sweep: only the selected branch counts.

ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>

// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[W:.*]]: tensor<8xf32>
func.func @forward(%w: tensor<8xf32> {ds.state = @w}) -> tensor<f32> {
  %floor = ds.floor %w : tensor<8xf32>
  %positive = ds.compare gt %w, %floor : tensor<8xf32>
  %y = ds.select %positive, %w, %floor : tensor<8xf32>
  %loss = ds.reduce sum %y dims [0] : tensor<8xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
// CHECK: %[[POSITIVE:.*]] = ds.compare
// CHECK: %[[G:.*]] = ds.constant dense<1.000000e+00>{{.*}} : tensor<8xf32>
// CHECK: %[[ZERO:.*]] = ds.constant dense<0.000000e+00>{{.*}} : tensor<8xf32>
// CHECK: %[[DW:.*]] = ds.select %[[POSITIVE]], %[[G]], %[[ZERO]]
// CHECK: return %{{.*}}, %[[DW]]

// -----

// A product of 16-bit matrices with an f32 result: its gradient is rounded once for the products; the bias sums it first.

ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<16x8xbf16>
ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<16xbf16>

// CHECK-LABEL: func.func @forward
// CHECK: %[[G:.*]] = ds.cross_entropy_grad {{.*}} -> tensor<4x16xf32>
// CHECK: %[[LOW:.*]] = ds.convert %[[G]]{{.*}} : tensor<4x16xf32> -> tensor<4x16xbf16>
// CHECK: ds.matmul %[[LOW]], %{{.*}} transpose_lhs{{.*}} : tensor<4x16xbf16>, tensor<4x8xbf16> -> tensor<16x8xbf16>
// CHECK: %[[SUM:.*]] = ds.reduce sum %[[G]] dims [0]
// CHECK: ds.convert %[[SUM]]{{.*}} : tensor<16xf32> -> tensor<16xbf16>
func.func @forward(%x: tensor<4x8xbf16> {ds.input = "x"}, %t: tensor<4xi64> {ds.input = "t"},
                   %w: tensor<16x8xbf16> {ds.state = @w}, %b: tensor<16xbf16> {ds.state = @b}) -> tensor<f32> {
  %y = ds.matmul %x, %w bias(%b) transpose_rhs : tensor<4x8xbf16>, tensor<16x8xbf16>, tensor<16xbf16> -> tensor<4x16xf32>
  %loss, %lse, %count = ds.cross_entropy %y, %t ignore_index -100 : (tensor<4x16xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  return %loss : tensor<f32>
}

// -----

// Two products read one 16-bit weight and bias: the parts of each gradient are added in f32 and rounded once. The weight
// that one product reads has a gradient of its own type at once.

ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6x8xbf16>
ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xbf16>
ds.state @u role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<5x6xbf16>

// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<4x8xbf16> {ds.input = "x"}, %y: tensor<4x8xbf16> {ds.input = "y"}, %w: tensor<6x8xbf16> {ds.state = @w},
                   %b: tensor<6xbf16> {ds.state = @b}, %u: tensor<5x6xbf16> {ds.state = @u}) -> tensor<f32> {
  %p = ds.matmul %x, %w bias(%b) transpose_rhs : tensor<4x8xbf16>, tensor<6x8xbf16>, tensor<6xbf16> -> tensor<4x6xbf16>
  %q = ds.matmul %y, %w bias(%b) transpose_rhs : tensor<4x8xbf16>, tensor<6x8xbf16>, tensor<6xbf16> -> tensor<4x6xbf16>
  %m = ds.mul %p, %q : tensor<4x6xbf16>
  %r = ds.matmul %m, %u transpose_rhs : tensor<4x6xbf16>, tensor<5x6xbf16> -> tensor<4x5xbf16>
  %f = ds.convert %r : tensor<4x5xbf16> -> tensor<4x5xf32>
  %loss = ds.reduce sum %f dims [0, 1] : tensor<4x5xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
// CHECK: %[[DU:.*]] = ds.matmul {{.*}} transpose_lhs{{.*}} : tensor<4x5xbf16>, tensor<4x6xbf16> -> tensor<5x6xbf16>
// CHECK: %[[W1:.*]] = ds.matmul %{{.*}}, %[[Y:.*]] transpose_lhs{{.*}} : tensor<4x6xbf16>, tensor<4x8xbf16> -> tensor<6x8xf32>
// CHECK: %[[B1:.*]] = ds.reduce sum %{{.*}} dims [0]{{.*}} : tensor<4x6xf32> -> tensor<6xf32>
// CHECK: %[[W0:.*]] = ds.matmul {{.*}} transpose_lhs{{.*}} : tensor<4x6xbf16>, tensor<4x8xbf16> -> tensor<6x8xf32>
// CHECK: %[[WS:.*]] = ds.add %[[W1]], %[[W0]]
// CHECK: %[[DW:.*]] = ds.convert %[[WS]]{{.*}} : tensor<6x8xf32> -> tensor<6x8xbf16>
// CHECK: %[[B0:.*]] = ds.reduce sum %{{.*}} dims [0]{{.*}} : tensor<4x6xf32> -> tensor<6xf32>
// CHECK: %[[BS:.*]] = ds.add %[[B1]], %[[B0]]
// CHECK: %[[DB:.*]] = ds.convert %[[BS]]{{.*}} : tensor<6xf32> -> tensor<6xbf16>
// CHECK: return %{{.*}}, %[[DW]], %[[DB]], %[[DU]]

// -----

// Nothing passes through a value that is detached: of x * detach(x) the gradient is the detached factor alone.

ds.state @x role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>

// CHECK-LABEL: func.func @forward
// CHECK: %[[FIXED:.*]] = ds.detach
// CHECK: return %{{.*}}, %[[FIXED]]
func.func @forward(%x: tensor<8xf32> {ds.state = @x}) -> tensor<f32> {
  %fixed = ds.detach %x : tensor<8xf32>
  %p = ds.mul %x, %fixed : tensor<8xf32>
  %loss = ds.reduce sum %p dims [0] : tensor<8xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
