//! The semantics of every op, one entry each.
//!
//! [`semantics`] is the table: a match over all [`OpCode`]s, so an op without an entry does not
//! compile. `custom_op` and `inline_asm` have none, for good, and fail by name.

mod accumulate;
mod chain;
mod chance;
mod collectives;
mod control;
mod dma;
mod dma_compute;
mod fill;
mod gather;
mod matrix;
mod movement;
mod mx;
mod partitions;
mod promise;
mod reduce;
mod rowwise;
mod select;
mod sequence;
mod sorting;
mod statistics;

pub(crate) use collectives::{Exchange, Parcel};

use bir_dialect::bir::ops::OpCode;

use crate::cores::Meeting;
use crate::fault::Run;
use crate::lower::{Site, Task};

/// How an op is executed.
pub(crate) enum Semantics {
    /// By the task this makes.
    Task(fn(&Site<'_>) -> Run<Box<dyn Task>>),
    /// By an exchange with other cores; nothing where there are none to meet.
    Meet(fn(&Site<'_>) -> Run<Option<Meeting>>),
    /// Loops, branches, returns: the flat program itself.
    Control,
    /// Declarations.
    Structure,
    /// Nothing a value depends on while instructions run in order.
    Nothing,
    /// It cannot be, for this reason.
    Refused(&'static str),
}

const OPAQUE: &str = "nobody but its author knows what it does";

/// Whether an op can be executed. Two cannot: what they do is written nowhere.
pub fn executes(code: OpCode) -> bool {
    !matches!(semantics(code), Semantics::Refused(_))
}

/// How an op is executed.
pub(crate) fn semantics(code: OpCode) -> Semantics {
    use Semantics::*;
    match code {
        OpCode::Module | OpCode::Func | OpCode::Alloc => Structure,
        OpCode::Loop
        | OpCode::While
        | OpCode::Br
        | OpCode::CondBr
        | OpCode::Return
        | OpCode::Halt => Control,
        OpCode::Yield => Structure,
        OpCode::Memset => Task(fill::memset),
        OpCode::Iota => Task(fill::iota),
        OpCode::TensorCopy | OpCode::GenericCopy => Task(movement::copy),
        OpCode::Load | OpCode::Save => Task(dma::transfer),
        OpCode::DmaCopy => Task(dma::dma_copy),
        OpCode::Transpose => Task(movement::transpose),
        OpCode::TensorTensor => Task(chain::tensor_tensor),
        OpCode::TensorScalar | OpCode::TensorScalarPtr => Task(chain::tensor_scalar),
        OpCode::TensorScalarAddr => Task(chain::tensor_scalar_addr),
        OpCode::ScalarTensorTensor => Task(chain::scalar_tensor_tensor),
        OpCode::Reciprocal => Task(chain::reciprocal),
        OpCode::Activation | OpCode::ActivationReduce => Task(accumulate::activation),
        OpCode::ReadActivationAccumulator => Task(accumulate::read),
        OpCode::TensorReduce => Task(reduce::tensor_reduce),
        OpCode::TensorTensorScan => Task(reduce::scan),
        OpCode::BnStats => Task(statistics::bn_stats),
        OpCode::BnAggr => Task(statistics::bn_aggr),
        OpCode::Max8 => Task(statistics::max8),
        OpCode::Select => Task(select::select),
        OpCode::SelectReduce => Task(select::select_reduce),
        OpCode::RangeSelect => Task(select::range_select),
        OpCode::AffineSelect => Task(select::affine_select),
        OpCode::CopyPredicated => Task(select::copy_predicated),
        OpCode::Matmult => Task(matrix::matmult),
        OpCode::RegisterLoad => Task(control::register_load),
        OpCode::RegisterStore => Task(control::register_store),
        OpCode::RegisterMove => Task(control::register_move),
        OpCode::RegisterAlu => Task(control::register_alu),
        OpCode::EventSemaphore
        | OpCode::SemaphoreRangeClear
        | OpCode::AllEngineBarrier
        | OpCode::Drain
        | OpCode::Nop
        | OpCode::Depset
        | OpCode::Notify
        | OpCode::DmaTrigger
        | OpCode::SetOrderingMode
        | OpCode::ModifyPoolConfig
        | OpCode::LoadActivationTable
        | OpCode::DevicePrint => Nothing,
        OpCode::CustomOp | OpCode::InlineAsm => Refused(OPAQUE),
        OpCode::Activate2 => Task(rowwise::activate2),
        OpCode::TensorScalarCache => Task(rowwise::tensor_scalar_cache),
        OpCode::Exponential => Task(rowwise::exponential),
        OpCode::TensorScalarReduce => Task(rowwise::tensor_scalar_reduce),
        OpCode::TensorScalarCumulative => Task(rowwise::tensor_scalar_cumulative),
        OpCode::TensorPartitionReduce => Task(partitions::tensor_partition_reduce),
        OpCode::StreamShuffle => Task(partitions::stream_shuffle),
        OpCode::PermuteImplicitReduceAdd => Task(partitions::permute_implicit_reduce_add),
        OpCode::FindIndex8 => Task(sorting::find_index8),
        OpCode::MatchReplace8 => Task(sorting::match_replace8),
        OpCode::Topk => Task(sorting::topk),
        OpCode::TensorCopyDynamicSrc => Task(gather::copy_dynamic_src),
        OpCode::TensorCopyDynamicDst => Task(gather::copy_dynamic_dst),
        OpCode::TensorGather => Task(gather::tensor_gather),
        OpCode::TensorScatter => Task(gather::tensor_scatter),
        OpCode::LocalGather => Task(gather::local_gather),
        OpCode::NGather => Task(gather::n_gather),
        OpCode::SequenceBounds => Task(sequence::sequence_bounds),
        OpCode::NonzeroWithCount => Task(sequence::nonzero_with_count),
        OpCode::DmaTranspose => Task(dma_compute::dma_transpose),
        OpCode::DmaCompute => Task(dma_compute::dma_compute),
        OpCode::DmaScatterAdd | OpCode::DmaGatherAdd => Task(dma::indexed_add),
        OpCode::GpsimdSb2sb => Task(dma::transfer),
        OpCode::Rng => Task(chance::rng),
        OpCode::Rand2 => Task(chance::rand2),
        OpCode::Dropout => Task(chance::dropout),
        OpCode::SetRngSeed => Task(chance::set_rng_seed),
        OpCode::RandSetState => Task(chance::rand_set_state),
        OpCode::RandGetState => Task(chance::rand_get_state),
        OpCode::MatmultSparse => Task(mx::matmult_sparse),
        OpCode::MatmultMx => Task(mx::matmult_mx),
        OpCode::QuantizeMx => Task(mx::quantize_mx),
        OpCode::AllReduce => Meet(collectives::all_reduce),
        OpCode::AllGather => Meet(collectives::all_gather),
        OpCode::AllGatherV | OpCode::AllToAllV => Meet(collectives::varied),
        OpCode::ReduceScatter => Meet(collectives::reduce_scatter),
        OpCode::AllToAll => Meet(collectives::all_to_all),
        OpCode::CollectivePermute => Meet(collectives::permute),
        OpCode::CollectivePermuteImplicit => Meet(collectives::ring),
        OpCode::CollectivePermuteImplicitReduce => Meet(collectives::ring_reduce),
        OpCode::Sendrecv => Meet(collectives::sendrecv),
        OpCode::CoreBarrier => Meet(collectives::core_barrier),
        OpCode::RankId | OpCode::CoreId => Task(collectives::rank),
        OpCode::ProcessingRankId => Task(collectives::processing_rank),
    }
}
