//! One function per op that can be generated.

mod collectives;
mod control;
mod dma;
mod elementwise;
mod generation;
mod matrix;
mod movement;
mod reductions;
mod selection;

use std::borrow::Cow;
use std::sync::{LazyLock, OnceLock};

use bir_dialect::bir::num::{DType, DTypeClass, from_f64};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::space::{DTypeSet, Space, Target};

use super::draft::{Draft, Tile};
use super::features::Feature;
use super::{Config, Generator};

/// Makes an instruction.
pub(super) type Emit = fn(&mut Generator<'_>);

/// How an op is generated.
pub(super) struct Emitter {
    pub(super) code: OpCode,
    /// How often, relative to the others.
    pub(super) weight: usize,
    pub(super) emit: Emit,
}

const fn emitter(code: OpCode, weight: usize, emit: Emit) -> Emitter {
    Emitter { code, weight, emit }
}

static EMITTERS: &[Emitter] = &[
    emitter(OpCode::Memset, 4, movement::memset),
    emitter(OpCode::Iota, 2, movement::iota),
    emitter(OpCode::TensorCopy, 6, movement::tensor_copy),
    emitter(OpCode::GenericCopy, 2, movement::generic_copy),
    emitter(
        OpCode::TensorCopyDynamicSrc,
        1,
        movement::tensor_copy_dynamic_src,
    ),
    emitter(
        OpCode::TensorCopyDynamicDst,
        1,
        movement::tensor_copy_dynamic_dst,
    ),
    emitter(OpCode::StreamShuffle, 1, movement::stream_shuffle),
    emitter(
        OpCode::PermuteImplicitReduceAdd,
        1,
        movement::permute_implicit_reduce_add,
    ),
    emitter(OpCode::TensorGather, 1, movement::tensor_gather),
    emitter(OpCode::TensorScatter, 1, movement::tensor_scatter),
    emitter(OpCode::Transpose, 2, movement::transpose),
    emitter(OpCode::Activation, 8, elementwise::activation),
    emitter(OpCode::ActivationReduce, 2, elementwise::activation_reduce),
    emitter(OpCode::Activate2, 2, elementwise::activate2),
    emitter(
        OpCode::ReadActivationAccumulator,
        1,
        elementwise::read_activation_accumulator,
    ),
    emitter(OpCode::TensorTensor, 10, elementwise::tensor_tensor),
    emitter(OpCode::TensorScalar, 8, elementwise::tensor_scalar),
    emitter(OpCode::TensorScalarPtr, 2, elementwise::tensor_scalar_ptr),
    emitter(
        OpCode::TensorScalarCache,
        1,
        elementwise::tensor_scalar_cache,
    ),
    emitter(OpCode::TensorScalarAddr, 1, elementwise::tensor_scalar_addr),
    emitter(
        OpCode::ScalarTensorTensor,
        3,
        elementwise::scalar_tensor_tensor,
    ),
    emitter(OpCode::Reciprocal, 2, elementwise::reciprocal),
    emitter(OpCode::Exponential, 2, elementwise::exponential),
    emitter(OpCode::Dropout, 1, elementwise::dropout),
    emitter(OpCode::TensorReduce, 4, reductions::tensor_reduce),
    emitter(
        OpCode::TensorPartitionReduce,
        1,
        reductions::tensor_partition_reduce,
    ),
    emitter(
        OpCode::TensorScalarReduce,
        2,
        reductions::tensor_scalar_reduce,
    ),
    emitter(
        OpCode::TensorScalarCumulative,
        1,
        reductions::tensor_scalar_cumulative,
    ),
    emitter(OpCode::TensorTensorScan, 2, reductions::tensor_tensor_scan),
    emitter(OpCode::BnStats, 1, reductions::bn_stats),
    emitter(OpCode::BnAggr, 1, reductions::bn_aggr),
    emitter(OpCode::Max8, 1, reductions::max8),
    emitter(OpCode::FindIndex8, 1, reductions::find_index8),
    emitter(OpCode::MatchReplace8, 1, reductions::match_replace8),
    emitter(OpCode::Topk, 1, reductions::topk),
    emitter(OpCode::Select, 2, selection::select),
    emitter(OpCode::SelectReduce, 1, selection::select_reduce),
    emitter(OpCode::RangeSelect, 1, selection::range_select),
    emitter(OpCode::AffineSelect, 2, selection::affine_select),
    emitter(OpCode::CopyPredicated, 2, selection::copy_predicated),
    emitter(OpCode::LocalGather, 1, generation::local_gather),
    emitter(OpCode::NGather, 1, generation::n_gather),
    emitter(OpCode::SequenceBounds, 1, generation::sequence_bounds),
    emitter(OpCode::NonzeroWithCount, 1, generation::nonzero_with_count),
    emitter(OpCode::Rng, 1, generation::rng),
    emitter(OpCode::Rand2, 1, generation::rand2),
    emitter(OpCode::SetRngSeed, 1, generation::set_rng_seed),
    emitter(OpCode::RandSetState, 1, generation::rand_set_state),
    emitter(OpCode::RandGetState, 1, generation::rand_get_state),
    emitter(OpCode::Matmult, 6, matrix::matmult),
    emitter(OpCode::MatmultSparse, 1, matrix::matmult_sparse),
    emitter(OpCode::MatmultMx, 1, matrix::matmult_mx),
    emitter(OpCode::QuantizeMx, 1, matrix::quantize_mx),
    emitter(OpCode::Load, 6, dma::load),
    emitter(OpCode::Save, 4, dma::save),
    emitter(OpCode::DmaCopy, 4, dma::dma_copy),
    emitter(OpCode::DmaTranspose, 1, dma::dma_transpose),
    emitter(OpCode::DmaCompute, 1, dma::dma_compute),
    emitter(OpCode::DmaScatterAdd, 1, dma::dma_scatter_add),
    emitter(OpCode::DmaGatherAdd, 1, dma::dma_gather_add),
    emitter(OpCode::GpsimdSb2sb, 1, dma::gpsimd_sb2sb),
    emitter(OpCode::AllReduce, 1, collectives::all_reduce),
    emitter(OpCode::AllGather, 1, collectives::all_gather),
    emitter(OpCode::AllGatherV, 1, collectives::all_gather_v),
    emitter(OpCode::ReduceScatter, 1, collectives::reduce_scatter),
    emitter(OpCode::AllToAll, 1, collectives::all_to_all),
    emitter(OpCode::AllToAllV, 1, collectives::all_to_all_v),
    emitter(
        OpCode::CollectivePermute,
        1,
        collectives::collective_permute,
    ),
    emitter(
        OpCode::CollectivePermuteImplicit,
        1,
        collectives::collective_permute_implicit,
    ),
    emitter(
        OpCode::CollectivePermuteImplicitReduce,
        1,
        collectives::collective_permute_implicit_reduce,
    ),
    emitter(OpCode::RankId, 1, collectives::rank_id),
    emitter(OpCode::ProcessingRankId, 1, collectives::processing_rank_id),
    emitter(OpCode::CoreId, 1, collectives::core_id),
    emitter(OpCode::RegisterLoad, 1, control::register_load),
    emitter(OpCode::RegisterStore, 1, control::register_store),
    emitter(OpCode::RegisterMove, 1, control::register_move),
    emitter(OpCode::RegisterAlu, 2, control::register_alu),
    emitter(OpCode::EventSemaphore, 1, control::event_semaphore),
    emitter(
        OpCode::SemaphoreRangeClear,
        1,
        control::semaphore_range_clear,
    ),
    emitter(OpCode::AllEngineBarrier, 1, control::all_engine_barrier),
    emitter(OpCode::Drain, 1, control::drain),
    emitter(OpCode::Nop, 1, control::nop),
    emitter(OpCode::Notify, 1, control::notify),
    emitter(OpCode::DmaTrigger, 1, control::dma_trigger),
    emitter(OpCode::SetOrderingMode, 1, control::set_ordering_mode),
    emitter(OpCode::ModifyPoolConfig, 1, control::modify_pool_config),
    emitter(
        OpCode::LoadActivationTable,
        1,
        control::load_activation_table,
    ),
    emitter(OpCode::DevicePrint, 1, control::device_print),
];

/// The emitters a generation has and a configuration asks for, each as often as it weighs.
pub(super) fn available(target: Target, config: &Config) -> Cow<'static, [Emit]> {
    /// By generation, where a configuration asks for all: programs are often small and many.
    static ALL: [OnceLock<Vec<Emit>>; Target::ALL.len()] =
        [const { OnceLock::new() }; Target::ALL.len()];
    if config.ops.is_empty() && config.without_ops.is_empty() {
        Cow::Borrowed(ALL[target as usize].get_or_init(|| chosen(target, config)))
    } else {
        Cow::Owned(chosen(target, config))
    }
}

fn chosen(target: Target, config: &Config) -> Vec<Emit> {
    EMITTERS
        .iter()
        .filter(|emitter| config.ops.is_empty() || config.ops.contains(&emitter.code))
        .filter(|emitter| !config.without_ops.contains(&emitter.code))
        .filter(|emitter| {
            let engines = emitter.code.def().engines;
            engines.is_some_and(|engines| !engines.on(target).is_empty())
        })
        .flat_map(|emitter| std::iter::repeat_n(emitter.emit, emitter.weight))
        .collect()
}

/// What floats are worth trying.
const NUMBERS: &[f64] = &[
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    0.5,
    3.0,
    -0.1,
    1e-5,
    1e16,
    -240.0,
    65504.0,
    1e-45,
    3.402_823_4e38,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

/// [`NUMBERS`] in each dtype.
static EDGES: LazyLock<[[u64; NUMBERS.len()]; DType::ALL.len()]> = LazyLock::new(|| {
    let mut edges = [[0; NUMBERS.len()]; DType::ALL.len()];
    for (edges, &dtype) in edges.iter_mut().zip(DType::ALL) {
        for (edge, &number) in edges.iter_mut().zip(NUMBERS) {
            *edge = from_f64(dtype, number).unwrap_or(0);
        }
    }
    edges
});

impl Generator<'_> {
    /// A number of a dtype, by its bits: an edge value half of the time.
    pub(super) fn number(&mut self, dtype: DType) -> u64 {
        match dtype.class() {
            DTypeClass::Float => {
                if self.chance(2) {
                    return self.pick(&EDGES[dtype as usize]);
                }
                let value = self.random.unit() * 8.0 - 4.0;
                from_f64(dtype, value).unwrap_or(0)
            }
            DTypeClass::Scale => 120 + self.random.below(16),
            DTypeClass::Packed => 0,
            DTypeClass::Bool => self.random.below(2),
            DTypeClass::Signed | DTypeClass::Unsigned => {
                let raw = match self.random.below(4) {
                    0 => self.random.next_u64(),
                    1 => dtype.mask() >> self.random.below(2),
                    _ => self.random.below(64),
                };
                raw & dtype.mask()
            }
        }
    }

    /// A finite, ordinary number.
    fn plain_number(&mut self) -> u64 {
        let value = self.pick(&[0.5f32, 1.0, 2.0, -1.5, 0.125, 3.0]);
        u64::from(value.to_bits())
    }

    /// An f32 literal, or one f32 per partition.
    fn scalar(&mut self, draft: &mut Draft, role: &'static str, parts: u64) {
        if self.chance(2) {
            let bits = self.number(DType::F32);
            self.literal(draft, role, DType::F32, bits);
        } else {
            self.read(draft, role, parts, 1);
        }
    }

    /// Source and destination of one shape: what most elementwise ops begin with.
    fn unary(&mut self, draft: &mut Draft) -> Tile {
        let (parts, elems) = self.shape();
        self.read(draft, "src", parts, elems)
    }

    /// A tile of whole numbers from 0 to below `end`, ascending from partition to partition and
    /// column to column as far as they go.
    fn index_tile(&mut self, dtypes: DTypeSet, parts: u64, elems: u64, end: u64) -> Tile {
        let dtypes: Vec<DType> = dtypes.iter().collect();
        let dtype = self.pick(&dtypes);
        // Gathers want it to start where the tile does, at the first partition.
        let at = self.allocate_at(None, Space::Sbuf, dtype, (parts, elems), &[]);
        let per_row = u64::from(end >= parts);
        let room = end - 1 - per_row * (parts - 1).min(end - 1);
        let per_column = u64::from(elems > 1 && room >= elems - 1);
        let most = per_row * (parts - 1) + per_column * (elems - 1);
        let offset = self.between(0, (end - 1).saturating_sub(most));
        let tile = self.whole(at);
        let mut draft = Draft::new(OpCode::Iota);
        draft.tile("dst", tile);
        self.lists(&mut draft, "pattern", &[&[per_column as i64, elems as i64]]);
        self.int(&mut draft, "offset", offset as i64);
        self.int(&mut draft, "channel_multiplier", per_row as i64);
        self.emit(&mut draft);
        self.whole(at)
    }

    /// A word of a list that the generation has.
    fn generation_word(&mut self, words: &[&'static str]) -> &'static str {
        loop {
            let word = self.pick(words);
            if self.target == Target::Trn3 || !matches!(word, "abs_max" | "abs_min") {
                return word;
            }
        }
    }

    /// Now and then another instruction on the tiles of the one before, which has reset an engine's
    /// accumulator: it goes on from there.
    fn again_accumulating(&mut self, first: impl Fn(&mut Self, &mut Draft), code: OpCode) {
        if self.uses(Feature::Accumulator, 3) {
            let mut draft = Draft::new(code);
            first(self, &mut draft);
            self.word(&mut draft, "reduce_cmd", "accumulate");
            self.emit(&mut draft);
        }
    }
}

/// ALU operations of two operands that compute in f32 on the vector engine.
const ARITHMETIC: &[&str] = &[
    "add",
    "subtract",
    "multiply",
    "max",
    "min",
    "equal",
    "not_equal",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
    "abs_max",
    "abs_min",
    "divide",
    "mod",
];

/// ALU operations of two operands on raw bits.
const BITWISE: &[&str] = &[
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "left_shift",
    "right_shift",
];

const COMPARE: &[&str] = &["equal", "greater", "greater_equal", "less", "less_equal"];

#[cfg(test)]
mod tests {
    use super::*;

    /// Ops no emitter makes: structure, which constructs make, what several cores meet at, and what
    /// nobody can run.
    const NOT_EMITTED: &[OpCode] = &[
        OpCode::Module,
        OpCode::Func,
        OpCode::Alloc,
        OpCode::Loop,
        OpCode::While,
        OpCode::Br,
        OpCode::CondBr,
        OpCode::Depset,
        OpCode::Return,
        OpCode::Yield,
        OpCode::Sendrecv,
        OpCode::CoreBarrier,
        OpCode::Halt,
        OpCode::CustomOp,
        OpCode::InlineAsm,
    ];

    #[test]
    fn every_op_has_an_emitter_or_a_reason() {
        for &code in OpCode::ALL {
            let emitters = EMITTERS.iter().filter(|e| e.code == code).count();
            let excused = NOT_EMITTED.contains(&code);
            assert_eq!(emitters + usize::from(excused), 1, "{}", code.def().name);
        }
    }
}
