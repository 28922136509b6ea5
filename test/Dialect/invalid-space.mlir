// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @store_c1_another_tensor(%x: tensor<4xf32>) {
  // expected-error@+1 {{'ds.store' op expects a result that holds 'tensor<4xf32>', but got '!ds.stored<tensor<8xf32>, host>'}}
  %s = ds.store %x : tensor<4xf32> -> !ds.stored<tensor<8xf32>, host>
  return
}

// -----

// expected-error@+1 {{expects another space than the device's, where tensors are}}
func.func @stored_on_the_device(%s: !ds.stored<tensor<4xf32>, device>) {
  return
}

// -----

// expected-error@+1 {{expects a tensor of static shape, but got 'tensor<?xf32>'}}
func.func @stored_of_any_size(%s: !ds.stored<tensor<?xf32>, host>) {
  return
}

// -----

func.func @load_c1_another_tensor(%s: !ds.stored<tensor<4xf32>, host>) {
  // expected-error@+1 {{'ds.load' op expects 'tensor<4xf32>', which is stored, but got 'tensor<4xf64>'}}
  %x = ds.load %s : !ds.stored<tensor<4xf32>, host> -> tensor<4xf64>
  return
}

// -----

func.func @move_c1_another_tensor(%s: !ds.stored<tensor<4xf32>, nvme>) {
  // expected-error@+1 {{'ds.move' op expects a result that holds 'tensor<4xf32>', but got '!ds.stored<tensor<8xf32>, host>'}}
  %h = ds.move %s : !ds.stored<tensor<4xf32>, nvme> -> !ds.stored<tensor<8xf32>, host>
  return
}

// -----

func.func @move_c2_one_space(%s: !ds.stored<tensor<4xf32>, host>) {
  // expected-error@+1 {{'ds.move' op expects to move between storage and the host, but both are in host}}
  %h = ds.move %s : !ds.stored<tensor<4xf32>, host> -> !ds.stored<tensor<4xf32>, host>
  return
}

// -----

func.func @transfer_c1_another_tensor(%a: !ds.buffer<tensor<4xf32>, [1], device>, %h: !ds.buffer<tensor<8xf32>, [1], host>) {
  // expected-error@+1 {{'ds.transfer' op expects contiguous buffers of one tensor type}}
  ds.transfer %a to %h on to_host : !ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<8xf32>, [1], host>
  return
}

// -----

func.func @transfer_c1_gaps(%a: !ds.buffer<tensor<4xf32>, [2], device>, %h: !ds.buffer<tensor<4xf32>, [1], host>) {
  // expected-error@+1 {{'ds.transfer' op expects contiguous buffers of one tensor type}}
  ds.transfer %a to %h on to_host : !ds.buffer<tensor<4xf32>, [2], device>, !ds.buffer<tensor<4xf32>, [1], host>
  return
}

// -----

func.func @transfer_c2_one_space(%a: !ds.buffer<tensor<4xf32>, [1], host>, %h: !ds.buffer<tensor<4xf32>, [1], host>) {
  // expected-error@+1 {{'ds.transfer' op expects buffers in two spaces, but both are in host}}
  ds.transfer %a to %h on to_host : !ds.buffer<tensor<4xf32>, [1], host>, !ds.buffer<tensor<4xf32>, [1], host>
  return
}

// -----

func.func @transfer_c3_no_host(%a: !ds.buffer<tensor<4xf32>, [1], device>, %n: !ds.buffer<tensor<4xf32>, [1], nvme>) {
  // expected-error@+1 {{'ds.transfer' op expects storage to be reached through the host, but got device and nvme}}
  ds.transfer %a to %n on storage : !ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<4xf32>, [1], nvme>
  return
}

// -----

func.func @transfer_c4_storage(%h: !ds.buffer<tensor<4xf32>, [1], host>, %n: !ds.buffer<tensor<4xf32>, [1], nvme>) {
  // expected-error@+1 {{'ds.transfer' op expects stream storage, but got to_host}}
  ds.transfer %h to %n on to_host : !ds.buffer<tensor<4xf32>, [1], host>, !ds.buffer<tensor<4xf32>, [1], nvme>
  return
}

// -----

func.func @transfer_c4_to_host(%a: !ds.buffer<tensor<4xf32>, [1], device>, %h: !ds.buffer<tensor<4xf32>, [1], host>) {
  // expected-error@+1 {{'ds.transfer' op expects stream to_host, but got to_device}}
  ds.transfer %a to %h on to_device : !ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<4xf32>, [1], host>
  return
}

// -----

func.func @transfer_c4_to_device(%a: !ds.buffer<tensor<4xf32>, [1], device>, %h: !ds.buffer<tensor<4xf32>, [1], host>) {
  // expected-error@+1 {{'ds.transfer' op expects stream to_device, but got to_host}}
  ds.transfer %h to %a on to_host : !ds.buffer<tensor<4xf32>, [1], host>, !ds.buffer<tensor<4xf32>, [1], device>
  return
}

// -----

// expected-note@+1 {{the first is here}}
ds.arena host bytes 64 lower_bound 0
// expected-error@+1 {{'ds.arena' op expects one arena of space host, but the module has two}}
ds.arena host bytes 64 lower_bound 0

// -----

// expected-error@+1 {{'ds.arena' op expects a lower bound of at most 64, but got 128}}
ds.arena host bytes 64 lower_bound 128

// -----

func.func @host_c1_nvme(%m: !ds.stored<tensor<4xf32>, nvme>) -> !ds.stored<tensor<4xf32>, host> {
  // expected-error@+1 {{'ds.host' op expects operands and results in the host's memory, but got '!ds.stored<tensor<4xf32>, nvme>'}}
  %n = ds.host(%m) : (!ds.stored<tensor<4xf32>, nvme>) -> !ds.stored<tensor<4xf32>, host> {
  ^bb0(%x: tensor<4xf32>):
    ds.yield %x : tensor<4xf32>
  }
  return %n : !ds.stored<tensor<4xf32>, host>
}

// -----

func.func @host_c2_arguments(%m: !ds.stored<tensor<4xf32>, host>) -> !ds.stored<tensor<4xf32>, host> {
  // expected-error@+1 {{'ds.host' op expects 1 block arguments of the tensors that the operands hold}}
  %n = ds.host(%m) : (!ds.stored<tensor<4xf32>, host>) -> !ds.stored<tensor<4xf32>, host> {
  ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
    ds.yield %x : tensor<4xf32>
  }
  return %n : !ds.stored<tensor<4xf32>, host>
}

// -----

func.func @host_c2_results(%m: !ds.stored<tensor<4xf32>, host>) -> !ds.stored<tensor<8xf32>, host> {
  // expected-error@+1 {{'ds.host' op expects to yield 1 values that the results hold}}
  %n = ds.host(%m) : (!ds.stored<tensor<4xf32>, host>) -> !ds.stored<tensor<8xf32>, host> {
  ^bb0(%x: tensor<4xf32>):
    ds.yield %x : tensor<4xf32>
  }
  return %n : !ds.stored<tensor<8xf32>, host>
}

// -----

func.func @host_c3_product(%m: !ds.stored<tensor<4x4xf32>, host>) -> !ds.stored<tensor<4x4xf32>, host> {
  // expected-error@+1 {{'ds.host' op expects ops that run on the host in its body, but got ds.matmul}}
  %n = ds.host(%m) : (!ds.stored<tensor<4x4xf32>, host>) -> !ds.stored<tensor<4x4xf32>, host> {
  ^bb0(%x: tensor<4x4xf32>):
    // expected-note@+1 {{this op}}
    %p = ds.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    ds.yield %p : tensor<4x4xf32>
  }
  return %n : !ds.stored<tensor<4x4xf32>, host>
}
