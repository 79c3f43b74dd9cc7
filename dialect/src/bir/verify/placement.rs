//! Where a location is placed: inside its memory, PSUM at a bank's start.

use super::super::attrs::Placement;
use super::super::space::{PARTITIONS, PSUM_BANK_BYTES, PSUM_BANKS, Space, Target};
use super::super::types::MemType;

/// What is wrong with placing a location of type `mem` at `at`.
pub(super) fn placement_fault(mem: &MemType<'_>, at: Placement, target: Target) -> Option<String> {
    let space = mem.space;
    let bytes = mem.free_bytes().unwrap_or(u64::MAX);
    let (partition, byte, limit) = match (space, at) {
        (Space::Dram, Placement::Address(address)) => {
            let end = address.saturating_add(bytes);
            return (end > target.dram_bytes()).then(|| {
                format!(
                    "ends at address {end:#x}, but `dram` of `{target}` has {:#x} bytes",
                    target.dram_bytes()
                )
            });
        }
        (Space::Sbuf, Placement::Bytes { partition, byte }) => {
            (partition, byte, target.sbuf_bytes())
        }
        (Space::Psum, Placement::Bank { partition, bank }) => {
            if u64::from(bank) >= PSUM_BANKS {
                return Some(format!(
                    "is in bank {bank}, but `psum` has banks 0 to {}",
                    PSUM_BANKS - 1
                ));
            }
            (
                partition,
                u64::from(bank) * PSUM_BANK_BYTES,
                target.psum_bytes(),
            )
        }
        (Space::Psum, Placement::Bytes { partition, byte }) => {
            if byte % PSUM_BANK_BYTES != 0 {
                return Some(format!(
                    "starts at byte {byte:#x}, but a `psum` location starts at a bank, a multiple of {PSUM_BANK_BYTES:#x}"
                ));
            }
            (partition, byte, target.psum_bytes())
        }
        (Space::Dram, _) => return Some("has a partition, but `dram` takes an address".to_owned()),
        (_, Placement::Address(_)) => {
            return Some(format!(
                "is an address, but `{space}` takes a partition and a byte or bank"
            ));
        }
        (Space::Sbuf, Placement::Bank { .. }) => {
            return Some("names a bank, but `sbuf` takes a byte".to_owned());
        }
    };
    let size = u64::from(mem.dtype.size_bytes());
    if byte % size != 0 {
        return Some(format!(
            "is at byte {byte:#x}, no multiple of the {size} bytes of an element"
        ));
    }
    let end = byte.saturating_add(bytes);
    if end > limit {
        return Some(format!(
            "covers bytes {byte} to {} of each partition, but a partition of `{space}` of `{target}` has {limit}",
            end - 1
        ));
    }
    let last = u64::from(partition).saturating_add(mem.partitions());
    (last > u64::from(PARTITIONS)).then(|| {
        format!(
            "covers partitions {partition} to {}, but `{space}` has partitions 0 to {}",
            last - 1,
            PARTITIONS - 1
        )
    })
}
