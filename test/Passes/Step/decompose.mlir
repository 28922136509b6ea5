// RUN: ds-opt %s --ds-decompose | FileCheck %s --implicit-check-not=ds.softmax --implicit-check-not=_norm --implicit-check-not=ds.dropout

// What is not a composite stays.
// CHECK-LABEL: @keeps_attention
func.func @keeps_attention(%q: tensor<1x4x2x8xf32>) -> tensor<1x4x2x8xf32> {
  // CHECK: ds.attention
  %o, %lse = ds.attention %q, %q, %q causal scale 1.0 : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> (tensor<1x4x2x8xf32>, tensor<1x2x4xf32>)
  return %o : tensor<1x4x2x8xf32>
}

// CHECK-LABEL: @softmax
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK: %[[MAX:.*]] = ds.reduce max %[[X]] dims [0] : tensor<4x8xf32> -> tensor<8xf32>
  // CHECK: %[[MAXES:.*]] = ds.broadcast %[[MAX]] dims [1]
  // CHECK: %[[SHIFTED:.*]] = ds.sub %[[X]], %[[MAXES]]
  // CHECK: %[[EXP:.*]] = ds.exp %[[SHIFTED]]
  // CHECK: %[[SUM:.*]] = ds.reduce sum %[[EXP]] dims [0]
  // CHECK: %[[SUMS:.*]] = ds.broadcast %[[SUM]] dims [1]
  // CHECK: %[[R:.*]] = ds.div %[[EXP]], %[[SUMS]]
  // CHECK: return %[[R]]
  %r = ds.softmax %x dim 0 : tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// 16-bit rows are widened, and narrowed at the end only.
// CHECK-LABEL: @log_softmax_bf16
// CHECK-SAME: %[[X:.*]]: tensor<4x8xbf16>
func.func @log_softmax_bf16(%x: tensor<4x8xbf16>) -> tensor<4x8xbf16> {
  // CHECK: %[[WIDE:.*]] = ds.convert %[[X]] : tensor<4x8xbf16> -> tensor<4x8xf32>
  // CHECK: %[[SHIFTED:.*]] = ds.sub %[[WIDE]]
  // CHECK: %[[EXP:.*]] = ds.exp %[[SHIFTED]] : tensor<4x8xf32>
  // CHECK: %[[SUM:.*]] = ds.reduce sum %[[EXP]] dims [1]
  // CHECK: %[[LOG:.*]] = ds.log %[[SUM]] : tensor<4xf32>
  // CHECK: %[[LOGS:.*]] = ds.broadcast %[[LOG]] dims [0]
  // CHECK: %[[R:.*]] = ds.sub %[[SHIFTED]], %[[LOGS]]
  // CHECK: ds.convert %[[R]] : tensor<4x8xf32> -> tensor<4x8xbf16>
  %r = ds.softmax log %x dim 1 : tensor<4x8xbf16>
  return %r : tensor<4x8xbf16>
}

// Two row sums: the mean, then the variance of what is left.
// CHECK-LABEL: @layer_norm
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32>
func.func @layer_norm(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK: %[[SUM:.*]] = ds.reduce sum %[[X]] dims [1]
  // CHECK: %[[LENGTH:.*]] = ds.constant dense<8.000000e+00> : tensor<4xf32>
  // CHECK: %[[MEAN:.*]] = ds.div %[[SUM]], %[[LENGTH]]
  // CHECK: %[[CENTERED:.*]] = ds.sub %[[X]]
  // CHECK: %[[SQUARE:.*]] = ds.mul %[[CENTERED]], %[[CENTERED]]
  // CHECK: ds.reduce sum %[[SQUARE]] dims [1]
  // CHECK: %[[EPSILON:.*]] = ds.constant dense<9.99999974E-6>
  // CHECK: %[[SHIFTED:.*]] = ds.add %{{.*}}, %[[EPSILON]]
  // CHECK: %[[RSTD:.*]] = ds.rsqrt %[[SHIFTED]]
  // CHECK: %[[RSTDS:.*]] = ds.broadcast %[[RSTD]] dims [0]
  // CHECK: %[[NORMALIZED:.*]] = ds.mul %[[CENTERED]], %[[RSTDS]]
  // CHECK: %[[WS:.*]] = ds.broadcast %[[W]] dims [1]
  // CHECK: %[[WEIGHTED:.*]] = ds.mul %[[NORMALIZED]], %[[WS]]
  // CHECK: %[[BS:.*]] = ds.broadcast %[[B]] dims [1]
  // CHECK: %[[R:.*]] = ds.add %[[WEIGHTED]], %[[BS]]
  // CHECK: return %[[R]], %[[MEAN]], %[[RSTD]]
  %r, %mean, %rstd = ds.layer_norm %x weight(%w) bias(%b) over 1 epsilon 1.0e-5 : tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>
  return %r, %mean, %rstd : tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>
}

// Over two dimensions of 2 * 8 = 16 elements.
// CHECK-LABEL: @rms_norm
// CHECK-SAME: %[[X:.*]]: tensor<4x2x8xf32>, %[[W:.*]]: tensor<2x8xf32>
func.func @rms_norm(%x: tensor<4x2x8xf32>, %w: tensor<2x8xf32>) -> (tensor<4x2x8xf32>, tensor<4xf32>) {
  // CHECK: %[[SQUARE:.*]] = ds.mul %[[X]], %[[X]]
  // CHECK: ds.reduce sum %[[SQUARE]] dims [1, 2] : tensor<4x2x8xf32> -> tensor<4xf32>
  // CHECK: ds.constant dense<1.600000e+01> : tensor<4xf32>
  // CHECK: %[[RSTD:.*]] = ds.rsqrt
  // CHECK: %[[RSTDS:.*]] = ds.broadcast %[[RSTD]] dims [0]
  // CHECK: %[[NORMALIZED:.*]] = ds.mul %[[X]], %[[RSTDS]]
  // CHECK: %[[WS:.*]] = ds.broadcast %[[W]] dims [1, 2]
  // CHECK: %[[R:.*]] = ds.mul %[[NORMALIZED]], %[[WS]]
  // CHECK: return %[[R]], %[[RSTD]]
  %r, %rstd = ds.rms_norm %x weight(%w) over 2 epsilon 1.0e-6 : tensor<4x2x8xf32>, tensor<2x8xf32> -> tensor<4x2x8xf32>, tensor<4xf32>
  return %r, %rstd : tensor<4x2x8xf32>, tensor<4xf32>
}

// Kept where the draw reaches the probability, then divided by what is kept on average: 1 - 0.25. NaN is kept.
// CHECK-LABEL: @dropout
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[RNG:.*]]: tensor<2xi64>
func.func @dropout(%x: tensor<4x8xf32>, %rng: tensor<2xi64>) -> tensor<4x8xf32> {
  // CHECK: %[[DRAW:.*]] = ds.random_uniform %[[RNG]] id 3 first 0 : tensor<2xi64> -> tensor<4x8xf32>
  // CHECK: %[[P:.*]] = ds.constant dense<2.500000e-01>
  // CHECK: %[[DRAWN:.*]] = ds.compare ge %[[DRAW]], %[[P]]
  // CHECK: %[[NAN:.*]] = ds.compare ne %[[X]], %[[X]]
  // CHECK: %[[KEEP:.*]] = ds.or %[[DRAWN]], %[[NAN]]
  // CHECK: %[[Q:.*]] = ds.constant dense<7.500000e-01>
  // CHECK: %[[SCALED:.*]] = ds.div %[[X]], %[[Q]]
  // CHECK: %[[ZERO:.*]] = ds.constant dense<0.000000e+00>
  // CHECK: ds.select %[[KEEP]], %[[SCALED]], %[[ZERO]]
  %r = ds.dropout %x, %rng probability 0.25 id 3 : tensor<4x8xf32>, tensor<2xi64>
  return %r : tensor<4x8xf32>
}
