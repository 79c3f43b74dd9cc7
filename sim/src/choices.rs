//! Locations that are read only to choose among rows or elements, and how many there are.
//!
//! Copies are followed: what is loaded to a tile that serves as an index is an index itself. Where one
//! location chooses among several tables, the smallest counts. Anything else that reads a location, or
//! reads it under another dtype, makes it no index.

use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Def, Ir, Op, Value};
use hashbrown::HashMap;

/// What is known of a location.
#[derive(Default)]
struct Known {
    /// Choices there are, by what reads it as an index; 0 where something else reads it.
    choices: Option<u64>,
    /// Locations that are copied to it.
    sources: Vec<Value>,
}

/// The choices of every location that is an index, by its `alloc`.
pub(crate) fn choices<'a>(ir: &Ir, programs: impl Iterator<Item = &'a [Op]>) -> HashMap<Op, u64> {
    let mut known: HashMap<Value, Known> = HashMap::new();
    let mut found = false;
    for &op in programs.flatten() {
        let view = OpView::new(ir, op);
        let Some(def) = view.def() else { continue };
        let code = view.code();
        for operand in ir.operand_ids(op) {
            let data = ir.operand(operand);
            let (Some(role), Some((mem, access))) = (
                def.operands.get(usize::from(data.role)),
                view.access(operand),
            ) else {
                continue;
            };
            if !role.reads() {
                continue;
            }
            let table = code.and_then(|code| table_of(code, role.name));
            let choices = match (table, copied_to(view, role.name)) {
                _ if access.dtype != mem.dtype => 0,
                (Some(table), _) => of_table(view, table).unwrap_or(0),
                (None, Some(to)) => {
                    known.entry(to).or_default().sources.push(data.value);
                    continue;
                }
                (None, None) => 0,
            };
            found |= choices > 0;
            let entry = known.entry(data.value).or_default();
            entry.choices = Some(entry.choices.map_or(choices, |before| before.min(choices)));
        }
    }
    if !found {
        return HashMap::new();
    }
    // From the smallest number on, each location is settled once.
    let mut order: Vec<(u64, Value)> = { known.iter() }
        .filter_map(|(&value, known)| Some((known.choices?, value)))
        .collect();
    order.sort_unstable();
    let mut settled: HashMap<Value, u64> = HashMap::new();
    for (choices, value) in order {
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            if settled.contains_key(&value) {
                continue;
            }
            settled.insert(value, choices);
            if let Some(known) = known.get(&value) {
                open.extend(&known.sources);
            }
        }
    }
    settled
        .into_iter()
        .filter(|&(_, choices)| choices > 0)
        .filter_map(|(value, choices)| match ir.def(value) {
            Def::Result { op, .. } => Some((op, choices)),
            Def::Arg { .. } => None,
        })
        .collect()
}

/// The role of the table in which an operand chooses.
fn table_of(code: OpCode, role: &str) -> Option<&'static str> {
    match (code, role) {
        (OpCode::DmaCopy | OpCode::DmaTranspose, "src_index") => Some("src"),
        (OpCode::DmaCopy, "dst_index") => Some("dst"),
        (OpCode::DmaScatterAdd | OpCode::TensorScatter, "index") => Some("dst"),
        (
            OpCode::DmaGatherAdd | OpCode::TensorGather | OpCode::LocalGather | OpCode::NGather,
            "index",
        ) => Some("src"),
        _ => None,
    }
}

/// How many rows or elements a table has to choose from.
fn of_table(view: OpView<'_>, table: &str) -> Option<u64> {
    let (mem, access) = view.access(view.role(table).operand()?)?;
    match view.code()? {
        OpCode::TensorScatter | OpCode::TensorGather | OpCode::LocalGather | OpCode::NGather => {
            let counts = access.pairs.iter().map(|pair| pair.count);
            let elements = counts.fold(1u64, u64::saturating_mul);
            // The elements behind the first of each choice are there too.
            elements.checked_sub(u64::try_from(view.int("width").unwrap_or(1)).ok()? - 1)
        }
        _ => mem.dims.first().copied(),
    }
}

/// Where the bits of an operand go unchanged.
fn copied_to(view: OpView<'_>, role: &str) -> Option<Value> {
    let copies = matches!(
        view.code()?,
        OpCode::Load | OpCode::Save | OpCode::DmaCopy | OpCode::TensorCopy
    );
    let to = view
        .role("dst")
        .operand()
        .filter(|_| copies && role == "src")?;
    let (mem, access) = view.access(to)?;
    let (_, from) = view.access(view.role("src").operand()?)?;
    // Integers of other widths may be cut off, and floats rounded.
    let same = access.dtype == from.dtype && mem.dtype == access.dtype;
    same.then(|| view.ir.operand(to).value)
}
