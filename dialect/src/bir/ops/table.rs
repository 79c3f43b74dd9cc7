//! The table.
//!
//! An entry reads: doc comment (the manual page, with an example), `Variant = "mnemonic":
//! "summary"`, operand roles in segment order, attributes, then rules. To add an op, add an entry
//! here, its semantics in the simulator, and its lit tests under `test/dialect/`.

use super::super::num::DType;
use super::super::space::Engine::{Act, Dma, Dve, Pe, Pool, Sp};
use super::super::verify::checks;
use super::def::*;
use super::enums::*;
use crate::ir::{Ir, Op};

use AttrType::{Accumulate, Enum, Flag, Int, Pattern, Str, Symbol};

macro_rules! op_table {
    ($(
        $(#[doc = $doc:literal])*
        $variant:ident = $name:literal : $summary:literal {
            $(operands { $($role:ident = $operand:expr;)* })?
            $(attrs { $($attr:ident = $attr_def:expr;)* })?
            $(rules $(. $rule:ident ( $($arg:expr),* $(,)? ))*)?
        }
    )*) => {
        /// Every op of the dialect; the number is also its name handle in a BIR context.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u16)]
        #[allow(missing_docs)]
        pub enum OpCode { $($variant),* }

        impl OpCode {
            /// All ops, in table order.
            pub const ALL: &'static [OpCode] = &[$(OpCode::$variant),*];
        }

        /// The op table, indexed by [`OpCode`].
        pub static OPS: &[OpDef] = &[$({
            const OPERANDS: &[OperandDef] = &[$($($operand.named(stringify!($role)),)*)?];
            const ATTRS: &[AttrDef] = &[$($($attr_def.named(stringify!($attr)),)*)?];
            OpDef::new($name, $summary, concat!($($doc, "\n",)*), OPERANDS, ATTRS)
                $($(.$rule($($arg),*))*)?
        }),*];

        /// Typed views of operations: operands by role name.
        #[allow(missing_docs)]
        pub mod views {
            use super::*;
            use super::super::super::view::{OpView, RoleView};

            $(
                #[doc = $summary]
                #[derive(Clone, Copy, PartialEq, Eq, Debug)]
                pub struct $variant(pub Op);

                impl $variant {
                    /// The view, if `op` is one.
                    pub fn cast(ir: &Ir, op: Op) -> Option<$variant> {
                        (OpCode::of(ir, op) == Some(OpCode::$variant)).then_some($variant(op))
                    }

                    $($(
                        /// What stands in this role.
                        pub fn $role(self, ir: &Ir) -> RoleView {
                            const ROLE: usize = match OPS[OpCode::$variant as usize].role(stringify!($role)) {
                                Some(role) => role,
                                None => 0,
                            };
                            OpView::new(ir, self.0).role_at(ROLE)
                        }
                    )*)?
                }
            )*
        }
    };
}

impl OpCode {
    /// The op's table entry.
    #[inline]
    pub fn def(self) -> &'static OpDef {
        &OPS[self as usize]
    }

    /// The op of an operation; `None` for ops of other dialects.
    #[inline]
    pub fn of(ir: &Ir, op: Op) -> Option<OpCode> {
        ir.code(op)
            .and_then(|code| OpCode::ALL.get(code as usize).copied())
    }

    /// The op of that mnemonic.
    pub fn from_name(name: &str) -> Option<OpCode> {
        OpCode::ALL.iter().copied().find(|op| op.def().name == name)
    }
}

const U32_MAX: i64 = u32::MAX as i64 - 1;

/// Attributes every instruction may carry.
pub static COMMON_ATTRS: &[AttrDef] = &[
    optional(Enum(&ENGINES))
        .named("engine")
        .default("by op and generation")
        .doc("engine that executes it"),
    optional(Int { min: 0, max: U32_MAX })
        .named("id")
        .doc("number other instructions' `deps` refer to, unique in the function"),
    optional(AttrType::IntList { min: i64::MIN, max: i64::MAX })
        .named("order")
        .doc("modulo-schedule coordinate: affine expressions in enclosing loop indices"),
    optional(Str)
        .named("deps")
        .doc("instructions it must follow: `[flow 3, anti 5, output 6, ordered 7]`"),
    optional(AttrType::Waits)
        .named("wait")
        .doc("semaphores it waits for before it starts: `[4 >= 36]`"),
    optional(AttrType::Signals)
        .named("signal")
        .doc("semaphores it changes: `[6 += 1 @complete]`"),
];

op_table! {
    /// One logical core's program: a target and its functions. A file with several modules is one
    /// program; locations of equal name that are `space = shared` are one buffer.
    ///
    /// ```bir
    /// bir.module @softmax {target = "trn2"} {
    /// }
    /// ```
    Module = "module": "the program of one core" {
        attrs {
            target = optional(Enum(&TARGETS)).default("trn2").doc("hardware generation");
            core = optional(Int { min: 0, max: 63 }).doc("logical core the module runs on");
            tensor_map = optional(Str).doc("JSON list of the locations outside tools know by name");
        }
        rules .syntax(Syntax::Module)
    }

    /// A function: locations first, then instructions in blocks. A block without a branch at its
    /// end leaves the function.
    ///
    /// ```bir
    /// bir.func @main {
    /// }
    /// ```
    Func = "func": "a function" {
        attrs {
            sb_allocated = optional(Flag).doc("SBUF locations have been placed");
            no_dce = optional(Flag).doc("clean-up passes leave the function alone");
        }
        rules .syntax(Syntax::Func)
    }

    /// A memory location. Dimension 0 of `sbuf` and `psum` is the partition dimension. Locations
    /// stand before the instructions of their function and name storage, not a value: instructions
    /// write them through their out-operands.
    ///
    /// ```bir
    /// %x = alloc dram<128x512xf32> {kind = input}
    /// %t = alloc sbuf<64x512xbf16> at [64, 0x1200]
    /// %p = alloc psum<128x512xf32> at [0, bank 3]
    /// %w = alloc dram<1x2xbf16> {kind = const, value = dense<"0x803F0040">}
    /// ```
    Alloc = "alloc": "a memory location" {
        attrs {
            kind = optional(Enum(&LOCATION_KINDS)).default("internal").doc("what it is to the outside");
            space = optional(Enum(&ADDRESSINGS)).default("local").doc("whether other cores address it too");
            at = optional(AttrType::Placement).doc("partition and byte address, PSUM bank, or DRAM address");
            user_allocated = optional(Flag).doc("the kernel's author chose the placement");
            pinned = optional(Flag).doc("never spilled");
            const_sub_tensor = optional(Int { min: 0, max: U32_MAX }).doc("part of constant number N, of which the whole is not here");
            must_alias = optional(Symbol).doc("location that shares its bytes");
            remote_target = optional(Str).doc("where its bytes live on another core");
            written_by_core = optional(Int { min: 0, max: 63 }).doc("another core that writes it");
            boundary = optional(Flag).doc("crosses a module boundary of a modular program");
            value = optional(AttrType::Data).doc("elements of a constant");
        }
        rules .syntax(Syntax::Alloc).check(checks::alloc)
    }

    /// Counts `%i` from `from` to `to`, excluded, by `step`. Bounds are integers or registers
    /// (`!bir.reg<i32>`); the index is only visible in the body.
    ///
    /// ```bir
    /// loop %i = 0 to 16 step 4 {no_reorder} {
    ///   load %t <- %x[128*%i +: 128, 0:512]
    /// }
    /// ```
    Loop = "loop": "a counted loop" {
        operands {
            lower = reg_imm().doc("first value of the index");
            upper = reg_imm().doc("end of the index, excluded");
        }
        attrs {
            step = optional(Int { min: 1, max: i64::MAX }).default("1").doc("increment");
            no_reorder = optional(Flag).doc("instructions in it keep their order");
        }
        rules .syntax(Syntax::Loop).traits_of(&[Trait::Control]).check(checks::loop_)
    }

    /// Repeats its body as long as a register is not zero, tested before each trip.
    ///
    /// ```bir
    /// while %r {
    ///   register_load %r <- %flag[0:1, 0:1]
    /// }
    /// ```
    While = "while": "a loop on a register" {
        operands {
            cond = reg().doc("register tested before each trip");
        }
        attrs {
            no_reorder = optional(Flag).doc("instructions in it keep their order");
        }
        rules .syntax(Syntax::While).traits_of(&[Trait::Control])
    }

    /// Continues at a block of the same region. The entry block is no target.
    ///
    /// ```bir
    /// br ^done
    /// ```
    Br = "br": "a branch" {
        rules .syntax(Syntax::Br).traits_of(&[Trait::Control, Trait::Terminator])
    }

    /// Continues at the first block if the register is not zero, else at the second.
    ///
    /// ```bir
    /// cond_br %r, ^then, ^done
    /// ```
    CondBr = "cond_br": "a conditional branch" {
        operands {
            cond = reg().doc("register tested");
        }
        rules .syntax(Syntax::CondBr).traits_of(&[Trait::Control, Trait::Terminator])
    }

    /// Leaves the function. The custom form does not write it.
    Return = "return": "the end of a function" {
        rules .syntax(Syntax::Implicit).traits_of(&[Trait::Control, Trait::Terminator])
    }

    /// Ends a block of a loop body. The custom form does not write it.
    Yield = "yield": "the end of a loop body" {
        rules .syntax(Syntax::Implicit).traits_of(&[Trait::Control, Trait::Terminator])
    }

    /// Fills a tile with one number, which is written as a number of the tile's dtype: an integer
    /// for integer tiles, with a point or exponent for floats.
    ///
    /// ```bir
    /// memset %acc <- 0.0
    /// ```
    Memset = "memset": "fill with a constant" {
        operands {
            dst = out(CHIP, ANY).doc("tile filled");
            value = literal(ImmType::Dst).doc("the number, stored in the dtype of `dst`");
        }
        rules .engines(&[Dve, Pool]).check(checks::memset)
    }

    /// Fills a tile with `offset + p * channel_multiplier + Σ step_k * i_k`, computed in wrapping
    /// int32 and converted to the tile's dtype; `p` counts the tile's partitions from 0.
    ///
    /// ```bir
    /// iota %t {offset = 5, channel_multiplier = 2, pattern = [[1, 512]]}
    /// ```
    Iota = "iota": "fill with an affine ramp" {
        operands {
            dst = out(SBUF, NUMERIC).doc("tile filled");
        }
        attrs {
            pattern = required(Pattern).doc("`[step, count]` per free dimension, outermost first; the counts multiply to the tile's elements per partition");
            offset = optional(Int { min: i32::MIN as i64, max: i32::MAX as i64 }).default("0").doc("first value");
            channel_multiplier = optional(Int { min: i32::MIN as i64, max: i32::MAX as i64 }).default("0").doc("increment per partition");
        }
        rules .engines(&[Pool]).check(checks::ramp)
    }

    /// Copies from DRAM to SBUF by DMA, converting by way of f32 where dtypes differ.
    ///
    /// ```bir
    /// load %t <- %x[128*%i +: 128, 0:512]
    /// ```
    Load = "load": "DMA from DRAM to SBUF" {
        operands {
            dst = out(SBUF, ANY).doc("tile written");
            src = input(DRAM, ANY).doc("tensor read; as many elements as `dst`");
        }
        rules .engines(&[Dma]).traits_of(&[Trait::Dma]).check(checks::dma)
    }

    /// Copies from SBUF to DRAM by DMA, converting by way of f32 where dtypes differ.
    ///
    /// ```bir
    /// save %y[128*%i +: 128, 0:512] <- %t
    /// ```
    Save = "save": "DMA from SBUF to DRAM" {
        operands {
            dst = out(DRAM, ANY).doc("tensor written");
            src = input(SBUF, ANY).doc("tile read; as many elements as `dst`");
        }
        rules .engines(&[Dma]).traits_of(&[Trait::Dma]).check(checks::dma)
    }

    /// Copies between any two of DRAM and SBUF by DMA, converting by way of f32 where dtypes differ.
    ///
    /// ```bir
    /// dma_copy %y <- %x
    /// ```
    DmaCopy = "dma_copy": "DMA between DRAM and SBUF" {
        operands {
            dst = out(DMA_SPACES, ANY).doc("memory written");
            src = input(DMA_SPACES, ANY).doc("memory read; as many elements as `dst`");
        }
        rules .engines(&[Dma]).traits_of(&[Trait::Dma]).check(checks::dma)
    }

    /// Copies a tile, element by element in traversal order; equal dtypes copy bits.
    ///
    /// ```bir
    /// tensor_copy %c <- %p
    /// ```
    TensorCopy = "tensor_copy": "copy a tile" {
        operands {
            dst = out(CHIP, ANY).doc("tile written");
            src = input(CHIP, ANY).doc("tile read; equal partitions and elements");
        }
        rules .engines_by_target(&[Dve, Pool], &[Dve, Act, Pool], &[Dve, Act, Pool])
            .traits_of(&[Trait::Elementwise]).same_shape(&["dst", "src"])
    }

    /// Copies a tile whose two sides are walked differently (permuted or broadcast dimensions).
    ///
    /// ```bir
    /// generic_copy %c <- %t[p 0:128, off 0, 1 x 8, 8 x 64]
    /// ```
    GenericCopy = "generic_copy": "copy with a change of layout" {
        operands {
            dst = out(CHIP, ANY).doc("tile written");
            src = input(CHIP, ANY).doc("tile read; equal partitions and elements");
        }
        rules .engines_by_target(&[Dve, Pool], &[Dve, Act, Pool], &[Dve, Act, Pool])
            .traits_of(&[Trait::Elementwise]).same_shape(&["dst", "src"])
    }

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
        }
        rules .words(&["op"]).engines(&[Dve, Pool])
            .traits_of(&[Trait::Commutative, Trait::Elementwise])
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

    /// Reduces trailing dimensions of a tile. `axes` count the dimensions of the operand's access,
    /// 0 being the partition, and end at the last one; the partition is never reduced.
    ///
    /// ```bir
    /// tensor_reduce max %m <- %t {axes = [1], negate}
    /// ```
    TensorReduce = "tensor_reduce": "reduce trailing dimensions" {
        operands {
            dst = out(CHIP, NUMERIC).doc("one result per remaining element");
            src = input(CHIP, NUMERIC).doc("values");
        }
        attrs {
            op = required(Enum(&ALU_OPS)).doc("how values are combined");
            axes = required(AttrType::IntList { min: 0, max: 31 }).doc("dimensions reduced");
            negate = optional(Flag).doc("results are multiplied by -1");
        }
        rules .words(&["op"]).engines(&[Dve]).check(checks::tensor_reduce)
    }

    /// Chooses per element: `on_true` where `pred` is not zero, else `on_false`.
    ///
    /// ```bir
    /// select %d <- %mask, %x, 0.0
    /// ```
    Select = "select": "choose by a mask" {
        operands {
            dst = out(CHIP, NUMERIC).doc("results");
            pred = input(CHIP, INTS).doc("mask, tested for not zero");
            on_true = imm(ImmType::F32, CHIP, NUMERIC).doc("chosen where the mask is set");
            on_false = imm(ImmType::F32, CHIP, NUMERIC).doc("chosen elsewhere: a number, a tile, or one f32 per partition");
        }
        attrs {
            reverse = optional(Flag).doc("the mask is inverted");
        }
        rules .engines(&[Dve]).traits_of(&[Trait::Elementwise])
            .same_shape(&["dst", "pred"]).check(checks::select)
    }

    /// Keeps an element where `op(offset + p * channel_multiplier + Σ step_k * i_k, 0)` holds, and
    /// writes a number elsewhere; the left side is computed in int32.
    ///
    /// ```bir
    /// affine_select greater_equal %d <- %x, -3.0e38 {channel_multiplier = 1, pattern = [[-1, 512]]}
    /// ```
    AffineSelect = "affine_select": "choose by an affine comparison" {
        operands {
            dst = out(SBUF, NUMERIC).doc("results");
            src = input(SBUF, NUMERIC).doc("values kept where the comparison holds");
            on_false = literal(ImmType::F32).doc("number written elsewhere");
        }
        attrs {
            op = required(Enum(&COMPARE_OPS)).doc("comparison with 0");
            pattern = required(Pattern).doc("`[step, count]` per free dimension, outermost first");
            offset = optional(Int { min: i32::MIN as i64, max: i32::MAX as i64 }).default("0").doc("value at the first element");
            channel_multiplier = optional(Int { min: i32::MIN as i64, max: i32::MAX as i64 }).default("0").doc("increment per partition");
        }
        rules .words(&["op"]).engines(&[Pool]).traits_of(&[Trait::Elementwise])
            .same_shape(&["dst", "src"]).check(checks::ramp)
    }

    /// Overwrites the elements whose predicate is not zero and leaves the others.
    ///
    /// ```bir
    /// copy_predicated %d <- %mask, %src
    /// ```
    CopyPredicated = "copy_predicated": "copy under a mask" {
        operands {
            dst = inout(CHIP, NUMERIC).doc("tile updated");
            pred = input(CHIP, DTypeSet::of(&[DType::U8, DType::U16, DType::U32, DType::Bool])).doc("mask, tested for not zero");
            src = imm(ImmType::Dst, CHIP, NUMERIC).doc("values copied, of the dtype of `dst`");
        }
        attrs {
            reverse = optional(Flag).doc("the mask is inverted");
        }
        rules .engines(&[Dve]).same_shape(&["dst", "pred", "src"]).same_dtype(&["dst", "src"])
            .check(checks::copy_predicated)
    }

    /// Multiplies on the tensor engine: `dst[m, n] = Σ_k stationary[k, m] * moving[k, n]`, with `k`
    /// on the partitions of both inputs. `accumulate` adds to what `dst` holds instead of replacing
    /// it; `unless_first(%k)` replaces in the first iteration of loop `%k` and adds in the others.
    ///
    /// ```bir
    /// matmult %p <- stationary %a, moving %b {accumulate = unless_first(%k)}
    /// ```
    Matmult = "matmult": "matrix multiply into PSUM" {
        operands {
            dst = out(PSUM, DTypeSet::of(&[DType::F32, DType::Bf16, DType::F16])).doc("M partitions, N elements each");
            stationary = input(SBUF, FLOATS).key("stationary").doc("K partitions, M elements each");
            moving = input(SBUF, FLOATS).key("moving").doc("K partitions, N elements each");
        }
        attrs {
            accumulate = optional(Accumulate).doc("adds to what `dst` holds");
            is_transpose = optional(Flag).doc("moves data bit by bit; `moving` is an identity matrix");
        }
        rules .engines(&[Pe]).check(checks::matmult)
    }

    /// Transposes a tile: `dst[f, p] = src[p, f]` over its flattened free dimensions. The tensor
    /// engine writes PSUM (up to 128 x 128), the vector engine any scratchpad (up to 32 x 32).
    ///
    /// ```bir
    /// transpose %p <- %t
    /// ```
    Transpose = "transpose": "swap partitions and elements" {
        operands {
            dst = out(CHIP, NUMERIC).doc("transposed tile");
            src = input(CHIP, NUMERIC).doc("tile read");
        }
        rules .engines(&[Pe, Dve]).same_dtype(&["dst", "src"]).check(checks::transpose)
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

    /// Statistics of a row: count, mean and sum of squared deviations of the elements at even
    /// positions, then the same of those at odd positions.
    ///
    /// ```bir
    /// bn_stats %six <- %t
    /// ```
    BnStats = "bn_stats": "row statistics in two halves" {
        operands {
            dst = out(CHIP, F32).doc("six values per partition");
            src = input(CHIP, NUMERIC).doc("up to 512 elements per partition");
        }
        rules .engines(&[Dve]).check(checks::bn_stats)
    }

    /// Combines triples (count, mean, sum of squared deviations) into mean and population variance.
    ///
    /// ```bir
    /// bn_aggr %mv <- %six
    /// ```
    BnAggr = "bn_aggr": "combine row statistics" {
        operands {
            dst = out(CHIP, NUMERIC).doc("mean and variance");
            src = input(CHIP, F32).doc("a multiple of three elements per partition");
        }
        rules .engines(&[Dve]).check(checks::bn_aggr)
    }

    /// A recurrence along each row: `r_i = op1(op0(lhs_i, r_{i-1}), rhs_i)`, with `initial` before
    /// the first element. The state stays in f32.
    ///
    /// ```bir
    /// tensor_tensor_scan multiply add %h <- %decay, %input, initial 0.0
    /// ```
    TensorTensorScan = "tensor_tensor_scan": "a linear recurrence along rows" {
        operands {
            dst = out(CHIP, NUMERIC).doc("state after every element");
            lhs = input(CHIP, NUMERIC).doc("combined with the state");
            rhs = input(CHIP, NUMERIC).doc("combined with the result of the first step");
            initial = imm(ImmType::F32, CHIP, NUMERIC).key("initial").doc("state before the first element: a number or one element per partition");
        }
        attrs {
            op0 = required(Enum(&ALU_OPS)).doc("first step");
            op1 = required(Enum(&ALU_OPS)).doc("second step");
            reverse0 = optional(Flag).doc("first step is op0(state, lhs)");
            reverse1 = optional(Flag).doc("second step is op1(rhs, first)");
        }
        rules .words(&["op0", "op1"]).engines(&[Dve]).same_shape(&["dst", "lhs", "rhs"])
            .per_partition(&["initial"]).check(checks::scan)
    }

    /// The eight largest elements of each row, in descending order.
    ///
    /// ```bir
    /// max8 %top <- %t
    /// ```
    Max8 = "max8": "the eight largest of each row" {
        operands {
            dst = out(CHIP, NUMERIC).doc("eight values per partition");
            src = input(CHIP, NUMERIC).doc("8 to 16384 elements per partition");
        }
        rules .engines(&[Dve]).check(checks::max8)
    }

    /// Reads one element into a register: a new one (`%r = register_load <- %t[0:1, 0:1]`) or one
    /// that exists (`register_load %r <- %t[0:1, 0:1]`).
    ///
    /// ```bir
    /// %n = register_load <- %t[0:1, 0:1]
    /// ```
    RegisterLoad = "register_load": "memory to register" {
        operands {
            dst = reg_out().opt().doc("register written, where the instruction defines none");
            src = input(DMA_SPACES, DTypeSet::of(&[DType::I8, DType::I16, DType::I32, DType::U8, DType::U16, DType::U32, DType::F32])).doc("one element");
        }
        rules .engines(&[Sp, Act, Dve, Pe, Pool]).with_result().check(checks::register_load)
    }

    /// Writes a register to one element.
    ///
    /// ```bir
    /// register_store %t[0:1, 0:1] <- %n
    /// ```
    RegisterStore = "register_store": "register to memory" {
        operands {
            dst = out(DMA_SPACES, DTypeSet::of(&[DType::I8, DType::I16, DType::I32, DType::U8, DType::U16, DType::U32, DType::F32])).doc("one element");
            src = reg().doc("register read");
        }
        rules .engines(&[Sp, Act, Dve, Pe, Pool]).check(checks::register_store)
    }

    /// Sets a register, new or existing, to an integer or to another register.
    ///
    /// ```bir
    /// %n = register_move <- 5
    /// ```
    RegisterMove = "register_move": "set a register" {
        operands {
            dst = reg_out().opt().doc("register written, where the instruction defines none");
            src = reg_imm().doc("an integer or a register");
        }
        rules .engines(&[Sp, Act, Dve, Pe, Pool]).with_result().check(checks::register_move)
    }

    /// Combines two registers or a register and an integer, in wrapping 32-bit arithmetic.
    ///
    /// ```bir
    /// %n = register_alu subtract <- %n0, 1
    /// ```
    RegisterAlu = "register_alu": "compute on registers" {
        operands {
            dst = reg_out().opt().doc("register written, where the instruction defines none");
            lhs = reg_imm().doc("left value");
            rhs = reg_imm().doc("right value");
        }
        attrs {
            op = required(Enum(&ALU_OPS)).doc("the operation");
        }
        rules .words(&["op"]).engines(&[Sp, Act, Dve, Pe, Pool]).with_result().check(checks::register_move)
    }

    /// Waits for semaphores and changes others, and does nothing else.
    ///
    /// ```bir
    /// event_semaphore {wait = [4 >= 36], signal = [6 += 1 @complete]}
    /// ```
    EventSemaphore = "event_semaphore": "wait and signal" {
        rules .engines(&[Sp, Act, Dve, Pe, Pool, Dma]).traits_of(&[Trait::Sync, Trait::MustKeep])
    }

    /// Every engine waits until all have come here.
    ///
    /// ```bir
    /// all_engine_barrier
    /// ```
    AllEngineBarrier = "all_engine_barrier": "engines meet" {
        rules .engines(&[Sp, Act, Dve, Pe, Pool]).traits_of(&[Trait::Sync, Trait::MustKeep])
    }
}

use super::super::space::DTypeSet;
