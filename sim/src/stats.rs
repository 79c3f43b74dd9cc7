//! What a run did.

use std::collections::BTreeMap;
use std::fmt;

/// Counts of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Instructions executed, by engine and op, in the order of their names.
    pub executed: BTreeMap<(&'static str, &'static str), u64>,
    /// Bytes instructions read and wrote, by engine.
    pub bytes: BTreeMap<&'static str, u64>,
    /// Steps of the flat program, loops and branches included.
    pub steps: u64,
    /// Most bytes of a partition of SBUF that locations take: their sum, or the highest end of those
    /// that are placed.
    pub sbuf_bytes: u64,
    /// The same of PSUM.
    pub psum_bytes: u64,
    /// Bytes of DRAM locations.
    pub dram_bytes: u64,
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total: u64 = self.executed.values().sum();
        writeln!(f, "instructions: {total} ({} steps)", self.steps)?;
        for ((engine, op), count) in &self.executed {
            writeln!(f, "  {engine:<5} {op:<28} {count:>12}")?;
        }
        writeln!(f, "bytes moved:")?;
        for (engine, bytes) in &self.bytes {
            writeln!(f, "  {engine:<5} {bytes:>41}")?;
        }
        writeln!(f, "sbuf: {} bytes per partition", self.sbuf_bytes)?;
        writeln!(f, "psum: {} bytes per partition", self.psum_bytes)?;
        writeln!(f, "dram: {} bytes", self.dram_bytes)
    }
}
