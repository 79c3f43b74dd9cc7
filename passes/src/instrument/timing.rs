//! `--timing`: time, time per instruction and peak memory, per pass, as a tree of anchors.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bir_dialect::ir::Ir;
use bir_dialect::text::diag::Diagnostics;

use super::{
    Flow, Instrument, Log, PassEvent, PassReport, ReportFormat, Verdict, instruction_count,
};
use crate::pass::Anchor;

struct Row {
    /// `None` for what is no pass: reading, verifying, printing.
    anchor: Option<Anchor>,
    index: usize,
    name: String,
    time: Duration,
    instructions: u64,
    peak: Option<u64>,
}

/// The times of a run, shared by the instrument and the tool, which adds reading and printing.
#[derive(Clone, Default)]
pub struct TimingReport {
    rows: Rc<RefCell<Vec<Row>>>,
}

impl TimingReport {
    /// Adds time spent outside of passes.
    pub fn add(&self, name: &str, time: Duration) {
        self.add_row(None, usize::MAX, name, time, 0);
    }

    fn add_row(
        &self,
        anchor: Option<Anchor>,
        index: usize,
        name: &str,
        time: Duration,
        instructions: u64,
    ) {
        let mut rows = self.rows.borrow_mut();
        let known = rows
            .iter()
            .position(|row| row.index == index && row.name == name);
        let at = known.unwrap_or_else(|| {
            rows.push(Row {
                anchor,
                index,
                name: name.to_owned(),
                time: Duration::ZERO,
                instructions: 0,
                peak: None,
            });
            rows.len() - 1
        });
        let row = &mut rows[at];
        row.time += time;
        row.instructions += instructions;
        row.peak = peak_memory();
    }

    /// The report.
    pub fn render(&self, format: ReportFormat) -> String {
        let rows = self.rows.borrow();
        let total: Duration = rows.iter().map(|row| row.time).sum();
        match format {
            ReportFormat::Json => json(&rows, total),
            ReportFormat::Text => text(&rows, total),
        }
    }
}

/// Microseconds per instruction; 0 where there are none.
fn per_instruction(row: &Row) -> f64 {
    match row.instructions {
        0 => 0.0,
        count => row.time.as_secs_f64() * 1e6 / count as f64,
    }
}

fn json(rows: &[Row], total: Duration) -> String {
    let list: Vec<serde_json::Value> = rows
        .iter()
        .map(|row| match row.anchor {
            None => serde_json::json!({
                "phase": row.name,
                "seconds": row.time.as_secs_f64(),
                "peak_bytes": row.peak,
            }),
            Some(anchor) => serde_json::json!({
                "pass": row.name,
                "number": row.index,
                "anchor": anchor.name(),
                "seconds": row.time.as_secs_f64(),
                "instructions": row.instructions,
                "us_per_instruction": per_instruction(row),
                "peak_bytes": row.peak,
            }),
        })
        .collect();
    let report = serde_json::json!({ "timing": list, "seconds": total.as_secs_f64() });
    format!("{report}\n")
}

fn text(rows: &[Row], total: Duration) -> String {
    let mut out = String::from("timing\n      time      %   us/instr   peak MB  name\n");
    let share = |time: Duration| match total.as_nanos() {
        0 => 0.0,
        _ => 100.0 * time.as_secs_f64() / total.as_secs_f64(),
    };
    let mut line =
        |time: Duration, us: Option<f64>, peak: Option<u64>, depth: usize, name: &str| {
            let us = us.map_or(String::new(), |us| format!("{us:.3}"));
            let peak = peak.map_or(String::new(), |peak| format!("{:.1}", peak as f64 / 1e6));
            out.push_str(&format!(
                "  {:>8} {:>6.1} {us:>10} {peak:>9}  {}{name}\n",
                time_text(time),
                share(time),
                "  ".repeat(depth)
            ));
        };
    // Neighbours of one anchor stand below one line with their sum, as in the pipeline's text.
    let mut depth = 0;
    for (at, row) in rows.iter().enumerate() {
        let level = row.anchor.map_or(0, |anchor| anchor as usize + 1);
        for open in depth..level {
            let group = rows[at..]
                .iter()
                .take_while(|row| row.anchor.is_some_and(|anchor| anchor as usize >= open));
            let sum = group.map(|row| row.time).sum();
            line(sum, None, None, open, Anchor::ALL[open].name());
        }
        depth = level;
        let us = row.anchor.map(|_| per_instruction(row));
        line(row.time, us, row.peak, level, &row.name);
    }
    line(total, None, peak_memory(), 0, "total");
    out
}

fn time_text(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds >= 1.0 {
        format!("{seconds:.2} s")
    } else if seconds >= 1e-3 {
        format!("{:.2} ms", seconds * 1e3)
    } else {
        format!("{:.1} us", seconds * 1e6)
    }
}

/// Largest resident memory of the process so far, in bytes, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Times passes.
pub struct Timing {
    report: TimingReport,
    format: ReportFormat,
    instructions: u64,
    start: Instant,
}

impl Timing {
    /// Adds to `report` and prints it at the end.
    pub fn new(report: TimingReport, format: ReportFormat) -> Timing {
        Timing {
            report,
            format,
            instructions: 0,
            start: Instant::now(),
        }
    }
}

impl Instrument for Timing {
    fn before_pass(&mut self, _event: &PassEvent<'_>, ir: &Ir, _log: &mut dyn Log) -> Verdict {
        self.instructions = instruction_count(ir);
        self.start = Instant::now();
        Verdict::Run
    }

    fn after_pass(
        &mut self,
        event: &PassEvent<'_>,
        ir: &Ir,
        _report: &PassReport,
        _log: &mut dyn Log,
        _diags: &mut Diagnostics,
    ) -> Flow {
        let time = self.start.elapsed();
        // A pass that makes instructions is measured by what it made.
        let instructions = self.instructions.max(instruction_count(ir));
        let anchor = Some(event.pass.anchor());
        self.report
            .add_row(anchor, event.index, event.pass.name(), time, instructions);
        Flow::Continue
    }

    fn finish(&mut self, log: &mut dyn Log) {
        log.write(&self.report.render(self.format));
    }
}
