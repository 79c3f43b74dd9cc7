//! `print_memory_map`: who sits where in memory, and when.

use std::fmt::Write as _;

use bir_dialect::bir::program::symbol_name;
use bir_dialect::bir::space::Space;
use bir_dialect::ir::{Ir, Op};

use crate::occupancy::{Held, Occupancy};
use crate::options::OptionValue;
use crate::pass::{Anchor, Changed, Pass, PassContext};
use crate::pass_options;

/// How the map is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapFormat {
    /// A table.
    Text,
    /// A picture: addresses upwards, instructions to the right.
    Svg,
}

impl OptionValue for MapFormat {
    const KIND: &'static str = "text|svg";

    fn parse(text: &str) -> Result<MapFormat, String> {
        match text {
            "text" => Ok(MapFormat::Text),
            "svg" => Ok(MapFormat::Svg),
            _ => Err(format!("expected `text` or `svg`, found `{text}`")),
        }
    }

    fn print(&self) -> String {
        match self {
            MapFormat::Text => "text".to_owned(),
            MapFormat::Svg => "svg".to_owned(),
        }
    }
}

pass_options! {
    /// Prints who sits where in memory, and from which instruction to which.
    ///
    /// Locations without a placement are stacked in the order they stand in, marked `?`.
    /// Instructions are numbered as control reaches them. The map goes to standard error or into `file`;
    /// with several functions, their names go into the file's.
    pub struct PrintMemoryMap {
        /// A table or a picture
        format: MapFormat = MapFormat::Text,
        /// Where to write it; empty means standard error
        file: String = String::new(),
    }
}

impl Pass for PrintMemoryMap {
    fn name(&self) -> &'static str {
        "print_memory_map"
    }

    fn anchor(&self) -> Anchor {
        Anchor::Func
    }

    fn run(&self, ir: &mut Ir, on: &[Op], cx: &mut PassContext<'_>) -> Changed {
        cx.matched(on.len() as u64);
        let format = self.format;
        let maps = cx.each(ir, on, |ir, func| {
            let name = symbol_name(ir, func).map_or("", |name| ir.ctx.text(name));
            let occupancy = Occupancy::of(ir, func);
            let map = match format {
                MapFormat::Text => table(name, &occupancy),
                MapFormat::Svg => picture(name, &occupancy),
            };
            (name.to_owned(), map)
        });
        for (name, map) in maps {
            if self.file.is_empty() {
                cx.say(&map);
            } else if on.len() == 1 {
                cx.file(&self.file, map);
            } else {
                let (stem, end) = match self.file.rsplit_once('.') {
                    Some((stem, end)) if !end.contains('/') => (stem, format!(".{end}")),
                    _ => (self.file.as_str(), String::new()),
                };
                cx.file(&format!("{stem}.{name}{end}"), map);
            }
        }
        Changed::No
    }
}

/// A location with an address.
struct Row<'a> {
    held: &'a Held,
    placed: bool,
    partition: u64,
    byte: u64,
}

/// The locations of a space by address.
fn rows(held: &[Held], space: Space) -> Vec<Row<'_>> {
    let mut next = 0u64;
    let mut rows: Vec<Row<'_>> = Vec::new();
    for one in held.iter().filter(|held| held.space == space) {
        let (placed, (partition, byte)) = match one.place {
            Some(place) => (true, place),
            None => {
                next = next.saturating_add(one.bytes);
                (false, (0, next - one.bytes))
            }
        };
        rows.push(Row {
            held: one,
            placed,
            partition,
            byte,
        });
    }
    rows.sort_by_key(|row| (!row.placed, row.byte, row.partition));
    rows
}

fn table(name: &str, occupancy: &Occupancy) -> String {
    let mut out = format!("memory map of @{name}\n");
    for &space in Space::ALL {
        let rows = rows(&occupancy.held, space);
        if rows.is_empty() {
            continue;
        }
        let peak = occupancy.peak(space);
        let unit = if space == Space::Dram {
            ""
        } else {
            " a partition"
        };
        let _ = writeln!(
            out,
            "  {}: at most {} bytes{unit} in use, at instruction {}",
            space.name(),
            peak.bytes,
            peak.at
        );
        for row in &rows {
            let mark = if row.placed { ' ' } else { '?' };
            let end = row.byte.saturating_add(row.held.bytes);
            let when = match row.held.span {
                Some((first, last)) => format!("{first}..{last}"),
                None => "never used".to_owned(),
            };
            let partitions = match space {
                Space::Dram => String::new(),
                _ => format!("p{}:{}", row.partition, row.partition + row.held.partitions),
            };
            let _ = writeln!(
                out,
                "   {mark}{:>#10x}..{end:<#10x} {partitions:<8} {when:<14} %{} {}",
                row.byte, row.held.name, row.held.ty
            );
        }
    }
    out
}

/// Width of the pictures, and height of one space.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 90.0;

fn picture(name: &str, occupancy: &Occupancy) -> String {
    let ends = occupancy.held.iter().filter_map(|held| held.span);
    let count = ends.map(|(_, last)| last + 1).max().unwrap_or(1);
    let spaces: Vec<(Space, Vec<Row<'_>>)> = Space::ALL
        .iter()
        .map(|&space| (space, rows(&occupancy.held, space)))
        .filter(|(_, rows)| !rows.is_empty())
        .collect();
    let full = 40.0 + spaces.len() as f64 * (HEIGHT + 50.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{full}\" font-family=\"monospace\" font-size=\"11\">\n",
        LEFT + WIDTH + 20.0
    );
    let _ = writeln!(
        out,
        "<text x=\"8\" y=\"20\" font-size=\"14\">@{}: instructions 0..{}</text>",
        escape(name),
        count - 1
    );
    let mut top = 40.0;
    for (space, rows) in &spaces {
        let end = rows
            .iter()
            .map(|row| row.byte.saturating_add(row.held.bytes))
            .max();
        let end = end.unwrap_or(1).max(1) as f64;
        let _ = writeln!(
            out,
            "<text x=\"8\" y=\"{}\">{} 0..{end}</text>\n<rect x=\"{LEFT}\" y=\"{top}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#888\"/>",
            top + 12.0,
            space.name()
        );
        for row in rows {
            let Some((first, last)) = row.held.span else {
                continue;
            };
            let scale = WIDTH / f64::from(count);
            let (x, width) = (
                LEFT + first as f64 * scale,
                (last + 1 - first) as f64 * scale,
            );
            let height = row.held.bytes as f64 / end * HEIGHT;
            let y = top + HEIGHT - row.byte as f64 / end * HEIGHT - height;
            let (color, dash) = match row.placed {
                true => ("#9ecae1", ""),
                false => ("#ddd", " stroke-dasharray=\"3 2\""),
            };
            let label = escape(&row.held.name);
            let _ = writeln!(
                out,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{color}\" stroke=\"#333\"{dash}><title>%{label} {} at {:#x}, instructions {first}..{last}</title></rect>",
                escape(&row.held.ty),
                row.byte
            );
            if height >= 10.0 {
                let _ = writeln!(
                    out,
                    "<text x=\"{:.1}\" y=\"{:.1}\">%{label}</text>",
                    x + 3.0,
                    y + 10.0
                );
            }
        }
        top += HEIGHT + 50.0;
    }
    out.push_str("</svg>\n");
    out
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
