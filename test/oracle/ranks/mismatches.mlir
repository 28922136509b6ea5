// Ranks that do not fit together are reported by the ranks and by the ops at which they stand.
// REQUIRES: torch
// RUN: ds-opt %s --split-input-file --mlir-print-op-generic > %t
// RUN: not %python %oracle/ranks/run.py %t | FileCheck %s

// Other kinds.
// CHECK:      error: ranks 0 and 1 meet in different collectives:
// CHECK-NEXT:   rank 0: ds.all_reduce sum along pp of f32 (@s0, op 1)
// CHECK-NEXT:   rank 1: ds.all_reduce max along pp of f32 (@s1, op 1)
module {
  ds.mesh @mesh axes [pp = 2] stages pp
  func.func @s0() attributes {ds.segment = #ds.segment<forward>} {
    %x = ds.constant dense<1.0> : tensor<f32>
    %y = ds.all_reduce sum %x along pp : tensor<f32>
    return
  }
  func.func @s1() attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward>} {
    %x = ds.constant dense<1.0> : tensor<f32>
    %y = ds.all_reduce max %x along pp : tensor<f32>
    return
  }
}

// -----

// Other types.
// CHECK-LABEL: module 1:
// CHECK-NEXT: error: ranks 0 and 1 meet in different collectives:
// CHECK-NEXT:   rank 0: ds.all_gather along pp of 2xf32 (@s0, op 1)
// CHECK-NEXT:   rank 1: ds.all_gather along pp of 3xf32 (@s1, op 1)
module {
  ds.mesh @mesh axes [pp = 2] stages pp
  func.func @s0() attributes {ds.segment = #ds.segment<forward>} {
    %x = ds.constant dense<1.0> : tensor<2xf32>
    %y = ds.all_gather %x along pp : tensor<2xf32> -> tensor<4xf32>
    return
  }
  func.func @s1() attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward>} {
    %x = ds.constant dense<1.0> : tensor<3xf32>
    %y = ds.all_gather %x along pp : tensor<3xf32> -> tensor<6xf32>
    return
  }
}

// -----

// Other axes: stage 0 sums along all ranks, stage 1 along pp alone.
// CHECK-LABEL: module 2:
// CHECK-NEXT: error: no rank can continue:
// CHECK-NEXT:   rank 0 waits for ranks 2, 3 in ds.all_reduce sum along (pp, dp) of f32 (@s0, op 1)
// CHECK-NEXT:   rank 1 waits for ranks 2, 3 in ds.all_reduce sum along (pp, dp) of f32 (@s0, op 1)
// CHECK-NEXT:   rank 2 waits for rank 0 in ds.all_reduce sum along pp of f32 (@s1, op 1)
// CHECK-NEXT:   rank 3 waits for rank 1 in ds.all_reduce sum along pp of f32 (@s1, op 1)
module {
  ds.mesh @mesh axes [pp = 2, dp = 2] samples dp stages pp
  func.func @s0() attributes {ds.segment = #ds.segment<forward>} {
    %x = ds.constant dense<1.0> : tensor<f32>
    %y = ds.all_reduce sum %x along (pp, dp) : tensor<f32>
    return
  }
  func.func @s1() attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward>} {
    %x = ds.constant dense<1.0> : tensor<f32>
    %y = ds.all_reduce sum %x along pp : tensor<f32>
    return
  }
}

// -----

// One collective less.
// CHECK-LABEL: module 3:
// CHECK-NEXT: error: no rank can continue:
// CHECK-NEXT:   rank 0 waits for rank 1 in ds.all_reduce sum along pp of f32 (@s0, op 2); rank 1 came to the end
// CHECK-NOT:    rank 1 waits
module {
  ds.mesh @mesh axes [pp = 2] stages pp
  func.func @s0() attributes {ds.segment = #ds.segment<forward>} {
    %x = ds.constant dense<1.0> : tensor<f32>
    %y = ds.all_reduce sum %x along pp : tensor<f32>
    %z = ds.all_reduce sum %y along pp : tensor<f32>
    return
  }
  func.func @s1() attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward>} {
    %x = ds.constant dense<1.0> : tensor<f32>
    %y = ds.all_reduce sum %x along pp : tensor<f32>
    return
  }
}

// -----

// A message of another type.
// CHECK-LABEL: module 4:
// CHECK-NEXT: error: ranks 0 and 1 exchange different messages:
// CHECK-NEXT:   rank 0: ds.send to rank 1 along pp of 2xf32 (@s0, op 1)
// CHECK-NEXT:   rank 1: ds.recv from rank 0 along pp of 2xbf16 (@s1, op 0)
module {
  ds.mesh @mesh axes [pp = 2] stages pp
  func.func @s0() attributes {ds.segment = #ds.segment<forward>} {
    %x = ds.constant dense<1.0> : tensor<2xf32>
    ds.send %x to 1 along pp : tensor<2xf32>
    return
  }
  func.func @s1() attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward>} {
    %y = ds.recv from 0 along pp : tensor<2xbf16>
    return
  }
}

// -----

// A send ends with its receive: stage 0 sends two micro-batches before it receives, stage 1 answers the first one.
// CHECK-LABEL: module 5:
// CHECK-NEXT: error: no rank can continue:
// CHECK-NEXT:   rank 0 waits for rank 1 in ds.send to rank 1 along pp of f32 (@forward0, op 1)
// CHECK-NEXT:   rank 1 waits for rank 0 in ds.send to rank 0 along pp of f32 (@both1, op 2)
module {
  ds.mesh @mesh axes [pp = 2] stages pp
  func.func @forward0() attributes {ds.segment = #ds.segment<forward>} {
    %x = ds.constant dense<1.0> : tensor<f32>
    ds.send %x to 1 along pp : tensor<f32>
    return
  }
  func.func @backward0() attributes {ds.segment = #ds.segment<backward, update>} {
    %d = ds.recv from 1 along pp : tensor<f32>
    return
  }
  func.func @both1() attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, backward, update>} {
    %x = ds.recv from 0 along pp : tensor<f32>
    %d = ds.neg %x : tensor<f32>
    ds.send %d to 0 along pp : tensor<f32>
    return
  }
  ds.schedule stage 0 [#ds.run<@forward0, first 0, count 2, gradients none>, #ds.run<@backward0, first 0, count 1, gradients set>]
  ds.schedule stage 1 [#ds.run<@both1, first 0, count 1, gradients set>]
}

// -----

// What all ranks have whole must be the same.
// CHECK-LABEL: module 6:
// CHECK: error: ranks 0 and 1 differ in element 0 of total: 0.0 and 1.0
module {
  ds.mesh @mesh axes [dp = 2] samples dp
  ds.state @total role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
  func.func @own() -> (tensor<f32> {ds.state = @total}) {
    %i = ds.axis_index dp : tensor<i64>
    %f = ds.convert %i : tensor<i64> -> tensor<f32>
    return %f : tensor<f32>
  }
}

// -----

// A stage that no rank runs.
// CHECK-LABEL: module 7:
// CHECK-NEXT: error: @late is of a stage that the mesh [pp = 2] does not have: `stages` names its axes
module {
  ds.mesh @mesh axes [pp = 2] stages pp
  func.func @late() attributes {ds.segment = #ds.segment<stage 2, chunk 0, forward>} {
    return
  }
}
