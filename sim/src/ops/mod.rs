//! The semantics of every op, one entry each.
//!
//! [`semantics`] is the table: a match over all [`OpCode`]s, so an op without an entry does not
//! compile. Ops that have no semantics yet are the list [`NOT_YET`] and fail by name.

mod accumulate;
mod chain;
mod control;
mod dma;
mod fill;
mod matrix;
mod movement;
mod reduce;
mod select;
mod statistics;

use bir_dialect::bir::ops::OpCode;

use crate::fault::Run;
use crate::lower::{Site, Task};

/// How an op is executed.
pub(crate) enum Semantics {
    /// By the task this makes.
    Task(fn(&Site<'_>) -> Run<Box<dyn Task>>),
    /// Loops, branches, returns: the flat program itself.
    Control,
    /// Declarations.
    Structure,
    /// Nothing a value depends on while instructions run in order.
    Nothing,
    /// It cannot be, for this reason.
    Refused(&'static str),
}

/// Ops that have no semantics yet.
pub const NOT_YET: &[OpCode] = &[
    OpCode::Activate2,
    OpCode::TensorScalarCache,
    OpCode::Exponential,
    OpCode::Dropout,
    OpCode::TensorPartitionReduce,
    OpCode::TensorScalarReduce,
    OpCode::TensorScalarCumulative,
    OpCode::FindIndex8,
    OpCode::MatchReplace8,
    OpCode::Topk,
    OpCode::TensorCopyDynamicSrc,
    OpCode::TensorCopyDynamicDst,
    OpCode::StreamShuffle,
    OpCode::PermuteImplicitReduceAdd,
    OpCode::TensorGather,
    OpCode::TensorScatter,
    OpCode::DmaTranspose,
    OpCode::DmaCompute,
    OpCode::DmaScatterAdd,
    OpCode::DmaGatherAdd,
    OpCode::GpsimdSb2sb,
    OpCode::LocalGather,
    OpCode::NGather,
    OpCode::SequenceBounds,
    OpCode::NonzeroWithCount,
    OpCode::Rng,
    OpCode::Rand2,
    OpCode::SetRngSeed,
    OpCode::RandSetState,
    OpCode::RandGetState,
    OpCode::MatmultSparse,
    OpCode::MatmultMx,
    OpCode::QuantizeMx,
];

const LATER: &str = "its semantics are not written yet";
const OPAQUE: &str = "nobody but its author knows what it does";
const CORES: &str = "it exchanges data between cores, which are not simulated yet";

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
        | OpCode::CoreBarrier
        | OpCode::Drain
        | OpCode::Nop
        | OpCode::Notify
        | OpCode::DmaTrigger
        | OpCode::SetOrderingMode
        | OpCode::ModifyPoolConfig
        | OpCode::LoadActivationTable
        | OpCode::DevicePrint => Nothing,
        OpCode::CustomOp | OpCode::InlineAsm => Refused(OPAQUE),
        OpCode::Activate2
        | OpCode::TensorScalarCache
        | OpCode::Exponential
        | OpCode::Dropout
        | OpCode::TensorPartitionReduce
        | OpCode::TensorScalarReduce
        | OpCode::TensorScalarCumulative
        | OpCode::FindIndex8
        | OpCode::MatchReplace8
        | OpCode::Topk
        | OpCode::TensorCopyDynamicSrc
        | OpCode::TensorCopyDynamicDst
        | OpCode::StreamShuffle
        | OpCode::PermuteImplicitReduceAdd
        | OpCode::TensorGather
        | OpCode::TensorScatter
        | OpCode::DmaTranspose
        | OpCode::DmaCompute
        | OpCode::DmaScatterAdd
        | OpCode::DmaGatherAdd
        | OpCode::GpsimdSb2sb
        | OpCode::LocalGather
        | OpCode::NGather
        | OpCode::SequenceBounds
        | OpCode::NonzeroWithCount
        | OpCode::Rng
        | OpCode::Rand2
        | OpCode::SetRngSeed
        | OpCode::RandSetState
        | OpCode::RandGetState
        | OpCode::MatmultSparse
        | OpCode::MatmultMx
        | OpCode::QuantizeMx => Refused(LATER),
        OpCode::AllReduce
        | OpCode::AllGather
        | OpCode::AllGatherV
        | OpCode::ReduceScatter
        | OpCode::AllToAll
        | OpCode::AllToAllV
        | OpCode::CollectivePermute
        | OpCode::CollectivePermuteImplicit
        | OpCode::CollectivePermuteImplicitReduce
        | OpCode::Sendrecv
        | OpCode::RankId
        | OpCode::ProcessingRankId
        | OpCode::CoreId => Refused(CORES),
    }
}
