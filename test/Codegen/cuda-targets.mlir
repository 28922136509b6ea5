// Targets that are none are refused by name, with those there are; a program for CUDA does not run on the CPU.
// RUN: %python -c "open('%t.bin', 'wb').write(b'')"
// RUN: %exits 3 ds-opt %s --target cuda:sm_70 --emit=program -o %t.dsx | FileCheck %s
// RUN: %exits 3 ds-opt %s --target cuda --emit=program -o %t.dsx | FileCheck %s --check-prefix=BARE
// RUN: %exits 3 ds-opt %s --target gpu --emit=plan | FileCheck %s --check-prefix=OTHER
// RUN: ds-opt %s --target cuda:sm_80 --set optimizer.type=SGD --set train_micro_batch_size_per_gpu=4 \
// RUN:   --emit=program -o %t.dsx
// RUN: %exits 9 ds-run %t.dsx --data %t.bin | FileCheck %s --check-prefix=DEVICE
// CHECK: ds-opt: error: --target cuda:sm_70: no target of this name
// CHECK: hint: write cpu, cuda:sm_80, cuda:sm_90, or the later device that is to run it, as cuda:sm_89
// A later device runs the code of the nearest older one: Ampere's and Ada's consumer cards that of sm_80, Blackwell's that of sm_90.
// RUN: for n in 86 89; do ds-opt %s --target cuda:sm_$n --emit=plan --set train_micro_batch_size_per_gpu=4 | FileCheck %s --check-prefix=OLD || exit 1; done
// RUN: for n in 100 103 120; do ds-opt %s --target cuda:sm_$n --emit=plan --set train_micro_batch_size_per_gpu=4 | FileCheck %s --check-prefix=NEW || exit 1; done
// OLD: target: cuda:sm_80 (which sm_8{{[69]}} runs)
// NEW: target: cuda:sm_90 (which sm_1{{[0-9]+}} runs)
// RUN: ds-opt %s --target cuda:sm_89 --set optimizer.type=SGD --set train_micro_batch_size_per_gpu=4 --emit=program -o %t.ada.dsx
// RUN: %exits 9 ds-run %t.ada.dsx --data %t.bin | FileCheck %s --check-prefix=DEVICE
// BARE: ds-opt: error: --target cuda: no target of this name
// OTHER: ds-opt: error: --target gpu: no target of this name
// DEVICE: was compiled for cuda:sm_80

ds.state @w role(parameter) trainable init(#ds.init<constant, 1.0, 0.0>) home(device) : tensor<4x64xf32>
func.func @forward(%x: tensor<4x64xf32> {ds.input = "x"}, %w: tensor<4x64xf32> {ds.state = @w}) -> tensor<f32> {
  %y = ds.mul %x, %w : tensor<4x64xf32>
  %l = ds.reduce sum %y dims [0, 1] : tensor<4x64xf32> -> tensor<f32>
  return %l : tensor<f32>
}
