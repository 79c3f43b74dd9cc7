//! The enumerations attributes draw their words from.

use super::alu::ALU_OPS;
use super::def::EnumDef;

/// Comparisons.
pub static COMPARE_OPS: EnumDef = EnumDef {
    name: "compare_op",
    words: &[
        "equal",
        "not_equal",
        "greater",
        "greater_equal",
        "less",
        "less_equal",
    ],
};

/// Functions of the activation engine.
pub static ACTIVATION_FUNCS: EnumDef = EnumDef {
    name: "activation_func",
    words: &[
        "copy",
        "identity",
        "square",
        "sigmoid",
        "relu",
        "prelu",
        "gelu",
        "gelu_dx",
        "gelu_apprx_tanh",
        "gelu_apprx_sigmoid",
        "gelu_apprx_sigmoid_dx",
        "silu",
        "silu_dx",
        "tanh",
        "softplus",
        "mish",
        "erf",
        "erf_dx",
        "exp",
        "log",
        "sin",
        "arctan",
        "sqrt",
        "rsqrt",
        "reciprocal",
        "sign",
        "abs",
    ],
};

/// What an instruction does to an engine's accumulator.
pub static REDUCE_CMDS: EnumDef = EnumDef {
    name: "reduce_cmd",
    words: &["idle", "reset", "accumulate", "load", "clear"],
};

/// Steps of `activate2`.
pub(super) static STAGE_OPS: EnumDef = EnumDef {
    name: "stage_op",
    words: &["multiply", "add", "subtract", "bypass"],
};

/// How collectives combine elements.
pub(super) static COLLECTIVE_OPS: EnumDef = EnumDef {
    name: "collective_op",
    words: &["add", "min", "max"],
};

/// Who makes the descriptors of a DMA.
pub(super) static DGE_MODES: EnumDef = EnumDef {
    name: "dge_mode",
    words: &["none", "swdge", "hwdge"],
};

/// What an index outside a location does.
pub(super) static OOB_MODES: EnumDef = EnumDef {
    name: "oob_mode",
    words: &["error", "skip"],
};

/// In which order the accesses of an engine take effect.
pub(super) static ORDERING_MODES: EnumDef = EnumDef {
    name: "ordering_mode",
    words: &["strict", "relaxed"],
};

/// What a location is to the outside.
pub static LOCATION_KINDS: EnumDef = EnumDef {
    name: "location_kind",
    words: &["internal", "input", "output", "inout", "const"],
};

/// Addressing of a location among the cores of a program.
pub(super) static ADDRESSINGS: EnumDef = EnumDef {
    name: "addressing",
    words: &["local", "shared"],
};

/// Engines, as the attribute names them.
pub(super) static ENGINES: EnumDef = EnumDef {
    name: "engine",
    words: &["pe", "act", "dve", "pool", "sp", "dma"],
};

/// Targets, as the module attribute names them.
pub(super) static TARGETS: EnumDef = EnumDef {
    name: "target",
    words: &["trn1", "trn2", "trn3"],
};

/// All enumerations.
pub(super) static ALL_ENUMS: &[&EnumDef] = &[
    &ALU_OPS,
    &COMPARE_OPS,
    &ACTIVATION_FUNCS,
    &REDUCE_CMDS,
    &STAGE_OPS,
    &COLLECTIVE_OPS,
    &DGE_MODES,
    &OOB_MODES,
    &ORDERING_MODES,
    &LOCATION_KINDS,
    &ADDRESSINGS,
    &ENGINES,
    &TARGETS,
];
