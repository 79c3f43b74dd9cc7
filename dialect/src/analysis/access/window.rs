//! Where a compute operand's partitions may start.
//!
//! One to 32 partitions start at 0, 32, 64 or 96; 33 to 64 at 0 or 64; more at 0. DMA sides may
//! start anywhere. The rule holds for base partition plus window once a location is placed.

use std::fmt;

/// Why a partition window is illegal for a compute operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowFault {
    /// It does not lie within the 128 partitions.
    Outside {
        /// First partition.
        start: i64,
        /// Number of partitions.
        count: u64,
    },
    /// A window of that size starts elsewhere.
    Start {
        /// First partition.
        start: i64,
        /// Number of partitions.
        count: u64,
        /// Where it may start.
        legal: &'static [i64],
    },
}

impl fmt::Display for WindowFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            WindowFault::Outside { start, count } => write!(
                f,
                "partitions {start}:{} are outside 0:128",
                i128::from(start) + i128::from(count)
            ),
            WindowFault::Start {
                start,
                count,
                legal,
            } => {
                let places: Vec<String> = legal.iter().map(i64::to_string).collect();
                write!(
                    f,
                    "{count} partitions start at {}, found {start}",
                    places.join(", ")
                )
            }
        }
    }
}

/// What is wrong with `count` partitions from `start` as a compute operand's window.
pub fn window_fault(start: i64, count: u64) -> Option<WindowFault> {
    let legal: &'static [i64] = match count {
        1..=32 => &[0, 32, 64, 96],
        33..=64 => &[0, 64],
        65..=128 => &[0],
        _ => return Some(WindowFault::Outside { start, count }),
    };
    if start < 0 || start + count as i64 > 128 {
        return Some(WindowFault::Outside { start, count });
    }
    (!legal.contains(&start)).then_some(WindowFault::Start {
        start,
        count,
        legal,
    })
}
