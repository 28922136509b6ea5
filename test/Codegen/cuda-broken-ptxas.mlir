// A ptxas that fails, that cannot be started, or that writes nothing costs the cubin and one line, never the program.
// RUN: rm -rf %t && mkdir -p %t/fails %t/broken %t/idle
// RUN: printf '#!/bin/sh\necho "ptxas fatal: no licence"\necho more\nexit 1\n' > %t/fails/ptxas
// RUN: printf '#!/nowhere/sh\n' > %t/broken/ptxas
// RUN: printf '#!/bin/sh\n' > %t/idle/ptxas
// RUN: chmod +x %t/fails/ptxas %t/broken/ptxas %t/idle/ptxas
// DEFINE: %{which} = fails
// DEFINE: %{compile} = env PATH=%t/%{which}:$PATH ds-opt %s --target cuda:sm_80 --set optimizer.type=SGD --set train_micro_batch_size_per_gpu=4 --emit=program -o %t/model.dsx
// RUN: %{compile} 2>&1 | FileCheck %s --check-prefix=FAILS --implicit-check-not=more
// RUN: %python %oracle/ptx.py %t/model.dsx | FileCheck %s --check-prefix=PTX
// REDEFINE: %{which} = broken
// RUN: %{compile} 2>&1 | FileCheck %s --check-prefix=BROKEN
// REDEFINE: %{which} = idle
// RUN: %{compile} 2>&1 | FileCheck %s --check-prefix=IDLE
// FAILS: note: the program holds its kernels as PTX alone, which the driver assembles at load: {{.*}}fails/ptxas: exit code 1: ptxas fatal: no licence{{$}}
// PTX: .target sm_80
// BROKEN: note: {{.*}}broken/ptxas: {{.+}}
// IDLE: note: {{.*}}idle/ptxas: it wrote no cubin

ds.state @w role(parameter) trainable init(#ds.init<constant, 1.0, 0.0>) home(device) : tensor<4x64xf32>
func.func @forward(%x: tensor<4x64xf32> {ds.input = "x"}, %w: tensor<4x64xf32> {ds.state = @w}) -> tensor<f32> {
  %y = ds.mul %x, %w : tensor<4x64xf32>
  %l = ds.reduce sum %y dims [0, 1] : tensor<4x64xf32> -> tensor<f32>
  return %l : tensor<f32>
}
