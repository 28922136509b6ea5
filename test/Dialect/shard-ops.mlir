// RUN: ds-opt %s --verify-roundtrip | FileCheck %s
// RUN: ds-opt %s --cse --canonicalize | FileCheck %s --check-prefix=KEPT

// Every op of phase sharded, as its description shows it.

// CHECK: ds.mesh @mesh axes [pp = 2, dp.node = 2, dp.local = 2, sp = 2, tp = 2] samples dp zero (dp, sp) stages pp tensors tp
ds.mesh @mesh axes [pp = 2, dp.node = 2, dp.local = 2, sp = 2, tp = 2] samples dp zero (dp, sp) stages pp tensors tp

ds.state @wte role(parameter) trainable init(#ds.init<normal, 0.0, 0.02>) home(device) : tensor<100x8xf32>
ds.state @h.0.w role(parameter) trainable init(#ds.init<normal, 0.0, 0.02>) home(device) : tensor<8x8xf32>
// CHECK: ds.bucket @bucket_0 members [@wte, @h.0.w] offsets [0, 1024] elements 4096
ds.bucket @bucket_0 members [@wte, @h.0.w] offsets [0, 1024] elements 4096
// CHECK: ds.state @bucket_0.parameter role (parameter) bucket(@bucket_0) init
ds.state @bucket_0.parameter role(parameter) bucket(@bucket_0) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4096xf32>
// CHECK: ds.state @bucket_0.exp_avg role (moment) slot("exp_avg") bucket(@bucket_0) shards [dp] init
ds.state @bucket_0.exp_avg role(moment) slot("exp_avg") bucket(@bucket_0) shards [dp] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4096xf32>
// CHECK: ds.state @norm role (parameter) trainable addends tp init
ds.state @norm role(parameter) trainable addends tp init(#ds.init<constant, 1.0, 0.0>) home(device) : tensor<8xf32>
// CHECK: ds.state @tied role (parameter) trainable addends (sp, tp) copy init
ds.state @tied role(parameter) trainable addends (sp, tp) copy init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
// CHECK: ds.state @cut role (buffer) shards [none, tp, sp] init
ds.state @cut role(buffer) shards [none, tp, sp] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<3x8x8xf32>
// CHECK: ds.state @cut_twice role (buffer) shards [none, (dp.local, sp), none] init
ds.state @cut_twice role(buffer) shards [none, (dp.local, sp), none] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<3x8x8xf32>
// A view is cut in its own dimensions, and its padding is no part of the state.
// CHECK: ds.state @qkv role (parameter) trainable view [3, 12, 64, 768] shards [none, tp, none, none] init
ds.state @qkv role(parameter) trainable view [3, 12, 64, 768] shards [none, tp, none, none] init(#ds.init<normal, 0.0, 0.02>) home(device) : tensor<2304x768xf32>
// CHECK: ds.state @table role (parameter) trainable view [50264, 768] existing 50257 shards [tp, none] init
ds.state @table role(parameter) trainable view [50264, 768] existing 50257 shards [tp, none] init(#ds.init<normal, 0.0, 0.02>) home(device) : tensor<50257x768xf32>
// CHECK: ds.state @padded role (buffer) view [8, 3] existing 5 shards [(dp.local, sp), none] init
ds.state @padded role(buffer) view [8, 3] existing 5 shards [(dp.local, sp), none] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<5x3xf32>
// CHECK: ds.state @grouped role (parameter) trainable pieces [64, 16, 16] shards [none, tp] init
ds.state @grouped role(parameter) trainable pieces [64, 16, 16] shards [none, tp] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x96xf32>
// A bucket holds the parts of its members, with their padding: 2 of 8 rows of 16 elements.
// CHECK: ds.state @member role (parameter) trainable view [8, 4, 4] existing 7 shards [(dp.local, sp), none, none] init
ds.state @member role(parameter) trainable view [8, 4, 4] existing 7 shards [(dp.local, sp), none, none] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<7x16xf32>
ds.bucket @of_padded members [@member] offsets [0] elements 32

// CHECK-LABEL: @collectives
func.func @collectives(%x: tensor<512xf32>, %s: tensor<f32>, %v: tensor<4xf32>, %m: tensor<8x4xf32>) {
  // CHECK: ds.all_gather %{{.*}} along dp carries parameter : tensor<512xf32> -> tensor<2048xf32>
  %f = ds.all_gather %x along dp carries parameter : tensor<512xf32> -> tensor<2048xf32>
  // CHECK: ds.reduce_scatter sum %{{.*}} along dp : tensor<2048xf32> -> tensor<512xf32>
  %p = ds.reduce_scatter sum %f along dp : tensor<2048xf32> -> tensor<512xf32>
  // CHECK: ds.all_reduce sum %{{.*}} along dp : tensor<f32>
  %r = ds.all_reduce sum %s along dp : tensor<f32>
  // CHECK: ds.all_reduce max %{{.*}} along tp : tensor<f32>
  %t = ds.all_reduce max %s along tp carries exchange : tensor<f32>
  // CHECK: ds.reduce_scatter sum %{{.*}} along dp carries bucket : tensor<2048xf32> -> tensor<512xf32>
  %q = ds.reduce_scatter sum %f along dp carries bucket : tensor<2048xf32> -> tensor<512xf32>
  // CHECK: ds.all_reduce sum %{{.*}} along dp carries statistic : tensor<f32>
  %u = ds.all_reduce sum %s along dp carries statistic : tensor<f32>
  // CHECK: ds.collective_broadcast %{{.*}} root 0 along dp : tensor<4xf32>
  %b = ds.collective_broadcast %v root 0 along dp : tensor<4xf32>
  // CHECK: ds.all_to_all %{{.*}} along sp : tensor<8x4xf32>
  %a = ds.all_to_all %m along sp : tensor<8x4xf32>
  // CHECK: ds.send %{{.*}} to 1 along pp : tensor<4xf32>
  ds.send %v to 1 along pp carries transfer : tensor<4xf32>
  // CHECK: ds.recv from 0 along pp : tensor<4xf32>
  %g = ds.recv from 0 along pp : tensor<4xf32>
  return
}

// CHECK-LABEL: @groups
func.func @groups(%x: tensor<512xf32>, %s: tensor<f32>) {
  // CHECK: ds.all_gather %{{.*}} along dp.local : tensor<512xf32> -> tensor<1024xf32>
  %a = ds.all_gather %x along dp.local : tensor<512xf32> -> tensor<1024xf32>
  // CHECK: ds.all_reduce sum %{{.*}} along (dp, sp) : tensor<f32>
  %b = ds.all_reduce sum %s along (dp, sp) : tensor<f32>
  // CHECK: ds.all_gather %{{.*}} along (dp.node, sp) : tensor<512xf32> -> tensor<2048xf32>
  %c = ds.all_gather %x along (dp.node, sp) : tensor<512xf32> -> tensor<2048xf32>
  return
}

// CHECK-LABEL: @of_this_rank
func.func @of_this_rank(%x: tensor<2048xf32>) -> (tensor<512xf32>, tensor<i64>) {
  // CHECK: ds.local_shard %{{.*}} along dp : tensor<2048xf32> -> tensor<512xf32>
  %l = ds.local_shard %x along dp : tensor<2048xf32> -> tensor<512xf32>
  // CHECK: ds.axis_index dp : tensor<i64>
  %i = ds.axis_index dp : tensor<i64>
  return %l, %i : tensor<512xf32>, tensor<i64>
}

// What all ranks do together is neither merged nor dropped, although nothing reads it.
// KEPT-LABEL: @gathers_twice
func.func @gathers_twice(%x: tensor<512xf32>) {
  // KEPT-COUNT-2: ds.all_gather
  %a = ds.all_gather %x along dp : tensor<512xf32> -> tensor<2048xf32>
  %b = ds.all_gather %x along dp : tensor<512xf32> -> tensor<2048xf32>
  return
}

// KEPT-LABEL: @takes_its_part_once
func.func @takes_its_part_once(%x: tensor<2048xf32>) -> (tensor<512xf32>, tensor<512xf32>) {
  // KEPT-COUNT-1: ds.local_shard
  // KEPT-NOT: ds.local_shard
  %a = ds.local_shard %x along dp : tensor<2048xf32> -> tensor<512xf32>
  %b = ds.local_shard %x along dp : tensor<2048xf32> -> tensor<512xf32>
  return %a, %b : tensor<512xf32>, tensor<512xf32>
}
