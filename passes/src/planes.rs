//! The named pipelines `-O0` to `-O3`, with the passes' order numbers.

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Order number, a range of them, or `-` where it has none.
    pub order: &'static str,
    /// Name of the pass.
    pub pass: &'static str,
    /// Options that differ from the defaults.
    pub options: &'static [(&'static str, &'static str)],
    /// The levels it belongs to, as bits.
    levels: u8,
}

/// One named pipeline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plane(u8);

const O0: u8 = 1;
const O1: u8 = 2;
const O2: u8 = 4;
const O3: u8 = 8;
const FROM_O1: u8 = O1 | O2 | O3;
const FROM_O2: u8 = O2 | O3;
const ALL: u8 = O0 | FROM_O1;

const fn entry(order: &'static str, pass: &'static str, levels: u8) -> Entry {
    Entry {
        order,
        pass,
        options: &[],
        levels,
    }
}

static ENTRIES: &[Entry] = &[
    entry("9", "unroll", O0 | FROM_O2),
    entry("11", "dead_code_elim_o1", FROM_O1),
    entry("12", "localize_shared_memory", ALL),
    entry("13-15", "verifier", O0 | FROM_O2),
    entry("16", "instruction_reorder", FROM_O1),
    entry("17", "non_ssa_legalization", ALL),
    entry("18-19", "legalize_dma", O0 | FROM_O2),
    entry("20", "pre_opts", ALL),
    entry("26", "constant_propagate", ALL),
    entry("29", "input_dma_coalescing", O0 | FROM_O2),
    entry("30", "remat_optimization", O3),
    entry("31", "early_peephole_opts", FROM_O1),
    entry("33", "pre_sched", ALL),
    entry("34", "tensor_copy_elim", ALL),
    entry("40", "linear_scan_allocator", O0),
    entry("44", "coloring_allocator_psum", FROM_O2),
    entry("50", "dce", FROM_O2),
    entry("51", "coloring_allocator_sb", FROM_O2),
    entry("58", "tensorcopy_accel", O0 | FROM_O2),
    entry("59", "peephole_opts", FROM_O2),
    entry("65", "non_ssa_legalization", FROM_O1),
    entry("66", "dead_code_elim_o0", ALL),
    entry("68", "coloring_allocator_dram", FROM_O2),
    entry("74", "build_fdeps", O0 | FROM_O2),
    entry("75", "remove_redundancies", ALL),
    entry("76", "anti_dependency_analyzer", O0 | FROM_O2),
    entry("77", "tensor_copy_elim", O0 | FROM_O2),
    entry("-", "dep_reduction", O0 | FROM_O2),
    entry("92", "post_sched", O0 | FROM_O2),
    entry("97", "dce", O0 | FROM_O2),
];

impl Plane {
    /// The pipeline of a level from 0 to 3.
    pub fn new(level: u8) -> Option<Plane> {
        (level <= 3).then_some(Plane(level))
    }

    /// `-O2`
    pub fn name(self) -> String {
        format!("-O{}", self.0)
    }

    /// Its passes, those this version lacks included.
    pub fn entries(self) -> impl Iterator<Item = &'static Entry> {
        ENTRIES
            .iter()
            .filter(move |entry| entry.levels & 1 << self.0 != 0)
    }
}

/// The order number of a pass that some named pipeline has.
pub fn order_of(pass: &str) -> Option<&'static str> {
    ENTRIES
        .iter()
        .find(|entry| crate::options::same_name(entry.pass, pass))
        .map(|entry| entry.order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    fn orders(level: u8) -> Vec<&'static str> {
        Plane::new(level)
            .unwrap()
            .entries()
            .map(|entry| entry.order)
            .collect()
    }

    #[test]
    fn o1_has_the_orders_the_design_lists() {
        let wanted = "11 12 16 17 20 26 31 33 34 65 66 75";
        assert_eq!(orders(1).join(" "), wanted);
    }

    #[test]
    fn o0_has_one_ssa_exit_linear_scan_and_no_coloring_or_peepholes() {
        let names: Vec<_> = Plane::new(0)
            .unwrap()
            .entries()
            .map(|entry| entry.pass)
            .collect();
        assert_eq!(
            names
                .iter()
                .filter(|&&name| name == "non_ssa_legalization")
                .count(),
            1
        );
        assert!(names.contains(&"linear_scan_allocator"));
        let banned = [
            "instruction_reorder",
            "dead_code_elim_o1",
            "peephole",
            "coloring",
        ];
        assert!(
            names
                .iter()
                .all(|name| banned.iter().all(|word| !name.contains(word)))
        );
    }

    #[test]
    fn o3_is_o2_and_remat() {
        let without: Vec<_> = orders(3)
            .into_iter()
            .filter(|&order| order != "30")
            .collect();
        assert_eq!(without, orders(2));
        assert!(orders(3).contains(&"30"));
    }

    #[test]
    fn options_of_entries_are_options_of_their_passes() {
        for entry in ENTRIES {
            let Some(mut pass) = Registry::new().make(entry.pass) else {
                continue;
            };
            for &(name, value) in entry.options {
                let number = pass
                    .option_defs()
                    .iter()
                    .position(|def| def.name == name)
                    .unwrap();
                pass.set_option(number, value).unwrap();
            }
        }
    }
}
