//===- ModelPasses.td - Passes over the model as it was imported ---*- tablegen -*-===//
#ifndef DS_MODEL_PASSES
#define DS_MODEL_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// any phase
//===----------------------------------------------------------------------===//

def SetMachine : Pass<"ds-set-machine", "::mlir::ModuleOp"> {
  let summary = "Says for which machine a module is compiled";
  let description = [{
    Passes read the machine from `ds.machine` of the module, and ds-opt puts there what its command line says. This does
    the same for passes that are named one by one.

    Requires: nothing.
    Ensures: (E1) `ds.machine` says what the options say, and what it said where they say nothing; (E2) the cluster is
    one that can be read.

    ```
    module attributes {} {...}  ->  module attributes {ds.machine = #ds.machine<cluster = "dgx-a100", threads = 2>} {...}
    ```
  }];
  let options = [
    Option<"cluster", "cluster", "std::string", "", "File or name of the cluster whose rates say how long everything takes">,
    Option<"threads", "threads", "int64_t", "", "Threads of a rank">,
    Option<"memory", "memory", "int64_t", "", "Bytes of the device that everything together may take">,
    Option<"attentionBytes", "attention-bytes", "int64_t", "",
           "On CUDA, bytes of a piece of attention's gradient where one key head does not take more; 0: no workspace">];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

//===----------------------------------------------------------------------===//
// model
//===----------------------------------------------------------------------===//

def VerifyModel : Pass<"ds-verify-model", "::mlir::ModuleOp"> {
  let summary = "Checks what the passes of phase model rely on";
  let description = [{
    Requires: nothing. Ensures, or fails:
    - there is a function `@forward` whose first result is the loss, a rank-0 float;
    - each of its arguments is an input (`ds.input`) or a state (`ds.state`) that is declared, with its type, once;
    - all shapes are static, and no op belongs to a later phase (buffers, kernels, gradient ops);
    - row statistics of attention and cross-entropy are read by nothing, and a mask of attention is not trained: no
      gradient passes there.
  }];
}

def FreezeParameters : Pass<"ds-freeze-parameters", "::mlir::ModuleOp"> {
  let summary = "Has parameters not trained";
  let description = [{
    `ds-opt --freeze PATTERN` runs this on the model that it has read.

    Requires: phase model, not differentiated.

    Ensures: (E1) parameters of which a name, or an alias, matches one of `patterns` are not `trainable`; (E2) others stay as
    they are; (E3) fails, and changes nothing, where a pattern matches no parameter, and where nothing would be trained.

    With `{patterns=*.bias}`
    ```
    ds.state @fc.bias role (parameter) trainable ...  ->  ds.state @fc.bias role (parameter) ...
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
  let options = [ListOption<"patterns", "patterns", "std::string", "Globs over names of parameters: * is any text, ? a letter">];
}

def AddAdapters : Pass<"ds-add-adapters", "::mlir::ModuleOp"> {
  let summary = "Adds low-rank adapters to linear layers, and has nothing else trained";
  let description = [{
    LoRA (Hu et al., 2021) as PEFT has it: a linear layer gives y + scale * (dropout(x) A^T) B^T, where y is what it gave,
    A is [rank, inputs] and B [outputs, rank], and scale is alpha / rank, or alpha / sqrt(rank) with `use_rslora`.
    `ds-opt --lora` runs this on the model that it has read.

    Requires: phase model, not differentiated; transpositions are folded into products (canonical).

    Ensures:
    - Each layer that `layers`, or the adapter_config.json in `folder`, means has two parameters more,
      `base_model.model.LAYER.lora_A.weight`, drawn from U(-1/sqrt(inputs), 1/sqrt(inputs)), and `lora_B`, zero. All
      products by one weight share them; dropout draws for each of its own.
    - Without `layers` and `folder` nothing changes.
    - Of rules that match a layer the first counts. The product says which layout a weight has: that of nn.Linear (x W^T) or
      of GPT-2's Conv1D (x W).
    - No other parameter is `trainable`.
    - `config` of `ds.files` has an entry `peft_config`: the adapter_config.json by which PEFT finds these layers.
    - Fails, and changes nothing, where a rule matches no layer, or one whose weight something else than plain products
      reads (an embedding, also a tied one, a norm, a convolution), where a rank is above the layer's width, and
      where weights of both layouts are meant.

    With `{layers=fc:2:4}`
    ```
    %y = ds.matmul %x, %w transpose_rhs : tensor<8x16xf32>, tensor<4x16xf32> -> tensor<8x4xf32>
    ```
    becomes
    ```
    %y = ds.matmul %x, %w transpose_rhs : tensor<8x16xf32>, tensor<4x16xf32> -> tensor<8x4xf32>
    %d = ds.matmul %x, %a transpose_rhs : tensor<8x16xf32>, tensor<2x16xf32> -> tensor<8x2xf32>
    %u = ds.matmul %d, %b transpose_rhs : tensor<8x2xf32>, tensor<4x2xf32> -> tensor<8x4xf32>
    %s = ds.mul %u, %two : tensor<8x4xf32>
    %r = ds.add %y, %s : tensor<8x4xf32>
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
  let options = [
    ListOption<"layers", "layers", "std::string", "PATTERN:RANK[:ALPHA[:DROPOUT]] each: a glob over names of layers, and their adapters">,
    Option<"folder", "folder", "std::string", "", "Folder with an adapter_config.json, in place of layers">];
}

def RaiseAttention : Pass<"ds-raise-attention", "::mlir::ModuleOp"> {
  let summary = "Replaces spelled-out attention by ds.attention";
  let description = [{
    Recognises softmax(q k^T * scale + mask) v: products of rank 3 or 4, keys transposed by flag or by op, scaling by
    constants before or after the first product, c * tanh(x / c) of the scaled scores, masks as a select with a very
    negative number or as an addend, before or after scaling.

    Requires: phase model, canonical and without common subexpressions (a transposition is one op; layers share
    their mask).

    Ensures:
    - A mask that hides exactly the future, however it is computed from counters and constants, becomes `causal`; one
      that hides what lies further off, or both, becomes `window`, whose conditions may also be masks of their own;
      another addend becomes `mask`, without its repetition over batch and heads; a sum of masks counts as each.
    - c * tanh(x / c) of the scores before all masks becomes `cap`.
    - An addend that is a number for each head times counters that grow by the same from key to key (ALiBi: s - t, s, or
      -|t - s| under a causal mask) becomes `slopes`; it may be rounded otherwise than the model rounds it.
    - A finite fill of at most -10^4 counts as minus infinity in a causal mask, where each row sees itself. A select
      that is not causal is not raised.
    - Heads that were transposed before the first dimension of the products are taken from before the transposition;
      heads that never were count as batch.
    - Repetitions of key heads (repeat_interleave, expand) are folded into fewer key heads.
    - A mask of ds.attention that is nothing but these becomes `causal`, `window` and `slopes` as well.
    - Left alone: dropout on the probabilities, a mask that is trained, scores or probabilities that are read by
      something else.

    ```
    %s = ds.matmul %q, %k transpose_rhs : tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32> -> tensor<2x4x16x16xf32>
    %m = ds.select %past, %s, %minus_infinity : tensor<2x4x16x16xf32>
    %p = ds.softmax %m dim 3 : tensor<2x4x16x16xf32>
    %o = ds.matmul %p, %v : tensor<2x4x16x16xf32>, tensor<2x4x16x8xf32> -> tensor<2x4x16x8xf32>
    ```
    becomes, where q, k and v are transpositions of tensors %qt, %kt and %vt of shape [2, 16, 4, 8]
    ```
    %ot, %lse = ds.attention %qt, %kt, %vt causal scale 1.0 : ...
    %o = ds.transpose %ot perm [0, 2, 1, 3] : tensor<2x16x4x8xf32> -> tensor<2x4x16x8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def RaiseSplits : Pass<"ds-raise-splits", "::mlir::func::FuncOp"> {
  let summary = "Replaces slices that cut a value into pieces by one split";
  let description = [{
    Query, key and value are slices of one projection in many models, and neighbours that rotate are x[..., ::2] and
    x[..., 1::2]. The gradient of each slice pads to the whole and that of a split is one concatenation.

    Requires: phase model, canonical and without common subexpressions.

    Ensures: (E1) slices of a value along one dimension that are consecutive pieces, or every n-th element each, and all of
    it, become one split; slices that leave something out or overlap are left; (E2) a split along a dimension before the
    last of a reshaped value cuts columns of the value in another shape: heads that were unfolded first are cut before.

    ```
    %a = ds.slice %x offsets [0, 0] strides [1, 2] : tensor<4x8xf32> -> tensor<4x4xf32>
    %b = ds.slice %x offsets [0, 1] strides [1, 2] : tensor<4x8xf32> -> tensor<4x4xf32>
    ```
    becomes
    ```
    %p = ds.reshape %x : tensor<4x8xf32> -> tensor<4x4x2xf32>
    %s:2 = ds.split %p dim 2 : tensor<4x4x2xf32> -> tensor<4x4x1xf32>, tensor<4x4x1xf32>
    %a = ds.reshape %s#0 : tensor<4x4x1xf32> -> tensor<4x4xf32>
    %b = ds.reshape %s#1 : tensor<4x4x1xf32> -> tensor<4x4xf32>
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def RaiseLossCap : Pass<"ds-raise-loss-cap", "::mlir::func::FuncOp"> {
  let summary = "Lets a cross-entropy cap its logits itself";
  let description = [{
    c * tanh(x / c) of the logits (Gemma 2, arXiv 2408.00118, section 2) stores them three times: divided, bent and
    multiplied. Reshapes and slices may lie between that and the loss, as where labels are shifted.

    Requires: phase model, canonical.

    Ensures: (E1) such a loss has the attribute `cap` and reads x by way of the same reshapes and slices; (E2) where the
    factor on x is not 1 / c within 10^-6 of it, x is multiplied by what is left; (E3) capped logits that something else
    reads are left, as is a loss that has a cap.

    ```
    %d = ds.div %x, %thirty : tensor<8x100xf32>
    %t = ds.tanh %d : tensor<8x100xf32>                       ->
    %y = ds.mul %t, %thirty : tensor<8x100xf32>
    %loss, %lse, %n = ds.cross_entropy %y, %j ignore_index -100 : ...    ... ds.cross_entropy %x, %j ignore_index -100 cap 3.000000e+01 : ...
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def RaiseGelu : Pass<"ds-raise-gelu", "::mlir::func::FuncOp"> {
  let summary = "Replaces spelled-out GELU by ds.gelu";
  let description = [{
    Recognises the tanh form as models write it by hand: a product, in any order, of x, a half and 1 + tanh(u), where u
    is sqrt(2 / pi) times x + 0.044715 x^3, or times x (1 + 0.044715 x^2), and powers are products. What is spelled out
    is left, for whoever else reads it.

    Requires: phase model, canonical and without common subexpressions.

    Ensures: (E1) such a product is a `ds.gelu tanh` of x, which differs from it by rounding alone; (E2) constants that
    differ by more than 10^-6 of themselves are another function, and left.

    ```
    %square = ds.mul %x, %x : tensor<4xf32>                    %g = ds.gelu tanh %x : tensor<4xf32>
    %cube = ds.mul %square, %x : tensor<4xf32>
    %small = ds.mul %cube, %c : tensor<4xf32>
    %sum = ds.add %x, %small : tensor<4xf32>
    %u = ds.mul %sum, %k : tensor<4xf32>                ->
    %t = ds.tanh %u : tensor<4xf32>
    %gate = ds.add %t, %one : tensor<4xf32>
    %half = ds.mul %x, %0_5 : tensor<4xf32>
    %g = ds.mul %half, %gate : tensor<4xf32>
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def LowerPrecision : Pass<"ds-lower-precision", "::mlir::ModuleOp"> {
  let summary = "Puts parameters, activations and products into 16 bits";
  let description = [{
    `precision` of `ds.training` says what is asked for:

    | key | type | meaning |
    |---|---|---|
    | compute | string | "bf16" or "f16": the type of products and of what lies between them; "f32": nothing is lowered |
    | autocast | bool | parameters stay as they are and are converted where they are used |
    | convert_buffers, buffer | bool, string | buffers become that type; otherwise they are left alone |
    | gradient, master, moment | string | for ds-build-step: types of accumulated gradients, masters and moments |

    Requires: phase model, not differentiated; attention raised, biases folded into their products.

    Ensures:
    - Parameters are declared in the type of `compute`, unless `autocast`; the forward's inputs keep theirs.
    - Each op computes in the type that its entry in the table of precision asks for (PrecisionOpInterface):
      products and attention in 16 bits, exponentials, powers, sums and norms in f32, others in the widest type
      of their operands, where constants and repeated scalars have no say.
    - Elementwise arithmetic is f32; its result is rounded where it would be stored, not where one op alone reads
      it.
    - No value is converted twice to one type, and none back and forth without loss.
    - What the function returns keeps its type; with `compute` "f32" nothing changes.

    ```
    %h = ds.matmul %x, %w transpose_rhs : tensor<4x8xf32>, tensor<6x8xf32> -> tensor<4x6xf32>
    %e = ds.exp %h : tensor<4x6xf32>
    ```
    becomes, for bf16,
    ```
    %xl = ds.convert %x : tensor<4x8xf32> -> tensor<4x8xbf16>
    %h = ds.matmul %xl, %w transpose_rhs : tensor<4x8xbf16>, tensor<6x8xbf16> -> tensor<4x6xbf16>
    %hs = ds.convert %h : tensor<4x6xbf16> -> tensor<4x6xf32>
    %e = ds.exp %hs : tensor<4x6xf32>
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def Differentiate : Pass<"ds-differentiate", "::mlir::ModuleOp"> {
  let summary = "Appends to the forward the gradients of its loss by all trainable parameters";
  let description = [{
    A reverse sweep over `@forward`: each op that influences the loss and is influenced by a trainable parameter is
    asked, last op first, how its results' gradients pass to its operands.

    Requires: phase model; the first result of `@forward` is the loss, a rank-0 float.

    Ensures:
    - `@forward` returns, after its own results, one gradient per trainable parameter that influences the loss, in
      argument order, marked `ds.state = #ds.gradient<@parameter>`, of the parameter's type.
    - The seed is 1 / (`gradient_accumulation_steps` of `ds.training` * ranks along `samples` of `ds.mesh`), with 1 for
      what is not said and for the ranks where `reduce_op` is "sum": the only place where means over micro-batches and
      ranks are made, so that gradients of the micro-steps of one step on all ranks add up to the
      gradient of their mean, times the scale of the loss where `loss_scale.scale` is set: a number, or with
      `loss_scale.dynamic` the state `@loss_scale`, which is declared.
    - A parameter that does not influence the loss has no gradient, as in PyTorch, where its `.grad` is None: it is
      not updated, and weight decay does not reach it. With `remarks`, each is named.
    - Frozen parameters, inputs, and what depends only on them are not differentiated, and no op is emitted whose
      result would be a gradient that nothing reads.
    - Gradients of a value that is used several times are added in the order of the sweep: last use first. They are
      added in the value's type, but in f32, rounded once, by a 16-bit weight or bias that several products read.
    - Each op says its work, forward or backward, and the layer that its location names: a gradient that of the op whose it is.

    ```
    func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}, %w: tensor<8xf32> {ds.state = @w}) -> tensor<f32> {
      %b = ds.broadcast %w dims [1] : tensor<8xf32> -> tensor<4x8xf32>
      %y = ds.mul %x, %b : tensor<4x8xf32>
      %l = ds.reduce sum %y dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
      return %l : tensor<f32>
    }
    ```
    becomes
    ```
    func.func @forward(%x: ..., %w: ...) -> (tensor<f32>, tensor<8xf32> {ds.state = #ds.gradient<@w>}) {
      ...
      %one = ds.constant dense<1.0> : tensor<f32>
      %g = ds.broadcast %one dims [] : tensor<f32> -> tensor<4x8xf32>
      %gb = ds.mul %g, %x : tensor<4x8xf32>
      %gw = ds.reduce sum %gb dims [0] : tensor<4x8xf32> -> tensor<8xf32>
      return %l, %gw : tensor<f32>, tensor<8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
  let options = [Option<"remarks", "remarks", "bool", "false", "Name each parameter that gets no gradient">];
}

def SinkLoss : Pass<"ds-sink-loss", "::mlir::func::FuncOp"> {
  let summary = "Moves logits and losses down to where their gradients are made";
  let description = [{
    Requires: `ds-differentiate` has run.

    Ensures:
    - A `ds.cross_entropy`, the product and the conversions that only it and its gradient read as logits, and the
      rank-0 values that are computed from losses, stand before the first op that reads them. Of a loss in chunks, one
      chunk's logits live at a time, unless the gradient that the loss is given depends on the loss.
    - Values stay the same; so does the order of all other ops.

    ```
    %x0 = ds.matmul %h#0, %w : ...
    %l0, %s0, %c0 = ds.cross_entropy %x0, %t#0 over(%n) ... : ...
    %x1 = ds.matmul %h#1, %w : ...
    %l1, %s1, %c1 = ds.cross_entropy %x1, %t#1 over(%n) ... : ...
    %d1 = ds.cross_entropy_grad %x1, ... : ...
    %d0 = ds.cross_entropy_grad %x0, ... : ...
    ```
    becomes
    ```
    %x1 = ds.matmul %h#1, %w : ...
    %l1, %s1, %c1 = ds.cross_entropy %x1, %t#1 over(%n) ... : ...
    %d1 = ds.cross_entropy_grad %x1, ... : ...
    %x0 = ds.matmul %h#0, %w : ...
    %l0, %s0, %c0 = ds.cross_entropy %x0, %t#0 over(%n) ... : ...
    %d0 = ds.cross_entropy_grad %x0, ... : ...
    ```
  }];
}

#endif // DS_MODEL_PASSES
