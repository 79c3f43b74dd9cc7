//! `print_stats`: what a function consists of.

use std::collections::BTreeMap;

use bir_dialect::bir::access::Access;
use bir_dialect::bir::ops::{Kind, OpCode, Syntax, Trait};
use bir_dialect::bir::program::{names, symbol_name, target_of};
use bir_dialect::bir::space::Space;
use bir_dialect::bir::types::MemType;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Ir, Op, Visit};

use crate::instrument::ReportFormat;
use crate::occupancy::{Occupancy, Peak};
use crate::options::OptionValue;
use crate::pass::{Anchor, Changed, Pass, PassContext};
use crate::pass_options;

impl OptionValue for ReportFormat {
    const KIND: &'static str = "text|json";

    fn parse(text: &str) -> Result<ReportFormat, String> {
        match text {
            "text" => Ok(ReportFormat::Text),
            "json" => Ok(ReportFormat::Json),
            _ => Err(format!("expected `text` or `json`, found `{text}`")),
        }
    }

    fn print(&self) -> String {
        match self {
            ReportFormat::Text => "text".to_owned(),
            ReportFormat::Json => "json".to_owned(),
        }
    }
}

pass_options! {
    /// Prints what functions consist of: instructions by op and engine, bytes, peaks.
    ///
    /// An instruction in loops of constant trips counts once as written and once per trip as
    /// executed; loops on registers count as one trip. Peaks are of the locations in use at once,
    /// in bytes of each partition for SBUF and PSUM. The report goes to standard error.
    pub struct PrintStats {
        /// Format of the report
        format: ReportFormat = ReportFormat::Text,
    }
}

/// Written and executed.
#[derive(Clone, Copy, Default)]
struct Count {
    written: u64,
    executed: u64,
}

impl Count {
    fn add(&mut self, written: u64, executed: u64) {
        self.written = self.written.saturating_add(written);
        self.executed = self.executed.saturating_add(executed);
    }
}

#[derive(Clone, Copy, Default)]
struct SpaceStats {
    locations: u64,
    bytes: u64,
    peak: Peak,
}

struct Stats {
    name: String,
    all: Count,
    loops: u64,
    by_op: BTreeMap<String, Count>,
    by_engine: BTreeMap<&'static str, Count>,
    moved: Count,
    spaces: Vec<(&'static str, SpaceStats)>,
}

impl Pass for PrintStats {
    fn name(&self) -> &'static str {
        "print_stats"
    }

    fn anchor(&self) -> Anchor {
        Anchor::Func
    }

    fn run(&self, ir: &mut Ir, on: &[Op], cx: &mut PassContext<'_>) -> Changed {
        cx.matched(on.len() as u64);
        let all = cx.each(ir, on, stats);
        match self.format {
            ReportFormat::Json => cx.say(&format!("{}\n", json(&all))),
            ReportFormat::Text => {
                for stats in &all {
                    cx.say(&text(stats));
                }
            }
        }
        Changed::No
    }
}

fn stats(ir: &Ir, func: Op) -> Stats {
    let name = symbol_name(ir, func).map_or("", |name| ir.ctx.text(name));
    let mut stats = Stats {
        name: name.to_owned(),
        all: Count::default(),
        loops: 0,
        by_op: BTreeMap::new(),
        by_engine: BTreeMap::new(),
        moved: Count::default(),
        spaces: Vec::new(),
    };
    let target = target_of(ir, func);
    let mut ops: BTreeMap<u32, (Op, Count)> = BTreeMap::new();
    let mut times: Vec<u64> = vec![1];
    for visit in ir.walk_visits(func) {
        let op = match visit {
            Visit::Leave(_) => {
                times.pop();
                continue;
            }
            Visit::Enter(op) if op == func => {
                times.push(1);
                continue;
            }
            Visit::Enter(op) => op,
        };
        let executed = times.last().copied().unwrap_or(1);
        let def = OpCode::of(ir, op).map(OpCode::def);
        if !ir.regions(op).is_empty() {
            stats.loops += 1;
            times.push(executed.saturating_mul(trips(ir, op)));
        }
        if def.is_some_and(|def| def.syntax != Syntax::Instruction) {
            continue;
        }
        stats.all.add(1, executed);
        let row = ops.entry(ir.name(op).index() as u32);
        row.or_insert((op, Count::default())).1.add(1, executed);
        let Some(def) = def else { continue };
        if let Some(engines) = def.engines {
            let engine = OpView::new(ir, op).engine_attr();
            let engine = engine.unwrap_or_else(|| engines.default_on(target));
            stats
                .by_engine
                .entry(engine.name())
                .or_default()
                .add(1, executed);
        }
        if def.has(Trait::Dma) {
            let bytes = bytes_written(ir, op);
            stats.moved.add(bytes, bytes.saturating_mul(executed));
        }
    }
    for (op, count) in ops.into_values() {
        let name = ir.name_text(op);
        stats
            .by_op
            .insert(name.strip_prefix("bir.").unwrap_or(name).to_owned(), count);
    }
    let occupancy = Occupancy::of(ir, func);
    for &space in Space::ALL {
        let mut one = SpaceStats {
            peak: occupancy.peak(space),
            ..SpaceStats::default()
        };
        for location in occupancy.held.iter().filter(|held| held.space == space) {
            one.locations += 1;
            one.bytes = one
                .bytes
                .saturating_add(location.bytes.saturating_mul(location.partitions));
        }
        stats.spaces.push((space.name(), one));
    }
    stats
}

/// Trips of a loop; 1 where a register decides.
fn trips(ir: &Ir, op: Op) -> u64 {
    let int = |name| ir.ctx.attr_int(ir.ctx.dict_get(ir.dict(op), name)?);
    let (Some(lower), Some(upper)) = (int(names::LOWER), int(names::UPPER)) else {
        return 1;
    };
    let step = int(names::STEP).unwrap_or(1).max(1) as u128;
    let distance = (i128::from(upper) - i128::from(lower)).max(0) as u128;
    u64::try_from(distance.div_ceil(step)).unwrap_or(u64::MAX)
}

fn bytes_written(ir: &Ir, op: Op) -> u64 {
    let Some(def) = OpCode::of(ir, op).map(OpCode::def) else {
        return 0;
    };
    let mut bytes = 0u64;
    for operand in ir.operands(op) {
        let kind = def
            .operands
            .get(usize::from(operand.role))
            .map(|role| role.kind);
        if !matches!(kind, Some(Kind::Out | Kind::InOut)) {
            continue;
        }
        if let Some(mem) = MemType::get(&ir.ctx, ir.value_type(operand.value)) {
            let access = Access::resolve(&ir.ctx, &mem, operand.annot);
            let elements = access.elements().saturating_mul(access.partitions());
            let size = u64::from(access.dtype.size_bytes());
            bytes = bytes.saturating_add(elements.saturating_mul(size));
        }
    }
    bytes
}

fn text(stats: &Stats) -> String {
    let mut out = format!("statistics of @{}\n", stats.name);
    let mut row = |depth: usize, name: &str, count: Count| {
        let name = format!("{}{name}", "  ".repeat(depth));
        out.push_str(&format!(
            "{name:<32} {:>14} {:>18}\n",
            count.written, count.executed
        ));
    };
    row(1, "instructions (written, executed)", stats.all);
    for (name, &count) in &stats.by_op {
        row(2, name, count);
    }
    row(1, "by engine", stats.all);
    for (name, &count) in &stats.by_engine {
        row(2, name, count);
    }
    row(1, "bytes moved by dma", stats.moved);
    out.push_str(&format!("  {:<30} {:>14}\n", "loops", stats.loops));
    for (name, space) in &stats.spaces {
        let unit = if *name == "dram" {
            "bytes"
        } else {
            "bytes a partition"
        };
        out.push_str(&format!(
            "  {name}: {} locations, {} bytes; at most {} {unit} in use, at instruction {}\n",
            space.locations, space.bytes, space.peak.bytes, space.peak.at
        ));
    }
    out
}

fn json(all: &[Stats]) -> serde_json::Value {
    let count =
        |count: &Count| serde_json::json!({ "written": count.written, "executed": count.executed });
    let functions: Vec<serde_json::Value> = all
        .iter()
        .map(|stats| {
            let by_op: serde_json::Map<_, _> = stats
                .by_op
                .iter()
                .map(|(name, c)| (name.clone(), count(c)))
                .collect();
            let by_engine: serde_json::Map<_, _> = stats
                .by_engine
                .iter()
                .map(|(name, c)| ((*name).to_owned(), count(c)))
                .collect();
            let spaces: serde_json::Map<_, _> = stats
                .spaces
                .iter()
                .map(|(name, space)| {
                    let value = serde_json::json!({
                        "locations": space.locations,
                        "bytes": space.bytes,
                        "peak_bytes": space.peak.bytes,
                        "peak_at": space.peak.at,
                    });
                    ((*name).to_owned(), value)
                })
                .collect();
            serde_json::json!({
                "function": stats.name,
                "instructions": count(&stats.all),
                "loops": stats.loops,
                "by_op": by_op,
                "by_engine": by_engine,
                "dma_bytes": count(&stats.moved),
                "spaces": spaces,
            })
        })
        .collect();
    serde_json::json!({ "statistics": functions })
}
