// A mesh that MLIR declares says how many ranks there are; --ranks may only agree. A configuration takes its place.
// RUN: ds-opt %s --emit=ir --phase=model | FileCheck %s --check-prefix=OWN
// RUN: ds-opt %s --ranks 4 --emit=ir --phase=model | FileCheck %s --check-prefix=OWN
// OWN-COUNT-1: ds.mesh @ranks axes [dp.node = 2, dp.local = 2] samples dp zero dp.local
// OWN-NOT: ds.mesh
// RUN: not ds-opt %s --ranks 2 --emit=plan 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: --ranks 2, but the module's ds.mesh has 4 ranks: [dp.node = 2, dp.local = 2]
// OTHER-NEXT: hint: leave --ranks out

// RUN: echo '{"train_micro_batch_size_per_gpu": 4}' > %t.json
// RUN: ds-opt %s --config %t.json --ranks 2 --emit=ir --phase=model | FileCheck %s --check-prefix=CONFIG
// CONFIG-COUNT-1: ds.mesh @mesh axes [dp = 2] samples dp zero dp
// CONFIG-NOT: ds.mesh
// RUN: ds-opt %s --config %t.json --emit=ir --phase=model | FileCheck %s --check-prefix=ALONE
// ALONE-NOT: ds.mesh

// The gradient is the mean over all four ranks, made once by its seed: 1 / 4.
// RUN: ds-opt %s --emit=ir --phase=step | FileCheck %s --check-prefix=SEED
// SEED: ds.constant dense<2.500000e-01>
module {
  ds.mesh @ranks axes [dp.node = 2, dp.local = 2] samples dp zero dp.local
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x6xf32>
  func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}, %w: tensor<8x6xf32> {ds.state = @w}) -> tensor<f32> {
    %m = ds.matmul %x, %w : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
    %loss = ds.reduce sum %m dims [0, 1] : tensor<4x6xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
