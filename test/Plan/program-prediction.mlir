// The plan of a program says how long a step takes at the rates of a cluster, what that is made of, and which figures it
// rests on.
// RUN: ds-opt %s --emit=plan --set train_micro_batch_size_per_gpu=4 --set gradient_accumulation_steps=3 --plan-json %t.json | FileCheck %s
// RUN: FileCheck %s --check-prefix=JSON --input-file %t.json
//
// CHECK: 48 parameters, 2.3 kFLOP a step, one rank, {{[0-9.e-]+}} s a step predicted
// CHECK: {{^}}Predicted step: {{[0-9.e-]+}} s, {{[0-9.e-]+}} TFLOP/s per device
// CHECK-NEXT: products and attention {{.*}} s {{.*}} % device.matmul_flops, device.memory_bytes_per_second
// CHECK-NEXT: other kernels {{.*}} s {{.*}} % device.memory_bytes_per_second, device.launch_seconds
//
// Forward and the weight's gradient, 2 * 4 * 8 * 6 operations each, in each of three micro-steps: 2304.
// JSON: "predicted": {
// JSON-NEXT: "step_seconds": {{[0-9.e-]+}},
// JSON-NEXT: "tflops_per_device": {{[0-9.e-]+}},
// JSON-NEXT: "compute_seconds": {{[0-9.e-]+}},
// JSON-NEXT: "exposed_communication_seconds": 0,
// JSON: "flops_per_step": 2304,
ds.state @w role(parameter) trainable init(#ds.init<normal, 0.0, 0.02>) home(device) : tensor<8x6xf32>
func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}, %w: tensor<8x6xf32> {ds.state = @w}) -> tensor<f32> {
  %m = ds.matmul %x, %w : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  %s = ds.mul %m, %m : tensor<4x6xf32>
  %l = ds.reduce sum %s dims [0, 1] : tensor<4x6xf32> -> tensor<f32>
  return %l : tensor<f32>
}
