// RUN: ds-opt %s --split-input-file --canonicalize --cse --ds-raise-attention --canonicalize --cse | FileCheck %s

// Cases that stay. The probabilities are read twice; what is dropped of them is; the mask hides something else; the
// mask is trained; the softmax is along the wrong dimension.

ds.state @bias role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>

// CHECK-LABEL: @stays
// CHECK-NOT: ds.attention
func.func @stays(%q: tensor<2x3x4x8xf32>, %rng: tensor<2xi64>, %bias: tensor<4x4xf32> {ds.state = @bias})
    -> (tensor<2x3x4x8xf32>, tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) {
  %s = ds.matmul %q, %q transpose_rhs : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x4xf32>
  %p = ds.softmax %s dim 3 : tensor<2x3x4x4xf32>
  %twice = ds.matmul %p, %q : tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x8xf32>

  %two = ds.constant dense<2.0> : tensor<2x3x4x8xf32>
  %q2 = ds.mul %q, %two : tensor<2x3x4x8xf32>
  %s2 = ds.matmul %q2, %q transpose_rhs : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x4xf32>
  %p2 = ds.softmax %s2 dim 3 : tensor<2x3x4x4xf32>
  %d2 = ds.dropout %p2, %rng probability 0.1 id 0 : tensor<2x3x4x4xf32>, tensor<2xi64>
  %dropped = ds.matmul %d2, %q : tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x8xf32>

  %row = ds.iota dim 2 start 0 step 1 : tensor<2x3x4x4xi64>
  %column = ds.iota dim 3 start 0 step 1 : tensor<2x3x4x4xi64>
  %past = ds.compare lt %column, %row : tensor<2x3x4x4xi64>
  %fill = ds.constant dense<-1.0e9> : tensor<2x3x4x4xf32>
  %s3 = ds.matmul %q, %q2 transpose_rhs : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x4xf32>
  %m3 = ds.select %past, %s3, %fill : tensor<2x3x4x4xf32>
  %p3 = ds.softmax %m3 dim 3 : tensor<2x3x4x4xf32>
  %strict = ds.matmul %p3, %q : tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x8xf32>

  %s4 = ds.matmul %q2, %q2 transpose_rhs : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x4xf32>
  %b4 = ds.broadcast %bias dims [2, 3] : tensor<4x4xf32> -> tensor<2x3x4x4xf32>
  %m4 = ds.add %s4, %b4 : tensor<2x3x4x4xf32>
  %p4 = ds.softmax %m4 dim 3 : tensor<2x3x4x4xf32>
  %trained = ds.matmul %p4, %q : tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x8xf32>

  %s5 = ds.matmul %q2, %q transpose_rhs : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x4xf32>
  %p5 = ds.softmax %s5 dim 2 : tensor<2x3x4x4xf32>
  %wrong = ds.matmul %p5, %q : tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x8xf32>
  return %twice, %p, %d2, %dropped, %strict, %trained, %wrong : tensor<2x3x4x8xf32>, tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>
}

// -----

// The usual spelling: heads are transposed to the front, keys once more, the scores divided by sqrt(16) = 4, the
// future filled. All transpositions meet.

// CHECK-LABEL: @usual
// CHECK-SAME: %[[X:.*]]: tensor<2x4x144xf32>
// CHECK: %[[QKV:.*]]:3 = ds.split %[[X]] dim 2
// CHECK: %[[Q:.*]] = ds.reshape %[[QKV]]#0 : tensor<2x4x48xf32> -> tensor<2x4x3x16xf32>
// CHECK: %[[K:.*]] = ds.reshape %[[QKV]]#1
// CHECK: %[[V:.*]] = ds.reshape %[[QKV]]#2
// CHECK-NEXT: %[[O:.*]], %{{.*}} = ds.attention %[[Q]], %[[K]], %[[V]] causal scale 2.500000e-01
// CHECK-NEXT: %[[R:.*]] = ds.reshape %[[O]] : tensor<2x4x3x16xf32> -> tensor<2x4x48xf32>
// CHECK-NEXT: return %[[R]]
func.func @usual(%x: tensor<2x4x144xf32>) -> tensor<2x4x48xf32> {
  %qkv:3 = ds.split %x dim 2 : tensor<2x4x144xf32> -> tensor<2x4x48xf32>, tensor<2x4x48xf32>, tensor<2x4x48xf32>
  %q0 = ds.reshape %qkv#0 : tensor<2x4x48xf32> -> tensor<2x4x3x16xf32>
  %k0 = ds.reshape %qkv#1 : tensor<2x4x48xf32> -> tensor<2x4x3x16xf32>
  %v0 = ds.reshape %qkv#2 : tensor<2x4x48xf32> -> tensor<2x4x3x16xf32>
  %q = ds.transpose %q0 perm [0, 2, 1, 3] : tensor<2x4x3x16xf32> -> tensor<2x3x4x16xf32>
  %k1 = ds.transpose %k0 perm [0, 2, 1, 3] : tensor<2x4x3x16xf32> -> tensor<2x3x4x16xf32>
  %k = ds.transpose %k1 perm [0, 1, 3, 2] : tensor<2x3x4x16xf32> -> tensor<2x3x16x4xf32>
  %v = ds.transpose %v0 perm [0, 2, 1, 3] : tensor<2x4x3x16xf32> -> tensor<2x3x4x16xf32>
  %s = ds.matmul %q, %k : tensor<2x3x4x16xf32>, tensor<2x3x16x4xf32> -> tensor<2x3x4x4xf32>
  %four = ds.constant dense<4.0> : tensor<2x3x4x4xf32>
  %scaled = ds.div %s, %four : tensor<2x3x4x4xf32>
  %row1 = ds.iota dim 0 start 0 step 1 : tensor<4xi64>
  %row = ds.broadcast %row1 dims [0] : tensor<4xi64> -> tensor<4x4xi64>
  %column = ds.broadcast %row1 dims [1] : tensor<4xi64> -> tensor<4x4xi64>
  %future = ds.compare gt %column, %row : tensor<4x4xi64>
  %future4 = ds.reshape %future : tensor<4x4xi1> -> tensor<1x1x4x4xi1>
  %futures = ds.broadcast %future4 dims [0, 1, 2, 3] : tensor<1x1x4x4xi1> -> tensor<2x3x4x4xi1>
  %fill = ds.constant dense<0xFF800000> : tensor<2x3x4x4xf32>
  %masked = ds.select %futures, %fill, %scaled : tensor<2x3x4x4xf32>
  %p = ds.softmax %masked dim 3 : tensor<2x3x4x4xf32>
  %o = ds.matmul %p, %v : tensor<2x3x4x4xf32>, tensor<2x3x4x16xf32> -> tensor<2x3x4x16xf32>
  %t = ds.transpose %o perm [0, 2, 1, 3] : tensor<2x3x4x16xf32> -> tensor<2x4x3x16xf32>
  %r = ds.reshape %t : tensor<2x4x3x16xf32> -> tensor<2x4x48xf32>
  return %r : tensor<2x4x48xf32>
}

// -----

// Dropout of the probabilities, before or behind a reshape that counts them alike.

// CHECK-LABEL: @dropped
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x3x16xf32>, %[[RNG:.*]]: tensor<2xi64>
// CHECK-NEXT: %[[O:.*]], %{{.*}} = ds.attention %[[Q]], %[[Q]], %[[Q]] scale 1.000000e+00 dropout 1.000000e-01 id 6(%[[RNG]])
// CHECK-NEXT: return %[[O]]
func.func @dropped(%q0: tensor<2x4x3x16xf32>, %rng: tensor<2xi64>) -> tensor<2x4x3x16xf32> {
  %q = ds.transpose %q0 perm [0, 2, 1, 3] : tensor<2x4x3x16xf32> -> tensor<2x3x4x16xf32>
  %s = ds.matmul %q, %q transpose_rhs : tensor<2x3x4x16xf32>, tensor<2x3x4x16xf32> -> tensor<2x3x4x4xf32>
  %p = ds.softmax %s dim 3 : tensor<2x3x4x4xf32>
  %d = ds.dropout %p, %rng probability 0.1 id 6 : tensor<2x3x4x4xf32>, tensor<2xi64>
  %o = ds.matmul %d, %q : tensor<2x3x4x4xf32>, tensor<2x3x4x16xf32> -> tensor<2x3x4x16xf32>
  %t = ds.transpose %o perm [0, 2, 1, 3] : tensor<2x3x4x16xf32> -> tensor<2x4x3x16xf32>
  return %t : tensor<2x4x3x16xf32>
}

// -----

// CHECK-LABEL: @dropped_and_folded
// CHECK-NOT: ds.softmax
// CHECK: ds.attention {{.*}} scale 1.000000e+00 dropout 2.500000e-01 id 1(%{{.*}})
func.func @dropped_and_folded(%q0: tensor<2x4x3x16xf32>, %rng: tensor<2xi64>) -> tensor<6x4x16xf32> {
  %q = ds.transpose %q0 perm [0, 2, 1, 3] : tensor<2x4x3x16xf32> -> tensor<2x3x4x16xf32>
  %s = ds.matmul %q, %q transpose_rhs : tensor<2x3x4x16xf32>, tensor<2x3x4x16xf32> -> tensor<2x3x4x4xf32>
  %p = ds.softmax %s dim 3 : tensor<2x3x4x4xf32>
  %p3 = ds.reshape %p : tensor<2x3x4x4xf32> -> tensor<6x4x4xf32>
  %d = ds.dropout %p3, %rng probability 0.25 id 1 : tensor<6x4x4xf32>, tensor<2xi64>
  %v = ds.reshape %q : tensor<2x3x4x16xf32> -> tensor<6x4x16xf32>
  %o = ds.matmul %d, %v : tensor<6x4x4xf32>, tensor<6x4x16xf32> -> tensor<6x4x16xf32>
  return %o : tensor<6x4x16xf32>
}

// -----

// Batch and heads folded into one dimension, the query scaled before the product, a slice of a triangle of ones
// compared with zero, filled with a finite number before a second scaling: 0.5 * 0.5 = 0.25.

// CHECK-LABEL: @folded
// CHECK-SAME: %[[Q:.*]]: tensor<2x3x4x16xf32>, %[[K:.*]]: tensor<2x3x4x16xf32>, %[[V:.*]]: tensor<2x3x4x16xf32>
// CHECK-NEXT: %[[O:.*]], %{{.*}} = ds.attention %[[Q]], %[[K]], %[[V]] causal scale 2.500000e-01
// CHECK-NEXT: return %[[O]]
func.func @folded(%q0: tensor<2x3x4x16xf32>, %k0: tensor<2x3x4x16xf32>, %v0: tensor<2x3x4x16xf32>) -> tensor<2x3x4x16xf32> {
  %half = ds.constant dense<0.5> : tensor<2x3x4x16xf32>
  %qs = ds.mul %q0, %half : tensor<2x3x4x16xf32>
  %q1 = ds.transpose %qs perm [0, 2, 1, 3] : tensor<2x3x4x16xf32> -> tensor<2x4x3x16xf32>
  %q = ds.reshape %q1 : tensor<2x4x3x16xf32> -> tensor<8x3x16xf32>
  %k1 = ds.transpose %k0 perm [0, 2, 1, 3] : tensor<2x3x4x16xf32> -> tensor<2x4x3x16xf32>
  %k2 = ds.reshape %k1 : tensor<2x4x3x16xf32> -> tensor<8x3x16xf32>
  %k = ds.transpose %k2 perm [0, 2, 1] : tensor<8x3x16xf32> -> tensor<8x16x3xf32>
  %v1 = ds.transpose %v0 perm [0, 2, 1, 3] : tensor<2x3x4x16xf32> -> tensor<2x4x3x16xf32>
  %v = ds.reshape %v1 : tensor<2x4x3x16xf32> -> tensor<8x3x16xf32>
  %s = ds.matmul %q, %k : tensor<8x3x16xf32>, tensor<8x16x3xf32> -> tensor<8x3x3xf32>
  %ones = ds.constant dense<[[[[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]]]]> : tensor<1x1x4x4xf32>
  %corner = ds.slice %ones offsets [0, 0, 0, 0] strides [1, 1, 1, 1] : tensor<1x1x4x4xf32> -> tensor<1x1x3x3xf32>
  %zero = ds.constant dense<0.0> : tensor<1x1x3x3xf32>
  %hidden = ds.compare eq %corner, %zero : tensor<1x1x3x3xf32>
  %flat = ds.reshape %hidden : tensor<1x1x3x3xi1> -> tensor<3x3xi1>
  %hiddens = ds.broadcast %flat dims [1, 2] : tensor<3x3xi1> -> tensor<8x3x3xi1>
  %fill = ds.constant dense<-1.0e9> : tensor<8x3x3xf32>
  %masked = ds.select %hiddens, %fill, %s : tensor<8x3x3xf32>
  %halves = ds.constant dense<0.5> : tensor<8x3x3xf32>
  %scaled = ds.mul %masked, %halves : tensor<8x3x3xf32>
  %p = ds.softmax %scaled dim 2 : tensor<8x3x3xf32>
  %o = ds.matmul %p, %v : tensor<8x3x3xf32>, tensor<8x3x16xf32> -> tensor<8x3x16xf32>
  %o4 = ds.reshape %o : tensor<8x3x16xf32> -> tensor<2x4x3x16xf32>
  %t = ds.transpose %o4 perm [0, 2, 1, 3] : tensor<2x4x3x16xf32> -> tensor<2x3x4x16xf32>
  return %t : tensor<2x3x4x16xf32>
}

// -----

// Two query heads share a key head, repeated after the transposition (keys, expand) or before it (values,
// repeat_interleave). The padding mask stays an addend of [B, 1, 1, S]; the causal addend beside it does not. The
// queries are short of the keys by 2: position t sees s <= t + 2.

// CHECK-LABEL: @grouped
// CHECK-SAME: %[[Q:.*]]: tensor<2x3x4x8xf32>, %[[K:.*]]: tensor<2x5x2x8xf32>, %[[V:.*]]: tensor<2x5x2x8xf32>, %[[PADDING:.*]]: tensor<2x5xf32>
// CHECK-NOT: ds.transpose
// CHECK: %[[MASK:.*]] = ds.reshape %[[PADDING]] : tensor<2x5xf32> -> tensor<2x1x1x5xf32>
// CHECK-NEXT: %[[O:.*]], %{{.*}} = ds.attention %[[Q]], %[[K]], %[[V]] mask(%[[MASK]]) causal scale 1.000000e+00
// CHECK-NEXT: return %[[O]]
func.func @grouped(%q0: tensor<2x3x4x8xf32>, %k0: tensor<2x5x2x8xf32>, %v0: tensor<2x5x2x8xf32>, %padding: tensor<2x5xf32>) -> tensor<2x3x4x8xf32> {
  %q = ds.transpose %q0 perm [0, 2, 1, 3] : tensor<2x3x4x8xf32> -> tensor<2x4x3x8xf32>
  %k1 = ds.transpose %k0 perm [0, 2, 1, 3] : tensor<2x5x2x8xf32> -> tensor<2x2x5x8xf32>
  %k2 = ds.reshape %k1 : tensor<2x2x5x8xf32> -> tensor<2x2x1x5x8xf32>
  %k3 = ds.broadcast %k2 dims [0, 1, 2, 3, 4] : tensor<2x2x1x5x8xf32> -> tensor<2x2x2x5x8xf32>
  %k = ds.reshape %k3 : tensor<2x2x2x5x8xf32> -> tensor<2x4x5x8xf32>
  %v1 = ds.broadcast %v0 dims [0, 1, 2, 4] : tensor<2x5x2x8xf32> -> tensor<2x5x2x2x8xf32>
  %v2 = ds.reshape %v1 : tensor<2x5x2x2x8xf32> -> tensor<2x5x4x8xf32>
  %v = ds.transpose %v2 perm [0, 2, 1, 3] : tensor<2x5x4x8xf32> -> tensor<2x4x5x8xf32>
  %s = ds.matmul %q, %k transpose_rhs : tensor<2x4x3x8xf32>, tensor<2x4x5x8xf32> -> tensor<2x4x3x5xf32>
  %row = ds.iota dim 0 start 2 step 1 : tensor<3x5xi64>
  %column = ds.iota dim 1 start 0 step 1 : tensor<3x5xi64>
  %visible = ds.compare ge %row, %column : tensor<3x5xi64>
  %zero = ds.constant dense<0.0> : tensor<3x5xf32>
  %fill = ds.constant dense<-3.4e38> : tensor<3x5xf32>
  %causal = ds.select %visible, %zero, %fill : tensor<3x5xf32>
  %causals = ds.broadcast %causal dims [2, 3] : tensor<3x5xf32> -> tensor<2x4x3x5xf32>
  %m1 = ds.add %s, %causals : tensor<2x4x3x5xf32>
  %paddings = ds.broadcast %padding dims [0, 3] : tensor<2x5xf32> -> tensor<2x4x3x5xf32>
  %m2 = ds.add %m1, %paddings : tensor<2x4x3x5xf32>
  %p = ds.softmax %m2 dim 3 : tensor<2x4x3x5xf32>
  %o = ds.matmul %p, %v : tensor<2x4x3x5xf32>, tensor<2x4x5x8xf32> -> tensor<2x4x3x8xf32>
  %t = ds.transpose %o perm [0, 2, 1, 3] : tensor<2x4x3x8xf32> -> tensor<2x3x4x8xf32>
  return %t : tensor<2x3x4x8xf32>
}

// -----

// Heads that never were transposed count as batch: 2 * 4 = 8. A mask that differs between them is spread out, and
// multiplied like the scores it was added to.

// CHECK-LABEL: @as_batch
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x3x8xf32>, %[[MASK:.*]]: tensor<2x4x3x3xf32>
// CHECK-NOT: ds.transpose
// CHECK-DAG: %[[QUERY:.*]] = ds.reshape %[[Q]] : tensor<2x4x3x8xf32> -> tensor<8x3x1x8xf32>
// CHECK-DAG: %[[MASKS:.*]] = ds.reshape %[[MASK]] : tensor<2x4x3x3xf32> -> tensor<8x1x3x3xf32>
// CHECK-DAG: %[[TENTH:.*]] = ds.constant dense<1.000000e-01> : tensor<8x1x3x3xf32>
// CHECK: %[[SCALED:.*]] = ds.mul %[[MASKS]], %[[TENTH]]
// CHECK: %[[O:.*]], %{{.*}} = ds.attention %[[QUERY]], %[[QUERY]], %[[QUERY]] mask(%[[SCALED]]) scale
// CHECK: ds.reshape %[[O]] : tensor<8x3x1x8xf32> -> tensor<2x4x3x8xf32>
func.func @as_batch(%q: tensor<2x4x3x8xf32>, %mask: tensor<2x4x3x3xf32>) -> tensor<2x4x3x8xf32> {
  %s = ds.matmul %q, %q transpose_rhs : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %m = ds.add %mask, %s : tensor<2x4x3x3xf32>
  %tenth = ds.constant dense<0.1> : tensor<2x4x3x3xf32>
  %scaled = ds.mul %m, %tenth : tensor<2x4x3x3xf32>
  %p = ds.softmax %scaled dim 3 : tensor<2x4x3x3xf32>
  %o = ds.matmul %p, %q : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %o : tensor<2x4x3x8xf32>
}
