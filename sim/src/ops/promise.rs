//! Hints that are promises about data, held to them: an operand of zeros and ones.

use crate::fault::{Fault, FaultKind, Run};
use crate::lower::Task;
use crate::machine::Machine;
use crate::rows;
use crate::tile::Tile;

/// A task whose operands are promised to hold 0 and 1 only.
pub(super) struct ZerosAndOnes {
    pub(super) task: Box<dyn Task>,
    /// The operands, each with the name of its hint.
    pub(super) promised: Vec<(Tile, &'static str)>,
}

impl Task for ZerosAndOnes {
    fn run(&self, m: &mut Machine) -> Run<()> {
        for (tile, hint) in &self.promised {
            let at = m.source(tile)?;
            let Machine {
                mem,
                scratch,
                lanes,
                ..
            } = &mut *m;
            let [values, ..] = &mut scratch.rows;
            let all = (0, tile.partitions);
            rows::load(*lanes, mem, tile, at, all, values, &mut scratch.spare);
            let values = &values[..tile.partitions * tile.elements];
            let broken = values.iter().position(|&x| x != 0.0 && x != 1.0);
            if let Some(at) = broken {
                return Err(Fault::of_operand(
                    FaultKind::Promise {
                        hint,
                        value: values[at].to_string(),
                        partition: at / tile.elements,
                        element: at % tile.elements,
                    },
                    tile.operand,
                ));
            }
        }
        self.task.run(m)
    }

    fn bytes(&self) -> u64 {
        self.task.bytes()
    }
}
