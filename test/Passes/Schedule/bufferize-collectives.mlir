// RUN: ds-opt %s --ds-order-issue --ds-bufferize --ds-verify-scheduled --split-input-file | FileCheck %s

// Stage 3. The parameter is gathered into memory of its own; the layer reads windows of it; the gradient's pieces, one
// from a library, one from a kernel, and the zeros of the padding are made in their windows; nothing is copied.
// CHECK-LABEL: func.func @stage_3
// CHECK: %[[FULL:.*]] = ds.alloc communication : !ds.buffer<tensor<64xf32>
// CHECK: ds.communicate all_gather ins(%{{.*}}) outs(%[[FULL]]) along dp carries parameter on gather
// CHECK-NOT: ds.call copy(
// CHECK-DAG: ds.view %[[FULL]] offset 0 : {{.*}} -> !ds.buffer<tensor<4x4xf32>, [4, 1], device>
// CHECK: %[[FLAT:.*]] = ds.alloc gradients : !ds.buffer<tensor<64xf32>
// CHECK-NOT: ds.call copy(
// CHECK: %[[SHARD:.*]] = ds.alloc gradients : !ds.buffer<tensor<32xf32>
// CHECK: ds.communicate reduce_scatter ins(%[[FLAT]]) outs(%[[SHARD]]) reduce sum along dp carries bucket on reduce
// CHECK-NOT: ds.call copy(
// CHECK: ds.launch {{.*}} outs(%{{.*}}) {{.*}}on compute
// CHECK: return
module {
  ds.mesh @mesh axes [dp = 2]
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
  ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
  ds.bucket @bucket_0 members [@w, @b] offsets [0, 32] elements 64
  ds.state @bucket_0.parameter role(parameter) bucket(@bucket_0) shards [dp] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64xf32>
  func.func @stage_3(%x: tensor<4x4xf32> {ds.input = "x"}, %p: tensor<32xf32> {ds.state = @bucket_0.parameter}) -> (tensor<32xf32> {ds.state = @bucket_0.parameter}) {
    %full = ds.all_gather %p along dp carries parameter : tensor<32xf32> -> tensor<64xf32>
    %w0 = ds.slice %full offsets [0] strides [1] : tensor<64xf32> -> tensor<16xf32>
    %w = ds.reshape %w0 : tensor<16xf32> -> tensor<4x4xf32>
    %y = ds.matmul %x, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %gw = ds.matmul %x, %y transpose_lhs : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %gb = ds.fused (%y) : (tensor<4x4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4x4xf32>):
      %s = ds.reduce sum %a dims [0] : tensor<4x4xf32> -> tensor<4xf32>
      ds.yield %s : tensor<4xf32>
    }
    %z0 = ds.fused () : () -> tensor<16xf32> {
      %c = ds.constant dense<0.0> : tensor<16xf32>
      ds.yield %c : tensor<16xf32>
    }
    %z1 = ds.fused () : () -> tensor<28xf32> {
      %c = ds.constant dense<0.0> : tensor<28xf32>
      ds.yield %c : tensor<28xf32>
    }
    %f = ds.reshape %gw : tensor<4x4xf32> -> tensor<16xf32>
    %flat = ds.concat %f, %z0, %gb, %z1 dim 0 : tensor<16xf32>, tensor<16xf32>, tensor<4xf32>, tensor<28xf32> -> tensor<64xf32>
    %g = ds.reduce_scatter sum %flat along dp carries bucket : tensor<64xf32> -> tensor<32xf32>
    %new = ds.fused (%p, %g) : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32> {
    ^bb0(%a: tensor<32xf32>, %c: tensor<32xf32>):
      %s = ds.sub %a, %c : tensor<32xf32>
      ds.yield %s : tensor<32xf32>
    }
    return %new : tensor<32xf32>
  }
}

// -----

// Stages 1 and 2. The rank's part is updated in its window of the whole parameter, and gathered in place.
// CHECK-LABEL: func.func @stage_2
// CHECK-SAME: %[[P:.*]]: !ds.buffer<tensor<64xf32>, [1], device> {ds.state = @p}
// CHECK: %[[OWN:.*]] = ds.view %[[P]] offset 0 shifts [dp = 32] : !ds.buffer<tensor<64xf32>, [1], device> -> !ds.buffer<tensor<32xf32>, [1], device>
// CHECK: ds.launch @{{.*}} ins(%[[OWN]], %{{.*}}) outs(%[[PART:[0-9a-z]+]]) {{.*}}on compute
// CHECK: ds.communicate all_gather ins(%[[PART]]) outs(%[[P]]) along dp carries parameter on gather
// CHECK-NOT: ds.call copy(
// CHECK: return
module {
  ds.mesh @mesh axes [dp = 2]
  ds.state @p role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64xf32>
  func.func @stage_2(%p: tensor<64xf32> {ds.state = @p}, %g: tensor<64xf32> {ds.input = "g"}) -> (tensor<64xf32> {ds.state = @p}) {
    %s = ds.reduce_scatter sum %g along dp carries bucket : tensor<64xf32> -> tensor<32xf32>
    %own = ds.local_shard %p along dp : tensor<64xf32> -> tensor<32xf32>
    %new = ds.fused (%own, %s) : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32> {
    ^bb0(%a: tensor<32xf32>, %c: tensor<32xf32>):
      %d = ds.sub %a, %c : tensor<32xf32>
      ds.yield %d : tensor<32xf32>
    }
    %whole = ds.all_gather %new along dp carries parameter : tensor<32xf32> -> tensor<64xf32>
    return %whole : tensor<64xf32>
  }
}

// -----

// What still reads the old parameter comes first: the update is made behind it, and in place all the same.
// CHECK-LABEL: func.func @reads_the_old
// CHECK: ds.call matmul
// CHECK: ds.launch @{{.*}} outs(%[[PART:[0-9a-z]+]]) {{.*}}on compute
// CHECK: ds.communicate all_gather ins(%[[PART]])
// CHECK-NOT: ds.call copy(
// CHECK: return
module {
  ds.mesh @mesh axes [dp = 2]
  ds.state @p role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64xf32>
  ds.state @loss role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x8xf32>
  func.func @reads_the_old(%p: tensor<64xf32> {ds.state = @p}, %g: tensor<32xf32> {ds.input = "g"}) -> (tensor<64xf32> {ds.state = @p}, tensor<8x8xf32> {ds.state = @loss}) {
    %own = ds.local_shard %p along dp : tensor<64xf32> -> tensor<32xf32>
    %new = ds.fused (%own, %g) : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32> {
    ^bb0(%a: tensor<32xf32>, %c: tensor<32xf32>):
      %d = ds.sub %a, %c : tensor<32xf32>
      ds.yield %d : tensor<32xf32>
    }
    %whole = ds.all_gather %new along dp carries parameter : tensor<32xf32> -> tensor<64xf32>
    %m = ds.reshape %p : tensor<64xf32> -> tensor<8x8xf32>
    %y = ds.matmul %m, %m : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    return %whole, %y : tensor<64xf32>, tensor<8x8xf32>
  }
}

// -----

// A number that all ranks sum up is summed in its place.
// CHECK-LABEL: func.func @number
// CHECK: ds.launch @{{.*}} outs(%[[PART:[0-9a-z]+]]) {{.*}}on compute
// CHECK: ds.communicate all_reduce ins(%[[PART]]) outs(%[[PART]]) reduce sum along dp carries statistic on reduce
// CHECK: ds.launch
// CHECK-NOT: ds.call copy(
// CHECK: return
module {
  ds.mesh @mesh axes [dp = 2]
  ds.state @loss role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
  func.func @number(%x: tensor<4xf32> {ds.input = "x"}) -> (tensor<f32> {ds.state = @loss}) {
    %s = ds.fused (%x) : (tensor<4xf32>) -> tensor<f32> {
    ^bb0(%a: tensor<4xf32>):
      %r = ds.reduce sum %a dims [0] : tensor<4xf32> -> tensor<f32>
      ds.yield %r : tensor<f32>
    }
    %t = ds.all_reduce sum %s along dp carries statistic : tensor<f32>
    %h = ds.fused (%t) : (tensor<f32>) -> tensor<f32> {
    ^bb0(%a: tensor<f32>):
      %n = ds.neg %a : tensor<f32>
      ds.yield %n : tensor<f32>
    }
    return %h : tensor<f32>
  }
}

// -----

// The part of a part is a window that both axes shift, and the ranks of a node gather theirs where it lies in the whole.
// CHECK-LABEL: func.func @part_of_a_part
// CHECK-SAME: %[[P:.*]]: !ds.buffer<tensor<128xf32>, [1], device> {ds.state = @p}
// CHECK-DAG: ds.view %[[P]] offset 0 shifts [dp.node = 64, dp.local = 32] : !ds.buffer<tensor<128xf32>, [1], device> -> !ds.buffer<tensor<32xf32>, [1], device>
// CHECK: ds.communicate all_gather {{.*}} along dp.local carries parameter on gather
// CHECK: ds.communicate all_gather {{.*}} outs(%[[P]]) along dp.node carries parameter on gather
// CHECK: return
module {
  ds.mesh @mesh axes [dp.node = 2, dp.local = 2]
  ds.state @p role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<128xf32>
  func.func @part_of_a_part(%p: tensor<128xf32> {ds.state = @p}, %g: tensor<32xf32> {ds.input = "g"}) -> (tensor<128xf32> {ds.state = @p}) {
    %node = ds.local_shard %p along dp.node : tensor<128xf32> -> tensor<64xf32>
    %own = ds.local_shard %node along dp.local : tensor<64xf32> -> tensor<32xf32>
    %new = ds.fused (%own, %g) : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32> {
    ^bb0(%a: tensor<32xf32>, %c: tensor<32xf32>):
      %d = ds.sub %a, %c : tensor<32xf32>
      ds.yield %d : tensor<32xf32>
    }
    %part = ds.all_gather %new along dp.local carries parameter : tensor<32xf32> -> tensor<64xf32>
    %whole = ds.all_gather %part along dp.node carries parameter : tensor<64xf32> -> tensor<128xf32>
    return %whole : tensor<128xf32>
  }
}

// -----

// What a collective carries says on which stream it runs: what layers exchange waits for no bucket and no parameter.
// CHECK-LABEL: func.func @payloads
// CHECK: ds.communicate all_to_all {{.*}} along tp on exchange
// CHECK: ds.communicate all_reduce {{.*}} reduce sum along tp on exchange
// CHECK: ds.communicate broadcast {{.*}} along tp carries transfer on transfer
// CHECK: ds.communicate all_reduce {{.*}} reduce sum along tp carries bucket on reduce
module {
  ds.mesh @mesh axes [tp = 2]
  ds.state @y role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  func.func @payloads(%x: tensor<8xf32> {ds.input = "x"}) -> (tensor<8xf32> {ds.state = @y}) {
    %a = ds.all_to_all %x along tp : tensor<8xf32>
    %b = ds.all_reduce sum %a along tp : tensor<8xf32>
    %c = ds.collective_broadcast %b root 0 along tp carries transfer : tensor<8xf32>
    %d = ds.all_reduce sum %c along tp carries bucket : tensor<8xf32>
    return %d : tensor<8xf32>
  }
}

// -----

// A part that becomes a state is copied to it as soon as its whole is there, and the gather that follows reads the state: the whole is
// not held for either.
// CHECK-LABEL: func.func @secondary
// CHECK-SAME: %[[S:[a-z0-9]+]]: !ds.buffer<tensor<64xf32>, [1], device> {ds.state = @s}
// CHECK: ds.communicate all_gather ins(%{{.*}}) outs(%[[WHOLE:.*]]) along dp carries parameter
// CHECK: %[[PART:.*]] = ds.view %[[WHOLE]] offset 0 shifts [dp.local = 64]
// CHECK: ds.call copy(%[[PART]], %[[S]])
// CHECK: ds.communicate all_gather ins(%[[S]]) outs(%{{.*}}) along dp.local carries parameter
// CHECK-NOT: ds.call copy(
// CHECK: return
module {
  ds.mesh @mesh axes [dp.node = 2, dp.local = 2]
  ds.state @p role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<32xf32>
  ds.state @s role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) {gathered_from = @p} : tensor<64xf32>
  ds.state @loss role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x16xf32>
  func.func @secondary(%p: tensor<32xf32> {ds.state = @p}) -> (tensor<64xf32> {ds.state = @s}, tensor<8x16xf32> {ds.state = @loss})
      attributes {ds.segment = #ds.segment<forward, backward>} {
    %f = ds.all_gather %p along dp carries parameter : tensor<32xf32> -> tensor<128xf32>
    %s = ds.local_shard %f along dp.local : tensor<128xf32> -> tensor<64xf32>
    %m = ds.reshape %f : tensor<128xf32> -> tensor<8x16xf32>
    %y = ds.matmul %m, %m transpose_rhs : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x8xf32>
    %g = ds.all_gather %s along dp.local carries parameter : tensor<64xf32> -> tensor<128xf32>
    %n = ds.reshape %g : tensor<128xf32> -> tensor<8x16xf32>
    %z = ds.matmul %y, %n : tensor<8x8xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
    return %s, %z : tensor<64xf32>, tensor<8x16xf32>
  }
}
