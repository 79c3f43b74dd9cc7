//! `--pass-statistics`: what passes counted, added up over a run.

use bir_dialect::ir::Ir;
use bir_dialect::text::diag::Diagnostics;

use super::{Flow, Instrument, Log, PassEvent, PassReport, ReportFormat};
use crate::pass::{Changed, Statistic};

struct Row {
    index: usize,
    pass: &'static str,
    runs: u64,
    changed: u64,
    declared: &'static [Statistic],
    counters: Vec<u64>,
}

/// Adds up the statistics of each pass of the pipeline.
pub struct Statistics {
    format: ReportFormat,
    rows: Vec<Row>,
}

impl Statistics {
    /// Nothing counted yet.
    pub fn new(format: ReportFormat) -> Statistics {
        Statistics {
            format,
            rows: Vec::new(),
        }
    }

    fn json(&self) -> String {
        let passes: Vec<serde_json::Value> = self
            .rows
            .iter()
            .map(|row| {
                let counts: serde_json::Map<String, serde_json::Value> = row
                    .declared
                    .iter()
                    .zip(&row.counters)
                    .map(|(statistic, &count)| (statistic.name.to_owned(), count.into()))
                    .collect();
                serde_json::json!({
                    "pass": row.pass,
                    "number": row.index,
                    "runs": row.runs,
                    "changed": row.changed,
                    "statistics": counts,
                })
            })
            .collect();
        format!("{}\n", serde_json::json!({ "pass_statistics": passes }))
    }

    fn text(&self) -> String {
        let mut out = String::from("pass statistics\n");
        for row in &self.rows {
            let what = match row.changed {
                0 => "changed nothing",
                _ => "changed the module",
            };
            out.push_str(&format!("  {} {}: {what}\n", row.index, row.pass));
            for (statistic, count) in row.declared.iter().zip(&row.counters) {
                out.push_str(&format!(
                    "    {count:>10}  {:<24} {}\n",
                    statistic.name, statistic.doc
                ));
            }
        }
        out
    }
}

impl Instrument for Statistics {
    fn after_pass(
        &mut self,
        event: &PassEvent<'_>,
        _ir: &Ir,
        report: &PassReport,
        _log: &mut dyn Log,
        _diags: &mut Diagnostics,
    ) -> Flow {
        let at = match self.rows.iter().position(|row| row.index == event.index) {
            Some(at) => at,
            None => {
                let declared = event.pass.statistics();
                self.rows.push(Row {
                    index: event.index,
                    pass: event.pass.name(),
                    runs: 0,
                    changed: 0,
                    declared,
                    counters: vec![0; declared.len()],
                });
                self.rows.len() - 1
            }
        };
        let row = &mut self.rows[at];
        row.runs += 1;
        row.changed += u64::from(report.changed == Changed::Yes);
        for (total, count) in row.counters.iter_mut().zip(&report.counters) {
            *total = total.saturating_add(*count);
        }
        Flow::Continue
    }

    fn finish(&mut self, log: &mut dyn Log) {
        let text = match self.format {
            ReportFormat::Json => self.json(),
            ReportFormat::Text => self.text(),
        };
        log.write(&text);
    }
}
