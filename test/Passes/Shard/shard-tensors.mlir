// RUN: ds-opt %s --split-input-file --ds-shard-tensors | FileCheck %s

// Columns, then rows: one sum. The bias beside what is a sum of addends is read by the first rank alone; that of the columns is cut with
// them. Which layer is which follows from the products alone.
// CHECK: ds.state @a {{.*}} shards [none, tp]
// CHECK: ds.state @a_bias {{.*}} shards [tp]
// CHECK: ds.state @b {{.*}} shards [tp, none]
// CHECK: ds.state @b_bias role (parameter) trainable init
// CHECK-LABEL: func.func @evaluate
// CHECK: %[[H:.*]] = ds.matmul %{{.*}}, %{{.*}} bias(%{{.*}}) {{.*}} : tensor<64x64xf32>, tensor<64x128xf32>, tensor<128xf32> -> tensor<64x128xf32>
// CHECK: %[[G:.*]] = ds.gelu tanh %[[H]] {{.*}} : tensor<64x128xf32>
// CHECK: %[[FIRST:.*]] = ds.compare eq
// CHECK: %[[ONCE:.*]] = ds.select %[[FIRST]], %{{.*}}, %{{.*}} : tensor<64xf32>
// CHECK: %[[ADDEND:.*]] = ds.matmul %[[G]], %{{.*}} bias(%[[ONCE]]) {{.*}} -> tensor<64x64xf32>
// CHECK: ds.all_reduce sum %[[ADDEND]] along tp {{.*}} : tensor<64x64xf32>
// CHECK-NOT: ds.all_reduce
// CHECK: return
module attributes {ds.phase = #ds.phase<step>, ds.training = #ds.training<tensor_parallel = {sequence_parallel = false}>} {
  ds.mesh @mesh axes [tp = 2] tensors tp
  ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x256xf32>
  ds.state @a_bias role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<256xf32>
  ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<256x64xf32>
  ds.state @b_bias role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64xf32>
  func.func @evaluate(%x: tensor<64x64xf32> {ds.input = "x"}, %a: tensor<64x256xf32> {ds.state = @a}, %p: tensor<256xf32> {ds.state = @a_bias},
                      %b: tensor<256x64xf32> {ds.state = @b}, %q: tensor<64xf32> {ds.state = @b_bias}) -> tensor<64x64xf32>
      attributes {ds.segment = #ds.segment<forward>} {
    %h = ds.matmul %x, %a bias(%p) {ds.work = #ds.work<forward>} : tensor<64x64xf32>, tensor<64x256xf32>, tensor<256xf32> -> tensor<64x256xf32>
    %g = ds.gelu tanh %h {ds.work = #ds.work<forward>} : tensor<64x256xf32>
    %y = ds.matmul %g, %b bias(%q) {ds.work = #ds.work<forward>} : tensor<64x256xf32>, tensor<256x64xf32>, tensor<64xf32> -> tensor<64x64xf32>
    return %y : tensor<64x64xf32>
  }
}

// -----

// Heads of a fused projection lie behind q, k and v: its columns are cut behind three others, and are packed on each rank.
// CHECK: ds.state @qkv {{.*}} view [64, 3, 64] shards [none, none, tp] {{.*}} : tensor<64x192xf32>
// CHECK: ds.state @out {{.*}} shards [tp, none]
// CHECK-LABEL: func.func @evaluate
// CHECK: %[[QKV:.*]] = ds.matmul %{{.*}} : tensor<64x64xf32>, tensor<64x96xf32> -> tensor<64x96xf32>
// CHECK: ds.split %{{.*}} dim 2 {{.*}} : tensor<2x32x96xf32> -> tensor<2x32x32xf32>, tensor<2x32x32xf32>, tensor<2x32x32xf32>
// CHECK: ds.attention {{.*}} : (tensor<2x32x2x16xf32>, tensor<2x32x2x16xf32>, tensor<2x32x2x16xf32>)
// CHECK: ds.all_reduce sum
// CHECK-NOT: ds.all_
// CHECK: return
module attributes {ds.phase = #ds.phase<step>, ds.training = #ds.training<tensor_parallel = {sequence_parallel = false}>} {
  ds.mesh @mesh axes [tp = 2] tensors tp
  ds.state @qkv role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x192xf32>
  ds.state @out role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x64xf32>
  func.func @evaluate(%x: tensor<64x64xf32> {ds.input = "x"}, %w: tensor<64x192xf32> {ds.state = @qkv}, %o: tensor<64x64xf32> {ds.state = @out}) -> tensor<64x64xf32>
      attributes {ds.segment = #ds.segment<forward>} {
    %a = ds.matmul %x, %w {ds.work = #ds.work<forward>} : tensor<64x64xf32>, tensor<64x192xf32> -> tensor<64x192xf32>
    %b = ds.reshape %a {ds.work = #ds.work<forward>} : tensor<64x192xf32> -> tensor<2x32x192xf32>
    %c:3 = ds.split %b dim 2 {ds.work = #ds.work<forward>} : tensor<2x32x192xf32> -> tensor<2x32x64xf32>, tensor<2x32x64xf32>, tensor<2x32x64xf32>
    %q = ds.reshape %c#0 {ds.work = #ds.work<forward>} : tensor<2x32x64xf32> -> tensor<2x32x4x16xf32>
    %k = ds.reshape %c#1 {ds.work = #ds.work<forward>} : tensor<2x32x64xf32> -> tensor<2x32x4x16xf32>
    %v = ds.reshape %c#2 {ds.work = #ds.work<forward>} : tensor<2x32x64xf32> -> tensor<2x32x4x16xf32>
    %r, %l = ds.attention %q, %k, %v causal scale 0.25 {ds.work = #ds.work<forward>} : (tensor<2x32x4x16xf32>, tensor<2x32x4x16xf32>, tensor<2x32x4x16xf32>) -> (tensor<2x32x4x16xf32>, tensor<2x4x32xf32>)
    %s = ds.reshape %r {ds.work = #ds.work<forward>} : tensor<2x32x4x16xf32> -> tensor<64x64xf32>
    %y = ds.matmul %s, %o {ds.work = #ds.work<forward>} : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    return %y : tensor<64x64xf32>
  }
}

// -----

// Fewer key heads than heads in one matrix: each of its three pieces is cut by itself, with the heads that are in it.
// CHECK: ds.state @qkv {{.*}} pieces [64, 32, 32] shards [none, tp] {{.*}} : tensor<64x128xf32>
// CHECK: ds.state @out {{.*}} shards [tp, none]
// CHECK-LABEL: func.func @evaluate
// CHECK: ds.matmul %{{.*}} : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
// CHECK: ds.split %{{.*}} dim 2 {{.*}} : tensor<2x32x64xf32> -> tensor<2x32x32xf32>, tensor<2x32x16xf32>, tensor<2x32x16xf32>
// CHECK: ds.attention {{.*}} : (tensor<2x32x2x16xf32>, tensor<2x32x1x16xf32>, tensor<2x32x1x16xf32>)
// CHECK: ds.all_reduce sum
// CHECK-NOT: ds.all_
// CHECK: return
module attributes {ds.phase = #ds.phase<step>, ds.training = #ds.training<tensor_parallel = {sequence_parallel = false}>} {
  ds.mesh @mesh axes [tp = 2] tensors tp
  ds.state @qkv role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x128xf32>
  ds.state @out role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x64xf32>
  func.func @evaluate(%x: tensor<64x64xf32> {ds.input = "x"}, %w: tensor<64x128xf32> {ds.state = @qkv}, %o: tensor<64x64xf32> {ds.state = @out}) -> tensor<64x64xf32>
      attributes {ds.segment = #ds.segment<forward>} {
    %a = ds.matmul %x, %w {ds.work = #ds.work<forward>} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    %b = ds.reshape %a {ds.work = #ds.work<forward>} : tensor<64x128xf32> -> tensor<2x32x128xf32>
    %c:3 = ds.split %b dim 2 {ds.work = #ds.work<forward>} : tensor<2x32x128xf32> -> tensor<2x32x64xf32>, tensor<2x32x32xf32>, tensor<2x32x32xf32>
    %q = ds.reshape %c#0 {ds.work = #ds.work<forward>} : tensor<2x32x64xf32> -> tensor<2x32x4x16xf32>
    %k = ds.reshape %c#1 {ds.work = #ds.work<forward>} : tensor<2x32x32xf32> -> tensor<2x32x2x16xf32>
    %v = ds.reshape %c#2 {ds.work = #ds.work<forward>} : tensor<2x32x32xf32> -> tensor<2x32x2x16xf32>
    %r, %l = ds.attention %q, %k, %v causal scale 0.25 {ds.work = #ds.work<forward>} : (tensor<2x32x4x16xf32>, tensor<2x32x2x16xf32>, tensor<2x32x2x16xf32>) -> (tensor<2x32x4x16xf32>, tensor<2x4x32xf32>)
    %s = ds.reshape %r {ds.work = #ds.work<forward>} : tensor<2x32x4x16xf32> -> tensor<64x64xf32>
    %y = ds.matmul %s, %o {ds.work = #ds.work<forward>} : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    return %y : tensor<64x64xf32>
  }
}

// -----

// Four ranks and two key heads: each rank reads the head that its queries belong to, of which two ranks have the same.
// CHECK: ds.state @wq {{.*}} shards [none, tp]
// CHECK-LABEL: func.func @evaluate
// CHECK: ds.local_shard %{{.*}} along tp
// CHECK: ds.attention {{.*}} : (tensor<2x32x2x8xf32>, tensor<2x32x1x8xf32>, tensor<2x32x1x8xf32>) -> (tensor<2x32x2x8xf32>, tensor<2x2x32xf32>)
// CHECK: return
module attributes {ds.phase = #ds.phase<step>, ds.training = #ds.training<tensor_parallel = {sequence_parallel = false}>} {
  ds.mesh @mesh axes [tp = 4] tensors tp
  ds.state @wq role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x64xf32>
  ds.state @wk role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x16xf32>
  ds.state @wo role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x64xf32>
  func.func @evaluate(%x: tensor<64x64xf32> {ds.input = "x"}, %wq: tensor<64x64xf32> {ds.state = @wq}, %wk: tensor<64x16xf32> {ds.state = @wk},
                      %wo: tensor<64x64xf32> {ds.state = @wo}) -> tensor<64x64xf32>
      attributes {ds.segment = #ds.segment<forward>} {
    %a = ds.matmul %x, %wq {ds.work = #ds.work<forward>} : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    %b = ds.matmul %x, %wk {ds.work = #ds.work<forward>} : tensor<64x64xf32>, tensor<64x16xf32> -> tensor<64x16xf32>
    %q = ds.reshape %a {ds.work = #ds.work<forward>} : tensor<64x64xf32> -> tensor<2x32x8x8xf32>
    %k = ds.reshape %b {ds.work = #ds.work<forward>} : tensor<64x16xf32> -> tensor<2x32x2x8xf32>
    %r, %l = ds.attention %q, %k, %k causal scale 0.25 {ds.work = #ds.work<forward>} : (tensor<2x32x8x8xf32>, tensor<2x32x2x8xf32>, tensor<2x32x2x8xf32>) -> (tensor<2x32x8x8xf32>, tensor<2x8x32xf32>)
    %s = ds.reshape %r {ds.work = #ds.work<forward>} : tensor<2x32x8x8xf32> -> tensor<64x64xf32>
    %y = ds.matmul %s, %wo {ds.work = #ds.work<forward>} : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    return %y : tensor<64x64xf32>
  }
}

// -----

// A table of 4099 words is padded to 4112, of which each of two ranks has 2056 rows. Words of the other rank are rows of zeros; columns behind
// the 99th count as minus infinity, and three numbers a row are exchanged in the place of logits.
// CHECK: ds.indices = [#ds.indices<"x" below 4099>, #ds.indices<"y" below 4099 ignore -100>]
// CHECK: ds.state @table {{.*}} view [4112, 64] existing 4099 shards [tp, none] {{.*}} : tensor<4099x64xf32>
// CHECK-LABEL: func.func @evaluate
// CHECK: ds.embedding part %{{.*}} : tensor<2056x64xf32>, tensor<32xi64> -> tensor<32x64xf32>
// CHECK: ds.all_reduce sum %{{.*}} : tensor<32x64xf32>
// CHECK: ds.matmul {{.*}} transpose_rhs {{.*}} : tensor<32x64xf32>, tensor<2056x64xf32> -> tensor<32x2056xf32>
// CHECK: ds.compare lt
// CHECK: ds.all_reduce max %{{.*}} : tensor<32xf32>
// CHECK: ds.all_reduce sum %{{.*}} : tensor<32xf32>
// CHECK: ds.all_reduce sum %{{.*}} : tensor<32xf32>
// CHECK-NOT: ds.all_
// CHECK: return %{{.*}} : tensor<f32>
module attributes {ds.phase = #ds.phase<step>, ds.training = #ds.training<tensor_parallel = {sequence_parallel = false}>} {
  ds.mesh @mesh axes [tp = 2] tensors tp
  ds.state @table role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4099x64xf32>
  func.func @evaluate(%x: tensor<32xi64> {ds.input = "x"}, %y: tensor<32xi64> {ds.input = "y"}, %t: tensor<4099x64xf32> {ds.state = @table}) -> tensor<f32>
      attributes {ds.segment = #ds.segment<forward>} {
    %e = ds.embedding %t, %x {ds.work = #ds.work<forward>} : tensor<4099x64xf32>, tensor<32xi64> -> tensor<32x64xf32>
    %g = ds.gelu tanh %e {ds.work = #ds.work<forward>} : tensor<32x64xf32>
    %l = ds.matmul %g, %t transpose_rhs {ds.work = #ds.work<forward>} : tensor<32x64xf32>, tensor<4099x64xf32> -> tensor<32x4099xf32>
    %loss, %lse, %count = ds.cross_entropy %l, %y ignore_index -100 {ds.work = #ds.work<forward>} : (tensor<32x4099xf32>, tensor<32xi64>) -> (tensor<f32>, tensor<32xf32>, tensor<f32>)
    return %loss : tensor<f32>
  }
}
