//! Messages of anything that serde can write (Postcard format).

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::*;

impl Communicator {
    /// Sends any value (it travels serialized; plain data is faster by [`Communicator::send`]).
    ///
    /// # Errors
    /// As [`Communicator::send`], or the value cannot be written ([`CommError::Value`]).
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
    /// As [`Communicator::bcast`], or the value cannot be written or read ([`CommError::Value`]).
    pub fn bcast_value<V: Serialize + DeserializeOwned>(
        &self,
        value: Option<&V>,
        root: Rank,
    ) -> Result<V, CommError> {
        let mut bytes = match value {
            Some(value) if self.rank() == root => self.written(value)?,
            _ => vec![],
        };
        let mut length = [bytes.len()];
        self.bcast(&mut length, root)?;
        bytes.resize(length[0], 0);
        self.bcast(&mut bytes, root)?;
        read(&bytes, root)
    }

    fn written<V: Serialize + ?Sized>(&self, value: &V) -> Result<Vec<u8>, CommError> {
        let wrong = |error: postcard::Error| CommError::Value { from: self.rank(), what: error.to_string() };
        postcard::to_stdvec(value).map_err(wrong)
    }
}

fn read<V: DeserializeOwned>(bytes: &[u8], from: Rank) -> Result<V, CommError> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => Err(CommError::Value { from, what: format!("{} bytes are left over", rest.len()) }),
        Err(error) => Err(CommError::Value { from, what: error.to_string() }),
    }
}
