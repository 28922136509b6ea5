// RUN: ds-opt %s --split-input-file --ds-shard-tensors | FileCheck %s

// Two ranks have 16 of 32 tokens each, and in attention two of four heads: an exchange of each of q, k and v, and one back. Keys have half
// as many heads as queries, and are sent so. No parameter is cut, and nothing is gathered or added up.
// CHECK: ds.state @q role (parameter) trainable init
// CHECK-LABEL: func.func @evaluate
// CHECK: ds.local_shard %{{.*}} along sp {{.*}} : tensor<2x2x1024xf32> -> tensor<1x2x1024xf32>
// CHECK: ds.matmul {{.*}} : tensor<2x16x64xf32>, tensor<64x64xf32> -> tensor<2x16x64xf32>
// CHECK: %[[ALL:.*]] = ds.all_to_all %{{.*}} along sp {{.*}} : tensor<2x32x32xf32>
// CHECK: %[[BY_RANK:.*]] = ds.reshape %[[ALL]] {{.*}} -> tensor<2x2x512xf32>
// CHECK: %[[BY_SAMPLE:.*]] = ds.transpose %[[BY_RANK]] perm [1, 0, 2] {{.*}} : tensor<2x2x512xf32>
// CHECK: %[[Q:.*]] = ds.reshape %[[BY_SAMPLE]] {{.*}} -> tensor<2x32x2x16xf32>
// CHECK-COUNT-2: ds.all_to_all %{{.*}} along sp {{.*}} : tensor<2x32x16xf32>
// CHECK: ds.attention %[[Q]], %{{.*}}, %{{.*}} causal {{.*}} -> (tensor<2x32x2x16xf32>, tensor<2x2x32xf32>)
// CHECK: ds.all_to_all %{{.*}} along sp {{.*}} : tensor<2x2x512xf32>
// CHECK-NOT: ds.all_
// CHECK: ds.matmul {{.*}} : tensor<2x16x64xf32>, tensor<64x64xf32> -> tensor<2x16x64xf32>
// CHECK: ds.reduce sum {{.*}} : tensor<2x16x64xf32> -> tensor<f32>
// CHECK: ds.all_reduce sum %{{.*}} along sp {{.*}} : tensor<f32>
module attributes {ds.phase = #ds.phase<step>} {
  ds.mesh @mesh axes [sp = 2] zero sp
  ds.state @q role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x64xf32>
  ds.state @k role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x32xf32>
  ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x32xf32>
  ds.state @o role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x64xf32>
  func.func @evaluate(%x: tensor<2x32x64xf32> {ds.input = "x"}, %wq: tensor<64x64xf32> {ds.state = @q}, %wk: tensor<64x32xf32> {ds.state = @k},
                      %wv: tensor<64x32xf32> {ds.state = @v}, %wo: tensor<64x64xf32> {ds.state = @o}) -> tensor<f32>
      attributes {ds.segment = #ds.segment<forward>} {
    %a = ds.matmul %x, %wq {ds.work = #ds.work<forward>} : tensor<2x32x64xf32>, tensor<64x64xf32> -> tensor<2x32x64xf32>
    %b = ds.matmul %x, %wk {ds.work = #ds.work<forward>} : tensor<2x32x64xf32>, tensor<64x32xf32> -> tensor<2x32x32xf32>
    %c = ds.matmul %x, %wv {ds.work = #ds.work<forward>} : tensor<2x32x64xf32>, tensor<64x32xf32> -> tensor<2x32x32xf32>
    %q = ds.reshape %a {ds.work = #ds.work<forward>} : tensor<2x32x64xf32> -> tensor<2x32x4x16xf32>
    %k = ds.reshape %b {ds.work = #ds.work<forward>} : tensor<2x32x32xf32> -> tensor<2x32x2x16xf32>
    %v = ds.reshape %c {ds.work = #ds.work<forward>} : tensor<2x32x32xf32> -> tensor<2x32x2x16xf32>
    %r, %l = ds.attention %q, %k, %v causal scale 0.25 {ds.work = #ds.work<forward>} : (tensor<2x32x4x16xf32>, tensor<2x32x2x16xf32>, tensor<2x32x2x16xf32>) -> (tensor<2x32x4x16xf32>, tensor<2x4x32xf32>)
    %s = ds.reshape %r {ds.work = #ds.work<forward>} : tensor<2x32x4x16xf32> -> tensor<2x32x64xf32>
    %y = ds.matmul %s, %wo {ds.work = #ds.work<forward>} : tensor<2x32x64xf32>, tensor<64x64xf32> -> tensor<2x32x64xf32>
    %z = ds.reduce sum %y dims [0, 1, 2] {ds.work = #ds.work<forward>} : tensor<2x32x64xf32> -> tensor<f32>
    return %z : tensor<f32>
  }
}

// -----

// One key head for two ranks: each gets a copy, of rows that are sent to it alone, and the gradients of both copies are added up. Backward
// reads what forward got: of queries, keys, which are values too, and the result one exchange each, and backward three gradients and the
// result's.
// CHECK-LABEL: func.func @first
// CHECK: ds.broadcast %{{.*}} dims [0, 1, 2, 3, 4] {{.*}} : tensor<1x16x1x1x16xf32> -> tensor<1x16x1x2x16xf32>
// CHECK: ds.attention {{.*}} : (tensor<1x32x2x16xf32>, tensor<1x32x1x16xf32>, tensor<1x32x1x16xf32>)
// CHECK: ds.attention_grad {{.*}} -> (tensor<1x32x2x16xf32>, tensor<1x32x1x16xf32>, tensor<1x32x1x16xf32>)
// CHECK: ds.reduce sum %{{.*}} dims [3] {{.*}} : tensor<1x16x1x2x16xf32> -> tensor<1x16x1x16xf32>
// CHECK-NOT: ds.all_gather
// CHECK: return
module attributes {ds.phase = #ds.phase<step>} {
  ds.mesh @mesh axes [sp = 2] zero sp
  ds.state @k role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x16xf32>
  ds.state @k.grad role(gradient) slot("grad") owner(@k) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x16xf32>
  func.func @first(%x: tensor<1x32x64xf32> {ds.input = "x"}, %wk: tensor<64x16xf32> {ds.state = @k}) -> (tensor<64x16xf32> {ds.state = @k.grad})
      attributes {ds.segment = #ds.segment<forward, backward>} {
    %b = ds.matmul %x, %wk {ds.work = #ds.work<forward>} : tensor<1x32x64xf32>, tensor<64x16xf32> -> tensor<1x32x16xf32>
    %q = ds.reshape %x {ds.work = #ds.work<forward>} : tensor<1x32x64xf32> -> tensor<1x32x4x16xf32>
    %k = ds.reshape %b {ds.work = #ds.work<forward>} : tensor<1x32x16xf32> -> tensor<1x32x1x16xf32>
    %r, %l = ds.attention %q, %k, %k causal scale 0.25 {ds.work = #ds.work<forward>} : (tensor<1x32x4x16xf32>, tensor<1x32x1x16xf32>, tensor<1x32x1x16xf32>) -> (tensor<1x32x4x16xf32>, tensor<1x4x32xf32>)
    %dq, %dk, %dv = ds.attention_grad %q, %k, %k, %r, %l, %r causal scale 0.25 {ds.work = #ds.work<backward>} : (tensor<1x32x4x16xf32>, tensor<1x32x1x16xf32>, tensor<1x32x1x16xf32>, tensor<1x32x4x16xf32>, tensor<1x4x32xf32>, tensor<1x32x4x16xf32>) -> (tensor<1x32x4x16xf32>, tensor<1x32x1x16xf32>, tensor<1x32x1x16xf32>)
    %d = ds.add %dk, %dv {ds.work = #ds.work<backward>} : tensor<1x32x1x16xf32>
    %db = ds.reshape %d {ds.work = #ds.work<backward>} : tensor<1x32x1x16xf32> -> tensor<32x16xf32>
    %xs = ds.reshape %x {ds.work = #ds.work<backward>} : tensor<1x32x64xf32> -> tensor<32x64xf32>
    %dw = ds.matmul %xs, %db transpose_lhs {ds.work = #ds.work<backward>} : tensor<32x64xf32>, tensor<32x16xf32> -> tensor<64x16xf32>
    return %dw : tensor<64x16xf32>
  }
}

// -----

// A loss is divided by the targets of all rows, of which every rank has the labels; each has an addend of it.
// CHECK: ds.state @w role (parameter) trainable addends sp
// CHECK-LABEL: func.func @first
// CHECK: %[[COUNTED:.*]] = ds.compare ne %{{.*}}, %{{.*}} : tensor<32xi64>
// CHECK: %[[ONES:.*]] = ds.convert %[[COUNTED]] {{.*}} : tensor<32xi1> -> tensor<32xf32>
// CHECK: %[[COUNT:.*]] = ds.reduce sum %[[ONES]] dims [0] {{.*}} -> tensor<f32>
// CHECK: ds.cross_entropy %{{.*}}, %{{.*}} over(%[[COUNT]]) ignore_index -100 {{.*}} : (tensor<16x64xf32>, tensor<16xi64>, tensor<f32>) -> (tensor<f32>, tensor<16xf32>, tensor<f32>)
// CHECK: %[[GRAD:.*]] = ds.cross_entropy_grad %{{.*}}, %{{.*}}, %{{.*}}, %[[COUNT]], %{{.*}} {{.*}} -> tensor<16x64xf32>
// CHECK: ds.matmul %{{.*}}, %[[GRAD]] transpose_lhs {{.*}} -> tensor<64x64xf32>
// CHECK-NOT: ds.all_
// CHECK: return
module attributes {ds.phase = #ds.phase<step>} {
  ds.mesh @mesh axes [sp = 2] zero sp
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x64xf32>
  ds.state @w.grad role(gradient) slot("grad") owner(@w) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x64xf32>
  func.func @first(%x: tensor<1x32x64xf32> {ds.input = "x"}, %t: tensor<1x32xi64> {ds.input = "t"}, %w: tensor<64x64xf32> {ds.state = @w}) -> (tensor<64x64xf32> {ds.state = @w.grad})
      attributes {ds.segment = #ds.segment<forward, backward>} {
    %one = ds.constant dense<1.0> : tensor<f32>
    %a = ds.matmul %x, %w {ds.work = #ds.work<forward>} : tensor<1x32x64xf32>, tensor<64x64xf32> -> tensor<1x32x64xf32>
    %b = ds.reshape %a {ds.work = #ds.work<forward>} : tensor<1x32x64xf32> -> tensor<32x64xf32>
    %s = ds.reshape %t {ds.work = #ds.work<forward>} : tensor<1x32xi64> -> tensor<32xi64>
    %loss, %lse, %count = ds.cross_entropy %b, %s ignore_index -100 {ds.work = #ds.work<forward>} : (tensor<32x64xf32>, tensor<32xi64>) -> (tensor<f32>, tensor<32xf32>, tensor<f32>)
    %d = ds.cross_entropy_grad %b, %s, %lse, %count, %one ignore_index -100 {ds.work = #ds.work<backward>} : (tensor<32x64xf32>, tensor<32xi64>, tensor<32xf32>, tensor<f32>, tensor<f32>) -> tensor<32x64xf32>
    %xs = ds.reshape %x {ds.work = #ds.work<backward>} : tensor<1x32x64xf32> -> tensor<32x64xf32>
    %dw = ds.matmul %xs, %d transpose_lhs {ds.work = #ds.work<backward>} : tensor<32x64xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
    return %dw : tensor<64x64xf32>
  }
}

// -----

// Sequences first, then layers: heads are cut along sp, and what a rank has of them along tp, so that columns of the projection are cut
// behind those of the ranks along sp.
// CHECK: ds.state @q {{.*}} view [64, 2, 32] shards [none, none, tp] {{.*}} : tensor<64x64xf32>
// CHECK-LABEL: func.func @evaluate
// CHECK: ds.matmul {{.*}} : tensor<1x16x64xf32>, tensor<64x32xf32> -> tensor<1x16x32xf32>
// CHECK: ds.all_to_all %{{.*}} along sp {{.*}} : tensor<2x16x16xf32>
// CHECK: ds.attention {{.*}} -> (tensor<1x32x1x16xf32>, tensor<1x1x32xf32>)
module attributes {ds.phase = #ds.phase<step>, ds.training = #ds.training<tensor_parallel = {sequence_parallel = false}>} {
  ds.mesh @mesh axes [sp = 2, tp = 2] zero sp tensors tp
  ds.state @q role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x64xf32>
  func.func @evaluate(%x: tensor<1x32x64xf32> {ds.input = "x"}, %wq: tensor<64x64xf32> {ds.state = @q}) -> tensor<f32>
      attributes {ds.segment = #ds.segment<forward>} {
    %a = ds.matmul %x, %wq {ds.work = #ds.work<forward>} : tensor<1x32x64xf32>, tensor<64x64xf32> -> tensor<1x32x64xf32>
    %q = ds.reshape %a {ds.work = #ds.work<forward>} : tensor<1x32x64xf32> -> tensor<1x32x4x16xf32>
    %r, %l = ds.attention %q, %q, %q causal scale 0.25 {ds.work = #ds.work<forward>} : (tensor<1x32x4x16xf32>, tensor<1x32x4x16xf32>, tensor<1x32x4x16xf32>) -> (tensor<1x32x4x16xf32>, tensor<1x4x32xf32>)
    %z = ds.reduce sum %r dims [0, 1, 2, 3] {ds.work = #ds.work<forward>} : tensor<1x32x4x16xf32> -> tensor<f32>
    return %z : tensor<f32>
  }
}

// -----

// A gain that is widened is whole on each rank, and nothing of it is exchanged, neither forward nor where its gradient is narrowed.
// CHECK: ds.state @gain role (parameter) trainable addends sp
// CHECK-LABEL: func.func @first
// CHECK-NOT: ds.all_
// CHECK: return
module attributes {ds.phase = #ds.phase<step>} {
  ds.mesh @mesh axes [sp = 8] zero sp
  ds.state @gain role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64xbf16>
  ds.state @gain.grad role(gradient) slot("grad") owner(@gain) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64xbf16>
  func.func @first(%x: tensor<1x32x64xf32> {ds.input = "x"}, %g: tensor<64xbf16> {ds.state = @gain}) -> (tensor<64xbf16> {ds.state = @gain.grad})
      attributes {ds.segment = #ds.segment<forward, backward>} {
    %w = ds.convert %g {ds.work = #ds.work<forward>} : tensor<64xbf16> -> tensor<64xf32>
    %a = ds.broadcast %w dims [2] {ds.work = #ds.work<forward>} : tensor<64xf32> -> tensor<1x32x64xf32>
    %y = ds.mul %x, %a {ds.work = #ds.work<forward>} : tensor<1x32x64xf32>
    %d = ds.mul %x, %y {ds.work = #ds.work<backward>} : tensor<1x32x64xf32>
    %s = ds.reduce sum %d dims [0, 1] {ds.work = #ds.work<backward>} : tensor<1x32x64xf32> -> tensor<64xf32>
    %n = ds.convert %s {ds.work = #ds.work<backward>} : tensor<64xf32> -> tensor<64xbf16>
    return %n : tensor<64xbf16>
  }
}
