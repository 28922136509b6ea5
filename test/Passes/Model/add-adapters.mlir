// RUN: ds-opt %s --split-input-file --ds-add-adapters="layers=fc:2:4" | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-add-adapters="layers=f*:2:4:0.5,fc:3:8:0.5" | FileCheck %s --check-prefix=DROPOUT

// A layer of nn.Linear that is used twice: both products share the factors. Nothing else is trained. The bias of the
// layer stays with the product, and the result is read where the layer's was.

// CHECK: ds.files converts config "{{.*}}model_type{{.*}}peft_config{{.*}}r\22: 2{{.*}}lora_alpha\22: 4{{.*}}target_modules{{.*}}fc{{.*}}fan_in_fan_out\22: false
// CHECK: ds.state @fc.weight role (parameter) init
// 1/sqrt(16) = 0.25
// CHECK-DAG: ds.state @base_model.model.fc.lora_A.weight role (parameter) trainable init(#ds.init<uniform, -2.500000e-01, 2.500000e-01>) home (device) : tensor<2x16xf32>
// CHECK-DAG: ds.state @base_model.model.fc.lora_B.weight role (parameter) trainable init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) : tensor<16x2xf32>
// CHECK: ds.state @fc.bias role (parameter) init
// DROPOUT: ds.state @rng role (scalar)
module {
  ds.files converts config "{\22model_type\22: \22none\22}"
  ds.state @fc.weight role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<16x16xf32>
  ds.state @fc.bias role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<16xf32>
  // CHECK-LABEL: func.func @forward
  // CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8x16xf32> {ds.input = "x"}
  // CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<16x16xf32> {ds.state = @fc.weight}
  // CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<2x16xf32> {ds.state = @base_model.model.fc.lora_A.weight}
  // CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<16x2xf32> {ds.state = @base_model.model.fc.lora_B.weight}
  // CHECK: %[[Y:.*]] = ds.matmul %[[X]], %[[W]] bias
  // CHECK-NEXT: %[[D:.*]] = ds.matmul %[[X]], %[[A]] transpose_rhs : tensor<8x16xf32>, tensor<2x16xf32> -> tensor<8x2xf32>
  // CHECK-NEXT: %[[U:.*]] = ds.matmul %[[D]], %[[B]] transpose_rhs : tensor<8x2xf32>, tensor<16x2xf32> -> tensor<8x16xf32>
  // CHECK-NEXT: %[[SCALE:.*]] = ds.constant dense<2.0
  // CHECK-NEXT: %[[S:.*]] = ds.mul %[[U]], %[[SCALE]]
  // CHECK-NEXT: %[[R:.*]] = ds.add %[[Y]], %[[S]]
  // CHECK-NEXT: ds.matmul %[[R]], %[[W]] transpose_rhs
  // CHECK-NEXT: ds.matmul %[[R]], %[[A]] transpose_rhs
  // Dropout stands before the adapter alone, and each product draws for itself.
  // DROPOUT: %[[Y:.*]] = ds.matmul %[[X:arg[0-9]]], %{{.*}} bias
  // DROPOUT-NEXT: %[[P:.*]] = ds.dropout %[[X]], %[[RNG:.*]] probability 5.000000e-01 id 0
  // DROPOUT-NEXT: ds.matmul %[[P]], %{{.*}} transpose_rhs : tensor<8x16xf32>, tensor<2x16xf32> -> tensor<8x2xf32>
  // DROPOUT: %[[Q:.*]] = ds.dropout %{{.*}}, %[[RNG]] probability 5.000000e-01 id 1
  // DROPOUT-NEXT: ds.matmul %[[Q]]
  func.func @forward(%x: tensor<8x16xf32> {ds.input = "x"}, %w: tensor<16x16xf32> {ds.state = @fc.weight},
                     %b: tensor<16xf32> {ds.state = @fc.bias}) -> tensor<f32> {
    %y = ds.matmul %x, %w bias(%b) transpose_rhs : tensor<8x16xf32>, tensor<16x16xf32>, tensor<16xf32> -> tensor<8x16xf32>
    %z = ds.matmul %y, %w transpose_rhs : tensor<8x16xf32>, tensor<16x16xf32> -> tensor<8x16xf32>
    %l = ds.reduce sum %z dims [0, 1] : tensor<8x16xf32> -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// GPT-2's layout: [inputs, outputs]. Another layer whose name ends so and has no adapter makes PEFT's target the full
// name.
// CHECK: peft_config{{.*}}target_modules{{.*}}fc{{.*}}fan_in_fan_out\22: true
// CHECK-DAG: ds.state @base_model.model.fc.lora_A.weight role (parameter) trainable init(#ds.init<uniform, -5.000000e-01, 5.000000e-01>) home (device) : tensor<2x4xf32>
// CHECK-DAG: ds.state @base_model.model.fc.lora_B.weight role (parameter) trainable init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) : tensor<8x2xf32>
module {
  ds.state @fc.weight role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x8xf32>
  func.func @forward(%x: tensor<2x3x4xf32> {ds.input = "x"}, %w: tensor<4x8xf32> {ds.state = @fc.weight}) -> tensor<f32> {
    %y = ds.matmul %x, %w : tensor<2x3x4xf32>, tensor<4x8xf32> -> tensor<2x3x8xf32>
    %l = ds.reduce sum %y dims [0, 1, 2] : tensor<2x3x8xf32> -> tensor<f32>
    return %l : tensor<f32>
  }
}
