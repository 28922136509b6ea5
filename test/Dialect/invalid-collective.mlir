// RUN: ds-opt %s --split-input-file --verify-diagnostics

// Collectives: one case per constraint, named after the op and the constraint.

func.func @all_gather_c1_no_mesh(%x: tensor<4xf32>) {
  // expected-note@+2 {{declare one, as ds.mesh @mesh axes [dp = 2]}}
  // expected-error@+1 {{'ds.all_gather' op expects a mesh in its module, but got none}}
  %r = ds.all_gather %x along dp : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @reduce_scatter_c1_no_mesh(%x: tensor<4xf32>) {
  // expected-note@+2 {{declare one, as ds.mesh @mesh axes [dp = 2]}}
  // expected-error@+1 {{'ds.reduce_scatter' op expects a mesh in its module, but got none}}
  %r = ds.reduce_scatter sum %x along dp : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @all_reduce_c1_no_mesh(%x: tensor<4xf32>) {
  // expected-note@+2 {{declare one, as ds.mesh @mesh axes [dp = 2]}}
  // expected-error@+1 {{'ds.all_reduce' op expects a mesh in its module, but got none}}
  %r = ds.all_reduce sum %x along dp : tensor<4xf32>
  return
}

// -----

func.func @collective_broadcast_c1_no_mesh(%x: tensor<4xf32>) {
  // expected-note@+2 {{declare one, as ds.mesh @mesh axes [dp = 2]}}
  // expected-error@+1 {{'ds.collective_broadcast' op expects a mesh in its module, but got none}}
  %r = ds.collective_broadcast %x root 0 along dp : tensor<4xf32>
  return
}

// -----

func.func @all_to_all_c1_no_mesh(%x: tensor<4xf32>) {
  // expected-note@+2 {{declare one, as ds.mesh @mesh axes [dp = 2]}}
  // expected-error@+1 {{'ds.all_to_all' op expects a mesh in its module, but got none}}
  %r = ds.all_to_all %x along dp : tensor<4xf32>
  return
}

// -----

func.func @send_c1_no_mesh(%x: tensor<4xf32>) {
  // expected-note@+2 {{declare one, as ds.mesh @mesh axes [dp = 2]}}
  // expected-error@+1 {{'ds.send' op expects a mesh in its module, but got none}}
  ds.send %x to 0 along dp : tensor<4xf32>
  return
}

// -----

func.func @recv_c1_no_mesh(%x: tensor<4xf32>) {
  // expected-note@+2 {{declare one, as ds.mesh @mesh axes [dp = 2]}}
  // expected-error@+1 {{'ds.recv' op expects a mesh in its module, but got none}}
  %r = ds.recv from 0 along dp : tensor<4xf32>
  return
}

// -----

func.func @local_shard_c1_no_mesh(%x: tensor<4xf32>) {
  // expected-note@+2 {{declare one, as ds.mesh @mesh axes [dp = 2]}}
  // expected-error@+1 {{'ds.local_shard' op expects a mesh in its module, but got none}}
  %r = ds.local_shard %x along dp : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @axis_index_c1_no_mesh(%x: tensor<4xf32>) {
  // expected-note@+2 {{declare one, as ds.mesh @mesh axes [dp = 2]}}
  // expected-error@+1 {{'ds.axis_index' op expects a mesh in its module, but got none}}
  %r = ds.axis_index dp : tensor<i64>
  return
}

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]

func.func @all_gather_c2_wrong_length(%x: tensor<512xf32>) {
  // expected-error@+1 {{'ds.all_gather' op expects 4 parts of 'tensor<512xf32>' along dimension 0, but got 'tensor<1024xf32>'}}
  %r = ds.all_gather %x along dp : tensor<512xf32> -> tensor<1024xf32>
  return
}

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]

func.func @all_gather_c2_rank_0(%x: tensor<f32>) {
  // expected-error@+1 {{'ds.all_gather' op expects 4 parts of 'tensor<f32>' along dimension 0, but got 'tensor<f32>'}}
  %r = ds.all_gather %x along dp : tensor<f32> -> tensor<f32>
  return
}

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]

func.func @all_gather_c2_other_type(%x: tensor<512xf32>) {
  // expected-error@+1 {{'ds.all_gather' op expects 4 parts of 'tensor<512xf32>' along dimension 0, but got 'tensor<2048xbf16>'}}
  %r = ds.all_gather %x along dp : tensor<512xf32> -> tensor<2048xbf16>
  return
}

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]

func.func @reduce_scatter_c2_wrong_length(%x: tensor<2048xf32>) {
  // expected-error@+1 {{'ds.reduce_scatter' op expects 4 parts of 'tensor<1024xf32>' along dimension 0, but got 'tensor<2048xf32>'}}
  %r = ds.reduce_scatter sum %x along dp : tensor<2048xf32> -> tensor<1024xf32>
  return
}

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]

func.func @local_shard_c2_wrong_length(%x: tensor<2048xf32>) {
  // expected-error@+1 {{'ds.local_shard' op expects 2 parts of 'tensor<512xf32>' along dimension 0, but got 'tensor<2048xf32>'}}
  %r = ds.local_shard %x along pp : tensor<2048xf32> -> tensor<512xf32>
  return
}

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]

func.func @collective_broadcast_c2_root(%x: tensor<4xf32>) {
  // expected-error@+1 {{'ds.collective_broadcast' op expects an index below 4 along dp, but got 4}}
  %r = ds.collective_broadcast %x root 4 along dp : tensor<4xf32>
  return
}

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]

func.func @all_to_all_c2_uneven(%x: tensor<6xf32>) {
  // expected-error@+1 {{'ds.all_to_all' op expects a dimension 0 that 4 ranks divide, but got 'tensor<6xf32>'}}
  %r = ds.all_to_all %x along dp : tensor<6xf32>
  return
}

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]

func.func @send_c2_peer(%x: tensor<4xf32>) {
  // expected-error@+1 {{'ds.send' op expects an index below 2 along pp, but got 2}}
  ds.send %x to 2 along pp : tensor<4xf32>
  return
}

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]

func.func @recv_c2_peer(%x: tensor<4xf32>) {
  // expected-error@+1 {{'ds.recv' op expects an index below 2 along pp, but got 2}}
  %r = ds.recv from 2 along pp : tensor<4xf32>
  return
}

// -----

// expected-note@+1 {{the mesh is [dp = 2, tp = 2]}}
ds.mesh @mesh axes [dp = 2, tp = 2]
func.func @all_reduce_c1_unknown_axis(%x: tensor<4xf32>) {
  // expected-error@+1 {{'ds.all_reduce' op expects axes of the mesh, but got sp}}
  %r = ds.all_reduce sum %x along sp : tensor<4xf32>
  return
}

// -----

ds.mesh @mesh axes [dp.node = 2, dp.local = 4, tp = 2]
func.func @all_gather_c2_group_of_two_axes(%x: tensor<4xf32>) {
  // expected-error@+1 {{'ds.all_gather' op expects 8 parts of 'tensor<4xf32>' along dimension 0, but got 'tensor<16xf32>'}}
  %r = ds.all_gather %x along (dp.local, tp) : tensor<4xf32> -> tensor<16xf32>
  return
}
