//! Elementwise arithmetic.

macro_rules! elementwise_section {
    ([$($rest:ident)*] { $($done:tt)* }) => {
        next_section! { [$($rest)*] { $($done)*

            /// Computes `dst = func(src * scale + bias)` in f32. With a second out-operand the row sums of
            /// the results (before conversion to the dtype of `dst`) go through the engine's accumulator:
            /// `reset` starts it, `accumulate` adds to it, `idle` leaves it.
            ///
            /// ```bir
            /// activation exp %e, reduce add reset %s <- %t, scale 1.0, bias %m
            /// ```
            Activation = "activation": "a function of every element" {
                operands {
                    dst = out(CHIP, NUMERIC).doc("results");
                    reduce_res = out(CHIP, NUMERIC).opt().key("reduce").key_words(&["reduce", "reduce_cmd"]).doc("row sums, one per partition");
                    src = input(CHIP, NUMERIC).doc("arguments");
                    scale = imm(ImmType::F32, CHIP, F32).opt().key("scale").doc("factor: a number or one f32 per partition");
                    bias = imm(ImmType::F32, CHIP, NUMERIC).opt().key("bias").doc("addend: a number or one element per partition");
                }
                attrs {
                    func = required(Enum(&ACTIVATION_FUNCS)).doc("the function");
                    reduce = optional(Enum(&ALU_OPS)).doc("how results are combined; `add`");
                    reduce_cmd = optional(Enum(&REDUCE_CMDS)).doc("what happens to the accumulator");
                    alpha = optional(AttrType::Number(DType::F32)).default("0.01").doc("slope of `prelu` below zero");
                }
                rules .words(&["func"]).engines(&[Act])
                    .traits_of(&[Trait::HiddenState, Trait::Elementwise]).same_shape(&["dst", "src"])
                    .per_partition(&["reduce_res", "scale", "bias"]).check(checks::activation)
            }

            /// `activation` with a reset and a read-out of the accumulator: the row sums of the results are
            /// written too. The older way to write `activation …, reduce add reset`.
            ///
            /// ```bir
            /// activation_reduce exp %e, %s <- %t, scale 1.0, bias %m
            /// ```
            ActivationReduce = "activation_reduce": "a function of every element, and row sums" {
                operands {
                    dst = out(CHIP, NUMERIC).doc("results");
                    reduce_res = out(CHIP, NUMERIC).doc("row sums, one per partition");
                    src = input(CHIP, NUMERIC).doc("arguments");
                    scale = imm(ImmType::F32, CHIP, F32).opt().key("scale").doc("factor: a number or one f32 per partition");
                    bias = imm(ImmType::F32, CHIP, NUMERIC).opt().key("bias").doc("addend: a number or one element per partition");
                }
                attrs {
                    func = required(Enum(&ACTIVATION_FUNCS)).doc("the function");
                    alpha = optional(AttrType::Number(DType::F32)).default("0.01").doc("slope of `prelu` below zero");
                }
                rules .words(&["func"]).engines(&[Act])
                    .traits_of(&[Trait::HiddenState, Trait::Elementwise]).same_shape(&["dst", "src"])
                    .per_partition(&["reduce_res", "scale", "bias"]).check(checks::activation)
            }

            /// Computes `dst = func(op1(op0(src, operand0), operand1))` in f32, either step possibly
            /// `bypass`. The results may be reduced along rows, by more operations than `activation` has.
            ///
            /// ```bir
            /// activate2 exp multiply add %e, reduce max reset %m <- %t, %scale, 1.0
            /// ```
            Activate2 = "activate2": "two scalar steps and a function" {
                operands {
                    dst = out(CHIP, NUMERIC).doc("results");
                    reduce_res = out(CHIP, NUMERIC).opt().key("reduce").key_words(&["reduce", "reduce_cmd"]).doc("reduced rows, one value per partition");
                    src = input(CHIP, NUMERIC).doc("arguments");
                    operand0 = imm(ImmType::F32, CHIP, NUMERIC).opt().doc("scalar of the first step");
                    operand1 = imm(ImmType::F32, CHIP, NUMERIC).opt().doc("scalar of the second step");
                }
                attrs {
                    func = required(Enum(&ACTIVATION_FUNCS)).doc("the function");
                    op0 = required(Enum(&STAGE_OPS)).doc("first step: `multiply`, `add`, `subtract` or `bypass`");
                    op1 = required(Enum(&STAGE_OPS)).doc("second step, after `multiply`: `add`, `subtract` or `bypass`");
                    reverse0 = optional(Flag).doc("first step is op0(operand0, src)");
                    reverse1 = optional(Flag).doc("second step is op1(operand1, first)");
                    reduce = optional(Enum(&ALU_OPS)).doc("`add`, `max`, `min`, `abs_max` or `abs_min`");
                    reduce_cmd = optional(Enum(&REDUCE_CMDS)).doc("what happens to the accumulator");
                    alpha = optional(AttrType::Number(DType::F32)).default("0.01").doc("slope of `prelu` below zero");
                }
                rules .words(&["func", "op0", "op1"]).engines_by_target(&[], &[], &[Act])
                    .traits_of(&[Trait::HiddenState, Trait::Elementwise]).same_shape(&["dst", "src"])
                    .per_partition(&["reduce_res", "operand0", "operand1"]).check(checks::activate2)
            }

            /// Writes the activation engine's accumulator, one value per partition.
            ///
            /// ```bir
            /// read_activation_accumulator %s
            /// ```
            ReadActivationAccumulator = "read_activation_accumulator": "read the activation accumulator" {
                operands {
                    dst = out(CHIP, NUMERIC).doc("one value per partition");
                }
                rules .engines(&[Act]).traits_of(&[Trait::HiddenState])
                    .per_partition(&["dst"])
            }

            /// Combines two tiles element by element: in f32 for arithmetic, on raw bits for the bit
            /// operations, exactly for all-int32 operands on the pool engine.
            ///
            /// ```bir
            /// tensor_tensor add %d <- %a, %b
            /// ```
            TensorTensor = "tensor_tensor": "combine two tiles" {
                operands {
                    dst = out(CHIP, NUMERIC).doc("results");
                    lhs = input(CHIP, NUMERIC).doc("left values");
                    rhs = input(CHIP, NUMERIC).doc("right values");
                }
                attrs {
                    op = required(Enum(&ALU_OPS)).doc("the operation");
                accumulate = optional(Flag).doc("the results are added, row by row, to the vector engine's accumulator too");
                }
                rules .words(&["op"]).engines(&[Dve, Pool])
                    .traits_of(&[Trait::Commutative, Trait::Elementwise, Trait::HiddenState])
                    .same_shape(&["dst", "lhs", "rhs"]).check(checks::tensor_tensor)
            }

            /// Computes `dst = op1(op0(src, operand0), operand1)`; the second step may be absent. Scalars
            /// are numbers or one f32 per partition; `reverse0` and `reverse1` swap a step's arguments.
            ///
            /// ```bir
            /// tensor_scalar multiply add %d <- %x, %s, 2.0
            /// ```
            TensorScalar = "tensor_scalar": "combine a tile with scalars" {
                operands {
                    dst = out(CHIP, NUMERIC).doc("results");
                    src = input(CHIP, NUMERIC).doc("values");
                    operand0 = imm(ImmType::Alu, CHIP, NUMERIC).opt().doc("scalar of the first step");
                    operand1 = imm(ImmType::Alu, CHIP, NUMERIC).opt().doc("scalar of the second step");
                }
                attrs {
                    op0 = required(Enum(&ALU_OPS)).doc("first operation");
                    op1 = optional(Enum(&ALU_OPS)).doc("second operation");
                    reverse0 = optional(Flag).doc("first step is op0(operand0, src)");
                    reverse1 = optional(Flag).doc("second step is op1(operand1, first)");
                }
                rules .words(&["op0", "op1"]).engines_by_target(&[Dve, Pool], &[Dve, Act, Pool], &[Dve, Act, Pool])
                    .traits_of(&[Trait::Elementwise]).same_shape(&["dst", "src"])
                    .per_partition(&["operand0", "operand1"]).check(checks::tensor_scalar)
            }

            /// `tensor_scalar` whose scalars are tiles, one f32 per partition. With `offset`, the scalars are
            /// read that many elements further on in each partition.
            ///
            /// ```bir
            /// tensor_scalar_ptr multiply add %d <- %x, %scale, %shift
            /// ```
            TensorScalarPtr = "tensor_scalar_ptr": "combine a tile with scalars in tiles" {
                operands {
                    dst = out(CHIP, NUMERIC).doc("results");
                    src = input(CHIP, NUMERIC).doc("values");
                    operand0 = input(CHIP, NUMERIC).doc("scalar of the first step, one per partition");
                    operand1 = input(CHIP, NUMERIC).opt().doc("scalar of the second step, one per partition");
                    offset = reg().opt().key("offset").doc("elements added to the offset of the scalars");
                }
                attrs {
                    op0 = required(Enum(&ALU_OPS)).doc("first operation");
                    op1 = optional(Enum(&ALU_OPS)).doc("second operation");
                    reverse0 = optional(Flag).doc("first step is op0(operand0, src)");
                    reverse1 = optional(Flag).doc("second step is op1(operand1, first)");
                }
                rules .words(&["op0", "op1"]).engines_by_target(&[Dve], &[Dve, Act], &[Dve, Act])
                    .traits_of(&[Trait::Elementwise, Trait::HiddenState, Trait::Dynamic]).same_shape(&["dst", "src"])
                    .per_partition(&["operand0", "operand1"]).check(checks::tensor_scalar)
            }

            /// `tensor_scalar` with the vector engine's scalar cache: `cache_write` keeps the scalars there,
            /// `cache_read` takes them from there, and then none are given.
            ///
            /// ```bir
            /// tensor_scalar_cache multiply add %d <- %x, %scale, %shift {cache_write}
            /// ```
            TensorScalarCache = "tensor_scalar_cache": "combine a tile with cached scalars" {
                operands {
                    dst = out(CHIP, NUMERIC).doc("results");
                    src = input(CHIP, NUMERIC).doc("values");
                    operand0 = imm(ImmType::F32, CHIP, F32).opt().doc("scalar of the first step");
                    operand1 = imm(ImmType::F32, CHIP, F32).opt().doc("scalar of the second step");
                }
                attrs {
                    op0 = required(Enum(&ALU_OPS)).doc("first operation");
                    op1 = optional(Enum(&ALU_OPS)).doc("second operation");
                    reverse0 = optional(Flag).doc("first step is op0(operand0, src)");
                    reverse1 = optional(Flag).doc("second step is op1(operand1, first)");
                    cache_write = optional(Flag).doc("keeps the scalars in the cache");
                    cache_read = optional(Flag).doc("takes the scalars from the cache");
                }
                rules .words(&["op0", "op1"]).engines(&[Dve])
                    .traits_of(&[Trait::Elementwise, Trait::HiddenState]).same_shape(&["dst", "src"])
                    .per_partition(&["operand0", "operand1"]).check(checks::tensor_scalar_cache)
            }

            /// `tensor_scalar` on 32-bit integers without f32 in between: exact, wrapping.
            ///
            /// ```bir
            /// tensor_scalar_addr multiply add %d <- %i, 512, 64
            /// ```
            TensorScalarAddr = "tensor_scalar_addr": "exact integer arithmetic with scalars" {
                operands {
                    dst = out(CHIP, DTypeSet::of(&[DType::I32, DType::U32])).doc("results");
                    src = input(CHIP, DTypeSet::of(&[DType::I32, DType::U32])).doc("values");
                    operand0 = imm(ImmType::Dst, CHIP, DTypeSet::of(&[DType::I32, DType::U32])).doc("scalar of the first step");
                    operand1 = imm(ImmType::Dst, CHIP, DTypeSet::of(&[DType::I32, DType::U32])).opt().doc("scalar of the second step");
                }
                attrs {
                    op0 = required(Enum(&ALU_OPS)).doc("first operation: `add`, `subtract` or `multiply`");
                    op1 = optional(Enum(&ALU_OPS)).doc("second operation: `add`, `subtract` or `multiply`");
                }
                rules .words(&["op0", "op1"]).engines(&[Dve]).traits_of(&[Trait::Elementwise])
                    .same_shape(&["dst", "src"]).same_dtype(&["dst", "src", "operand0", "operand1"])
                    .per_partition(&["operand0", "operand1"]).check(checks::tensor_scalar_addr)
            }

            /// Computes `dst = op1(op0(src, scalar), other)` with a full second tile.
            ///
            /// ```bir
            /// scalar_tensor_tensor multiply add %d <- %x, %c, %y
            /// ```
            ScalarTensorTensor = "scalar_tensor_tensor": "combine two tiles and a scalar" {
                operands {
                    dst = out(CHIP, NUMERIC).doc("results");
                    src = input(CHIP, NUMERIC).doc("values of the first step");
                    scalar = imm(ImmType::F32, CHIP, F32).doc("a number or one f32 per partition");
                    other = input(CHIP, NUMERIC).doc("values of the second step");
                }
                attrs {
                    op0 = required(Enum(&ALU_OPS)).doc("first operation");
                    op1 = required(Enum(&ALU_OPS)).doc("second operation");
                    reverse0 = optional(Flag).doc("first step is op0(scalar, src)");
                    reverse1 = optional(Flag).doc("second step is op1(other, first)");
                }
                rules .words(&["op0", "op1"]).engines(&[Dve]).traits_of(&[Trait::Elementwise])
                    .same_shape(&["dst", "src", "other"]).per_partition(&["scalar"]).check(checks::scalar_tensor_tensor)
            }

            /// Computes `1 / src` in f32.
            ///
            /// ```bir
            /// reciprocal %r <- %s
            /// ```
            Reciprocal = "reciprocal": "one over every element" {
                operands {
                    dst = out(CHIP, NUMERIC).doc("results");
                    src = input(CHIP, NUMERIC).doc("values");
                }
                rules .engines(&[Dve]).traits_of(&[Trait::Elementwise]).same_shape(&["dst", "src"])
            }

            /// Computes `dst = e^(src - max)`, four elements a cycle. Row sums of the results, before
            /// conversion to the dtype of `dst`, may go through the vector engine's accumulator.
            ///
            /// ```bir
            /// exponential %e, reduce reset %s <- %t, max %m
            /// ```
            Exponential = "exponential": "e to the power of every element" {
                operands {
                    dst = out(CHIP, FLOATS.or(SMALL_INTS)).doc("results");
                    reduce_res = out(CHIP, FLOATS).opt().key("reduce").key_words(&["reduce_cmd"]).doc("row sums, one per partition");
                    src = input(CHIP, FLOATS.or(INTS)).doc("exponents");
                    max = imm(ImmType::F32, CHIP, F32).opt().key("max").doc("subtracted first: a number or one f32 per partition; 0 where absent");
                    init = imm(ImmType::F32, CHIP, F32).opt().key("init").doc("what the accumulator is loaded with by `load`");
                }
                attrs {
                    reduce_cmd = optional(Enum(&REDUCE_CMDS)).default("idle").doc("what happens to the accumulator");
                }
                rules .engines_by_target(&[], &[], &[Dve]).traits_of(&[Trait::HiddenState, Trait::Elementwise])
                    .same_shape(&["dst", "src"]).per_partition(&["reduce_res", "max", "init"]).check(checks::exponential)
            }

            /// Replaces elements by 0 with a probability: element by element, a random number in [0, 1)
            /// below `prob` drops it. Kept elements are not rescaled.
            ///
            /// ```bir
            /// dropout %d <- %t, 0.1
            /// ```
            Dropout = "dropout": "zero elements at random" {
                operands {
                    dst = out(CHIP, NUMERIC).doc("results");
                    src = input(CHIP, NUMERIC).doc("values");
                    prob = imm(ImmType::F32, CHIP, FLOATS).doc("probability of 0: a number or one float per partition");
                }
                rules .engines(&[Dve]).traits_of(&[Trait::HiddenState, Trait::Elementwise]).same_shape(&["dst", "src"])
                    .same_dtype(&["dst", "src"]).per_partition(&["prob"]).check(checks::dropout)
            }
        } }
    };
}
