//! Element types that travel as bytes.

/// Plain data: any bit pattern is a value, no padding, no pointers. Travels without being serialized, in the
/// byte order of the machine (all ranks of a job run on machines of one byte order).
pub trait Plain: bytemuck::Pod {}

impl<T: bytemuck::Pod> Plain for T {}
