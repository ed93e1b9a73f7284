//! Messages of anything that serde can write (Postcard format).

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::*;

impl Communicator {
    /// Sends any value (it travels serialized; plain data is faster by [`Communicator::send`]).
    ///
    /// # Errors
    /// As [`Communicator::send`], or the value cannot be serialized ([`CommError::Value`]; nothing
    /// is sent).
    pub fn send_value<V: Serialize + ?Sized>(
        &self,
        value: &V,
        dest: Rank,
        tag: Tag,
    ) -> Result<(), CommError> {
        let bytes = self.written(value)?;
        self.send(&bytes, dest, tag)
    }

    /// Receives a value of any length.
    ///
    /// # Errors
    /// As [`Communicator::recv`], or the message is no such value ([`CommError::Value`]; it is consumed).
    pub fn recv_value<V: DeserializeOwned>(
        &self,
        source: impl Into<Source>,
        tag: impl Into<TagSel>,
    ) -> Result<(V, Status), CommError> {
        let mut message = self.mprobe(source, tag)?;
        let mut bytes = vec![0u8; message.status().bytes];
        let status = message.recv(&mut bytes)?;
        Ok((read(&bytes, status.source)?, status))
    }

    /// All ranks get the value of `root`; the others' `value` is ignored.
    ///
    /// # Errors
    /// As [`Communicator::bcast`]. [`CommError::Value`] on all ranks if the value cannot be
    /// serialized, or `root` has given none. If a rank cannot deserialize it, that rank returns
    /// [`CommError::Value`] when its part is done.
    pub fn bcast_value<V: Serialize + DeserializeOwned>(
        &self,
        value: Option<&V>,
        root: Rank,
    ) -> Result<V, CommError> {
        // Serializers are code of the program: a panic between the two broadcasts ends the job.
        let _guard = self.guard()?;
        let is_root = self.rank() == root;
        let written = match value.filter(|_| is_root) {
            Some(value) => serialized(value),
            None => Err("was not given: the root passed `None`".to_owned()),
        };
        // The root sends the reason if it has no bytes, so that no rank waits for these.
        let (mut head, mut bytes) = ([0u64; 2], vec![]);
        if is_root {
            let is_value = written.is_ok();
            bytes = written.unwrap_or_else(String::into_bytes);
            head = [u64::from(is_value), bytes.len() as u64];
        }
        self.bcast(&mut head, root)?;
        bytes.resize(head[1] as usize, 0);
        self.bcast(&mut bytes, root)?;
        match head[0] {
            0 => Err(CommError::Value { from: root, what: String::from_utf8_lossy(&bytes).into_owned() }),
            _ => read(&bytes, root),
        }
    }

    fn written<V: Serialize + ?Sized>(&self, value: &V) -> Result<Vec<u8>, CommError> {
        serialized(value).map_err(|what| CommError::Value { from: self.rank(), what })
    }
}

/// The bytes of a value, or why it has none.
fn serialized<V: Serialize + ?Sized>(value: &V) -> Result<Vec<u8>, String> {
    postcard::to_stdvec(value).map_err(|error| format!("cannot be serialized: {error}"))
}

fn read<V: DeserializeOwned>(bytes: &[u8], from: Rank) -> Result<V, CommError> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => {
            let what = format!("cannot be deserialized: {} bytes are left over", rest.len());
            Err(CommError::Value { from, what })
        }
        Err(error) => Err(CommError::Value { from, what: format!("cannot be deserialized: {error}") }),
    }
}
