//! What links within this host have to do without, for users who ask.

use super::Carrier;
use super::cross_memory::Neighbor;
use super::ring::{Ring, Room};
use crate::limits;

/// Bytes of the memory that is tried.
const TRIED: usize = 4096;

/// What processes that are limited as this one is cannot have of what `carrier` would use within a host, a line each. Messages arrive without it too, later.
pub fn shortcomings(carrier: Carrier) -> Vec<String> {
    if carrier != Carrier::Auto {
        return vec![];
    }
    let memory = Ring::create(TRIED, &Room::default()).err().map(|error| {
        let why = limits::explain(&error);
        format!("messages within this host go through sockets: no memory can be shared ({why})")
    });
    let word = Box::new([7_u8; 8]);
    let mut into = [0; 8];
    let is_read = Neighbor::myself().read(word.as_ptr() as u64, &mut into) && into == *word;
    let reading = (!is_read).then(|| {
        "long messages within this host are copied twice: memory of other processes cannot be read (process_vm_readv)".to_owned()
    });
    memory.into_iter().chain(reading).collect()
}
