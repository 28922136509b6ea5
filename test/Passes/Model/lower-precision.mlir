// RUN: ds-opt %s --split-input-file --ds-lower-precision | FileCheck %s

// Nothing asked: nothing changes.
// CHECK-LABEL: module {
// CHECK: ds.state @w {{.*}} : tensor<6x8xf32>
// CHECK-NOT: bf16
module {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6x8xf32>
  func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}, %w: tensor<6x8xf32> {ds.state = @w}) -> tensor<f32> {
    %h = ds.matmul %x, %w transpose_rhs : tensor<4x8xf32>, tensor<6x8xf32> -> tensor<4x6xf32>
    %loss = ds.reduce sum %h dims [0, 1] : tensor<4x6xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Trainable and frozen parameters become bf16; buffers, integers and inputs stay. The input is rounded before the
// product, the sum is f32, and so is the loss.
// CHECK-LABEL: @whole_model
module @whole_model attributes {ds.training = #ds.training<precision = {compute = bf16}>} {
  // CHECK: ds.state @w {{.*}} trainable {{.*}} : tensor<6x8xbf16>
  // CHECK: ds.state @frozen {{.*}} : tensor<6xbf16>
  // CHECK: ds.state @table {{.*}} : tensor<4x6xf32>
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6x8xf32>
  ds.state @frozen role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
  ds.state @table role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x6xf32>
  // CHECK: @forward(%[[X:.*]]: tensor<4x8xf32> {ds.input = "x"}, %[[W:.*]]: tensor<6x8xbf16> {{.*}}, %[[B:.*]]: tensor<6xbf16> {{.*}}, %[[T:.*]]: tensor<4x6xf32> {{.*}}) -> tensor<f32>
  // CHECK-NEXT: %[[XL:.*]] = ds.convert %[[X]]
  // CHECK-NEXT: %[[H:.*]] = ds.matmul %[[XL]], %[[W]] bias(%[[B]]) transpose_rhs : {{.*}} -> tensor<4x6xbf16>
  // The buffer is wider than the product: their sum is as wide as it.
  // CHECK-NEXT: %[[HS:.*]] = ds.convert %[[H]] : tensor<4x6xbf16> -> tensor<4x6xf32>
  // CHECK-NEXT: %[[S:.*]] = ds.add %[[HS]], %[[T]] : tensor<4x6xf32>
  // CHECK-NEXT: %[[L:.*]] = ds.reduce sum %[[S]]
  // CHECK-NEXT: return %[[L]] : tensor<f32>
  func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}, %w: tensor<6x8xf32> {ds.state = @w},
                     %b: tensor<6xf32> {ds.state = @frozen}, %t: tensor<4x6xf32> {ds.state = @table}) -> tensor<f32> {
    %h = ds.matmul %x, %w bias(%b) transpose_rhs : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6xf32> -> tensor<4x6xf32>
    %s = ds.add %h, %t : tensor<4x6xf32>
    %loss = ds.reduce sum %s dims [0, 1] : tensor<4x6xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Autocast: parameters stay f32 and are converted once, however often they are used.
// CHECK-LABEL: @autocast
module @autocast attributes {ds.training = #ds.training<precision = {compute = f16, autocast = true}>} {
  // CHECK: ds.state @w {{.*}} : tensor<8x8xf32>
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x8xf32>
  // CHECK: @forward(%[[X:.*]]: {{.*}}, %[[W:.*]]: tensor<8x8xf32>
  // CHECK-DAG: %[[XL:.*]] = ds.convert %[[X]] : {{.*}} -> tensor<4x8xf16>
  // CHECK-DAG: %[[WL:.*]] = ds.convert %[[W]] : {{.*}} -> tensor<8x8xf16>
  // CHECK: %[[H:.*]] = ds.matmul %[[XL]], %[[WL]] : {{.*}} -> tensor<4x8xf16>
  // CHECK-NEXT: ds.matmul %[[H]], %[[WL]]
  // A norm's weights stay f32 as they are.
  func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}, %w: tensor<8x8xf32> {ds.state = @w}) -> tensor<f32> {
    %h = ds.matmul %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %i = ds.matmul %h, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %loss = ds.reduce sum %i dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A norm is computed in f32 with f32 statistics; what goes on into a product is rounded after it. The residual
// is read twice, so it is stored, and rounded before either reader.
// CHECK-LABEL: @norm_and_residual
module @norm_and_residual attributes {ds.training = #ds.training<precision = {compute = bf16}>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x8xf32>
  ds.state @g role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  // CHECK: @forward(%{{.*}}, %[[W:.*]]: tensor<8x8xbf16> {{.*}}, %[[G:.*]]: tensor<8xbf16>
  func.func @forward(%ids: tensor<4xi64> {ds.input = "ids"}, %w: tensor<8x8xf32> {ds.state = @w}, %g: tensor<8xf32> {ds.state = @g}) -> tensor<f32> {
    // CHECK: %[[E:.*]] = ds.embedding {{.*}} -> tensor<4x8xbf16>
    // CHECK-NEXT: %[[H:.*]] = ds.matmul %[[E]], %[[W]] : {{.*}} -> tensor<4x8xbf16>
    // CHECK-DAG: %[[ES:.*]] = ds.convert %[[E]]
    // CHECK-DAG: %[[HS:.*]] = ds.convert %[[H]]
    // CHECK: %[[S:.*]] = ds.add %[[ES]], %[[HS]] : tensor<4x8xf32>
    // CHECK-NEXT: %[[R:.*]] = ds.convert %[[S]] : tensor<4x8xf32> -> tensor<4x8xbf16>
    // CHECK-DAG: %[[RS:.*]] = ds.convert %[[R]] : tensor<4x8xbf16> -> tensor<4x8xf32>
    // CHECK-DAG: %[[GS:.*]] = ds.convert %[[G]] : tensor<8xbf16> -> tensor<8xf32>
    // CHECK: %[[N:.*]], %{{.*}} = ds.rms_norm %[[RS]] weight(%[[GS]]) {{.*}} -> tensor<4x8xf32>, tensor<4xf32>
    // CHECK-NEXT: %[[NL:.*]] = ds.convert %[[N]] : tensor<4x8xf32> -> tensor<4x8xbf16>
    // CHECK-NEXT: ds.matmul %[[NL]], %[[W]]
    // CHECK-NEXT: ds.matmul %[[R]], %[[W]]
    %e = ds.embedding %w, %ids : tensor<8x8xf32>, tensor<4xi64> -> tensor<4x8xf32>
    %h = ds.matmul %e, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %s = ds.add %e, %h : tensor<4x8xf32>
    %n, %rstd = ds.rms_norm %s weight(%g) over 1 epsilon 1.0e-6 : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>, tensor<4xf32>
    %a = ds.matmul %n, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %b = ds.matmul %s, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %d = ds.mul %a, %b : tensor<4x8xf32>
    %loss = ds.reduce sum %d dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// GELU is arithmetic as any other: in f32, between values of 16 bits.
// CHECK-LABEL: @gelu
module @gelu attributes {ds.training = #ds.training<precision = {compute = bf16}>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x8xf32>
  func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}, %w: tensor<8x8xf32> {ds.state = @w}) -> tensor<f32> {
    // CHECK: %[[H:.*]] = ds.matmul
    // CHECK-NEXT: %[[WIDE:.*]] = ds.convert %[[H]] : tensor<4x8xbf16> -> tensor<4x8xf32>
    // CHECK-NEXT: %[[G:.*]] = ds.gelu tanh %[[WIDE]] : tensor<4x8xf32>
    // CHECK-NEXT: %[[LOW:.*]] = ds.convert %[[G]] : tensor<4x8xf32> -> tensor<4x8xbf16>
    // CHECK-NEXT: ds.matmul %[[LOW]]
    %h = ds.matmul %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %g = ds.gelu tanh %h : tensor<4x8xf32>
    %o = ds.matmul %g, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %loss = ds.reduce sum %o dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A chain of elementwise ops between two products: rounded once, at its end. The constant has no say in the type.
// CHECK-LABEL: @chain
module @chain attributes {ds.training = #ds.training<precision = {compute = bf16}>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x8xf32>
  // CHECK: @forward(%{{.*}}, %[[W:.*]]: tensor<8x8xbf16>
  func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}, %w: tensor<8x8xf32> {ds.state = @w}) -> tensor<f32> {
    // CHECK: %[[HALF:.*]] = ds.constant dense<5.000000e-01> : tensor<4x8xf32>
    // CHECK: %[[H:.*]] = ds.matmul
    // CHECK-NEXT: %[[HS:.*]] = ds.convert %[[H]]
    // CHECK-NEXT: %[[S:.*]] = ds.sigmoid %[[HS]] : tensor<4x8xf32>
    // CHECK-NEXT: %[[Y:.*]] = ds.mul %[[S]], %[[HS]] : tensor<4x8xf32>
    // CHECK-NEXT: %[[Z:.*]] = ds.mul %[[Y]], %[[HALF]] : tensor<4x8xf32>
    // CHECK-NEXT: %[[ZL:.*]] = ds.convert %[[Z]] : tensor<4x8xf32> -> tensor<4x8xbf16>
    // CHECK-NEXT: %[[O:.*]] = ds.matmul %[[ZL]], %[[W]]
    // A transposition passes 16 bits on.
    // CHECK-NEXT: ds.transpose %[[O]] {{.*}} : tensor<4x8xbf16> -> tensor<8x4xbf16>
    %half = ds.constant dense<0.5> : tensor<4x8xf32>
    %h = ds.matmul %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %s = ds.sigmoid %h : tensor<4x8xf32>
    %y = ds.mul %s, %h : tensor<4x8xf32>
    %z = ds.mul %y, %half : tensor<4x8xf32>
    %o = ds.matmul %z, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %t = ds.transpose %o perm [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
    %loss = ds.reduce sum %t dims [0, 1] : tensor<8x4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Attention takes 16 bits, but its mask and slopes f32; its row statistics are f32. Cross-entropy reads 16-bit logits as they
// are. A constant that meets 16 bits in an op that moves elements becomes 16-bit itself.
// CHECK-LABEL: @attention_and_loss
module @attention_and_loss attributes {ds.training = #ds.training<precision = {compute = bf16}>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x8xf32>
  func.func @forward(%x: tensor<1x4x1x8xf32> {ds.input = "x"}, %m: tensor<1x1x4x4xf32> {ds.input = "m"}, %s: tensor<1xf32> {ds.input = "s"},
                     %y: tensor<8xi64> {ds.input = "y"}, %w: tensor<8x8xf32> {ds.state = @w}) -> tensor<f32> {
    // CHECK: %[[O:.*]], %{{.*}} = ds.attention %[[Q:.*]], %[[Q]], %[[Q]] mask({{.*}}) slopes({{.*}}) scale {{.*}} : (tensor<1x4x1x8xbf16>, tensor<1x4x1x8xbf16>, tensor<1x4x1x8xbf16>, tensor<1x1x4x4xf32>, tensor<1xf32>) -> (tensor<1x4x1x8xbf16>, tensor<1x1x4xf32>)
    // CHECK-NEXT: %[[F:.*]] = ds.reshape %[[O]] : {{.*}} -> tensor<4x8xbf16>
    // CHECK-NEXT: %[[ZERO:.*]] = ds.constant dense<0.000000e+00> : tensor<4x8xbf16>
    // CHECK-NEXT: %[[C:.*]] = ds.concat %[[F]], %[[ZERO]] dim 0
    // CHECK: %[[G:.*]] = ds.matmul %[[C]]
    // CHECK-NEXT: ds.cross_entropy %[[G]], {{.*}} : (tensor<8x8xbf16>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
    %zero = ds.constant dense<0.0> : tensor<4x8xf32>
    %o, %lse = ds.attention %x, %x, %x mask(%m) slopes(%s) scale 1.0 : (tensor<1x4x1x8xf32>, tensor<1x4x1x8xf32>, tensor<1x4x1x8xf32>, tensor<1x1x4x4xf32>, tensor<1xf32>) -> (tensor<1x4x1x8xf32>, tensor<1x1x4xf32>)
    %f = ds.reshape %o : tensor<1x4x1x8xf32> -> tensor<4x8xf32>
    %c = ds.concat %f, %zero dim 0 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<8x8xf32>
    %g = ds.matmul %c, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    %loss, %l, %n = ds.cross_entropy %g, %y ignore_index -100 : (tensor<8x8xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
    return %loss : tensor<f32>
  }
}

// -----

// Buffers change their type where that is asked for by name, and what is returned for one follows.
// CHECK-LABEL: @buffers
module @buffers attributes {ds.training = #ds.training<precision = {compute = bf16, convert_buffers = true, buffer = bf16}>} {
  // CHECK: ds.state @mean {{.*}} : tensor<8xbf16>
  ds.state @mean role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  // CHECK: @forward(%[[X:.*]]: tensor<4x8xf32> {{.*}}) -> (tensor<f32>, tensor<8xbf16> {ds.state = @mean})
  func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}, %mean: tensor<8xf32> {ds.state = @mean}) -> (tensor<f32>, tensor<8xf32> {ds.state = @mean}) {
    // CHECK: %[[S:.*]] = ds.reduce sum {{.*}} -> tensor<8xf32>
    // CHECK: %[[N:.*]] = ds.convert %[[S]] : tensor<8xf32> -> tensor<8xbf16>
    // CHECK: return %{{.*}}, %[[N]] : tensor<f32>, tensor<8xbf16>
    %s = ds.reduce sum %x dims [0] : tensor<4x8xf32> -> tensor<8xf32>
    %m = ds.mul %s, %mean : tensor<8xf32>
    %loss = ds.reduce sum %m dims [0] : tensor<8xf32> -> tensor<f32>
    return %loss, %s : tensor<f32>, tensor<8xf32>
  }
}

// -----

// An input counts as 16-bit: what is computed of it and read twice is stored, and rounded. What one softmax reads is
// stored too, for it is no arithmetic on elements.
// CHECK-LABEL: @inputs_count_as_low
module @inputs_count_as_low attributes {ds.training = #ds.training<precision = {compute = bf16}>} {
  func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}) -> tensor<f32> {
    // CHECK: %[[N:.*]] = ds.neg %{{.*}} : tensor<4x8xf32>
    // CHECK-NEXT: %[[NL:.*]] = ds.convert %[[N]] : tensor<4x8xf32> -> tensor<4x8xbf16>
    // CHECK-NEXT: %[[NS:.*]] = ds.convert %[[NL]] : tensor<4x8xbf16> -> tensor<4x8xf32>
    // CHECK-NEXT: %[[A:.*]] = ds.abs %[[NS]] : tensor<4x8xf32>
    // CHECK-NEXT: %[[AL:.*]] = ds.convert %[[A]] : tensor<4x8xf32> -> tensor<4x8xbf16>
    // CHECK-NEXT: %[[AS:.*]] = ds.convert %[[AL]] : tensor<4x8xbf16> -> tensor<4x8xf32>
    // CHECK-NEXT: ds.softmax %[[AS]] {{.*}} : tensor<4x8xf32>
    %n = ds.neg %x : tensor<4x8xf32>
    %a = ds.abs %n : tensor<4x8xf32>
    %p = ds.softmax %a dim 1 : tensor<4x8xf32>
    %d = ds.mul %p, %n : tensor<4x8xf32>
    %loss = ds.reduce sum %d dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A number that is repeated has no say in the type, though it is f32 itself.
// CHECK-LABEL: @repeated_scalar
module @repeated_scalar attributes {ds.training = #ds.training<precision = {compute = bf16}>} {
  ds.state @scale role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
  func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}, %scale: tensor<f32> {ds.state = @scale}) -> tensor<f32> {
    // CHECK: %[[M:.*]] = ds.mul %{{.*}}, %{{.*}} : tensor<4x8xf32>
    // CHECK-NEXT: %[[ML:.*]] = ds.convert %[[M]] : tensor<4x8xf32> -> tensor<4x8xbf16>
    %s = ds.broadcast %scale dims [] : tensor<f32> -> tensor<4x8xf32>
    %m = ds.mul %x, %s : tensor<4x8xf32>
    %a = ds.reduce sum %m dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
    %b = ds.reduce max %m dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
    %loss = ds.add %a, %b : tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Neither of bf16 and f16 holds the other: what meets both is f32, also where it is stored.
// CHECK-LABEL: @two_kinds_of_low
module @two_kinds_of_low attributes {ds.training = #ds.training<precision = {compute = bf16, convert_buffers = true, buffer = f16}>} {
  ds.state @t role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x8xf32>
  func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}, %t: tensor<4x8xf32> {ds.state = @t}) -> tensor<f32> {
    // CHECK: %[[TS:.*]] = ds.convert %{{.*}} : tensor<4x8xf16> -> tensor<4x8xf32>
    // CHECK-NEXT: %[[S:.*]] = ds.add %{{.*}}, %[[TS]] : tensor<4x8xf32>
    // CHECK-NEXT: ds.reduce sum %[[S]]
    // CHECK-NEXT: ds.reduce max %[[S]]
    %s = ds.add %x, %t : tensor<4x8xf32>
    %a = ds.reduce sum %s dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
    %b = ds.reduce max %s dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
    %loss = ds.add %a, %b : tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// What is f64 stays f64 where f32 is asked for because 16 bits are too few.
// CHECK-LABEL: @wider_than_single
module @wider_than_single attributes {ds.training = #ds.training<precision = {compute = bf16}>} {
  ds.state @t role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf64>
  func.func @forward(%t: tensor<8xf64> {ds.state = @t}) -> tensor<f64> {
    // CHECK: %[[E:.*]] = ds.exp %{{.*}} : tensor<8xf64>
    // CHECK-NEXT: ds.reduce sum %[[E]] dims [0] : tensor<8xf64> -> tensor<f64>
    %e = ds.exp %t : tensor<8xf64>
    %loss = ds.reduce sum %e dims [0] : tensor<8xf64> -> tensor<f64>
    return %loss : tensor<f64>
  }
}

// -----

// What is wider than 16 bits makes the result so, also where that is stored.
// CHECK-LABEL: @wider_operand
module @wider_operand attributes {ds.training = #ds.training<precision = {compute = bf16}>} {
  ds.state @t role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x8xf32>
  func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}, %t: tensor<4x8xf32> {ds.state = @t}) -> tensor<f32> {
    // CHECK: %[[S:.*]] = ds.add %{{.*}}, %{{.*}} : tensor<4x8xf32>
    // CHECK-NEXT: ds.reduce sum %[[S]]
    // CHECK-NEXT: ds.reduce max %[[S]]
    %s = ds.add %x, %t : tensor<4x8xf32>
    %a = ds.reduce sum %s dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
    %b = ds.reduce max %s dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
    %loss = ds.add %a, %b : tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A conversion that the model writes reads a register, too.
// CHECK-LABEL: @read_by_a_conversion
module @read_by_a_conversion attributes {ds.training = #ds.training<precision = {compute = bf16}>} {
  func.func @forward(%x: tensor<8xf32> {ds.input = "x"}) -> tensor<f64> {
    // CHECK: %[[N:.*]] = ds.neg %{{.*}} : tensor<8xf32>
    // CHECK-NEXT: ds.convert %[[N]] : tensor<8xf32> -> tensor<8xf64>
    %n = ds.neg %x : tensor<8xf32>
    %w = ds.convert %n : tensor<8xf32> -> tensor<8xf64>
    %loss = ds.reduce sum %w dims [0] : tensor<8xf64> -> tensor<f64>
    return %loss : tensor<f64>
  }
}

// -----

// A convolution is computed in 16 bits, its bias too; parameters of autocast are converted for it.
// CHECK-LABEL: @convolution
module @convolution attributes {ds.training = #ds.training<precision = {compute = bf16, autocast = true}>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x3x3xf32>
  ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
  func.func @forward(%x: tensor<2x3x8xf32> {ds.input = "x"}, %w: tensor<4x3x3xf32> {ds.state = @w}, %b: tensor<4xf32> {ds.state = @b}) -> tensor<f32> {
    // CHECK: ds.conv %{{.*}}, %{{.*}} bias(%{{.*}}) stride [1] padding [0] dilation [1] groups 1 : tensor<2x3x8xbf16>, tensor<4x3x3xbf16>, tensor<4xbf16> -> tensor<2x4x6xbf16>
    %y = ds.conv %x, %w bias(%b) stride [1] padding [0] dilation [1] groups 1 : tensor<2x3x8xf32>, tensor<4x3x3xf32>, tensor<4xf32> -> tensor<2x4x6xf32>
    %loss = ds.reduce sum %y dims [0, 1, 2] : tensor<2x4x6xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A batch norm takes the 16 bits that it is given, with weights and statistics in their own types.
// CHECK-LABEL: @batch_norm
module @batch_norm attributes {ds.training = #ds.training<precision = {compute = bf16, autocast = true}>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x3x3xf32>
  ds.state @g role(parameter) trainable init(#ds.init<constant, 1.0, 0.0>) home(device) : tensor<4xf32>
  ds.state @m role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
  func.func @forward(%x: tensor<2x3x8xf32> {ds.input = "x"}, %w: tensor<4x3x3xf32> {ds.state = @w}, %g: tensor<4xf32> {ds.state = @g}, %m: tensor<4xf32> {ds.state = @m}) -> (tensor<f32>, tensor<4xf32> {ds.state = @m}) {
    %y = ds.conv %x, %w stride [1] padding [0] dilation [1] groups 1 : tensor<2x3x8xf32>, tensor<4x3x3xf32> -> tensor<2x4x6xf32>
    // CHECK: ds.batch_norm %{{.*}} weight(%{{.*}}) running(%{{.*}}, %{{.*}}) momentum {{.*}} : (tensor<2x4x6xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4x6xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    %n:5 = ds.batch_norm %y weight(%g) running(%m, %m) momentum 0.1 epsilon 1.0e-5 : (tensor<2x4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    %l = ds.reduce sum %n#0 dims [0, 1, 2] : tensor<2x4x6xf32> -> tensor<f32>
    return %l, %n#3 : tensor<f32>, tensor<4xf32>
  }
}
