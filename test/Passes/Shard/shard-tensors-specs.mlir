// RUN: ds-opt %s --split-input-file --ds-shard-tensors 2> %t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=SAID --input-file %t.err
// SAID: warning: layer_specs asks for a cut of a by columns, which nothing that reads it can be cut by
// SAID-NOT: warning

// layer_specs fix what would be chosen otherwise: @a stays whole, and @b, whose rows would be cut, is cut by columns, which leaves its result in
// parts that are gathered. A name that nothing matches changes nothing.
// CHECK: ds.state @a role (parameter) trainable init
// CHECK: ds.state @b {{.*}} shards [none, tp]
// CHECK-LABEL: func.func @evaluate
// CHECK: ds.matmul {{.*}} : tensor<64x256xf32>, tensor<256x32xf32> -> tensor<64x32xf32>
// CHECK: ds.all_gather
// CHECK-NOT: ds.all_reduce
// CHECK: return
module attributes {ds.phase = #ds.phase<step>, ds.training = #ds.training<tensor_parallel = {sequence_parallel = false, layer_specs = [
    {patterns = ["a$"], partition_type = skip}, {patterns = ["b"], partition_type = column}, {patterns = ["c"], partition_type = row}]}>} {
  ds.mesh @mesh axes [tp = 2] tensors tp
  ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x256xf32>
  ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<256x64xf32>
  func.func @evaluate(%x: tensor<64x64xf32> {ds.input = "x"}, %a: tensor<64x256xf32> {ds.state = @a}, %b: tensor<256x64xf32> {ds.state = @b}) -> tensor<64x64xf32>
      attributes {ds.segment = #ds.segment<forward>} {
    %h = ds.matmul %x, %a {ds.work = #ds.work<forward>} : tensor<64x64xf32>, tensor<64x256xf32> -> tensor<64x256xf32>
    %y = ds.matmul %h, %b {ds.work = #ds.work<forward>} : tensor<64x256xf32>, tensor<256x64xf32> -> tensor<64x64xf32>
    return %y : tensor<64x64xf32>
  }
}

// -----

// What cannot be obeyed is said: 33 columns are not cut in two.
// CHECK: ds.state @a {{.*}} shards [tp, none]
module attributes {ds.phase = #ds.phase<step>, ds.training = #ds.training<tensor_parallel = {layer_specs = [
    {patterns = ["a"], partition_type = column}]}>} {
  ds.mesh @mesh axes [tp = 2] tensors tp
  ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x33xf32>
  func.func @evaluate(%x: tensor<64x64xf32> {ds.input = "x"}, %a: tensor<64x33xf32> {ds.state = @a}) -> tensor<64x33xf32>
      attributes {ds.segment = #ds.segment<forward>} {
    %y = ds.matmul %x, %a {ds.work = #ds.work<forward>} : tensor<64x64xf32>, tensor<64x33xf32> -> tensor<64x33xf32>
    return %y : tensor<64x33xf32>
  }
}
