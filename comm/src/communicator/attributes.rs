//! Values that a program, or a library within it, attaches to a communicator on this rank (MPI 4.1, section 7.7). A value's type is its key.

use std::any::{Any, TypeId};
use std::collections::HashMap;

use super::*;

/// See the module.
#[derive(Clone, Default)]
pub(super) struct Attributes(HashMap<TypeId, Rc<dyn Any>>);

fn of<T: 'static>(value: Option<Rc<dyn Any>>) -> Option<Rc<T>> {
    value.and_then(|value| value.downcast().ok())
}

impl Communicator {
    /// Attaches a value to the communicator, on this rank (`MPI_Comm_set_attr`); gives the one of this type that was attached before. All handles of the communicator have it, also after a repair,
    /// as long as one of them lives; [`Communicator::dup`] hands it on to the copy, other new communicators have none. It belongs to the process: one that replaces a lost one attaches its own.
    /// A value that holds a handle of this very communicator keeps it open until the value is taken
    /// off.
    ///
    /// ```
    /// struct Workspace(Vec<f64>);
    ///
    /// # fn main() -> Result<(), ft_comm::CommError> {
    /// let mut world = ft_comm::World::init()?;
    /// let comm = world.comm().clone();
    /// comm.set_attribute(Workspace(vec![0.0; 100]));
    /// assert_eq!(comm.dup()?.attribute::<Workspace>().map(|own| own.0.len()), Some(100));
    /// # Ok(world.finalize(Vec::new())?)
    /// # }
    /// ```
    pub fn set_attribute<T: 'static>(&self, value: T) -> Option<Rc<T>> {
        of(self.shared.attributes.borrow_mut().0.insert(TypeId::of::<T>(), Rc::new(value)))
    }

    /// The value of this type that is attached to it here (`MPI_Comm_get_attr`).
    pub fn attribute<T: 'static>(&self) -> Option<Rc<T>> {
        of(self.shared.attributes.borrow().0.get(&TypeId::of::<T>()).cloned())
    }

    /// Takes it off (`MPI_Comm_delete_attr`).
    pub fn delete_attribute<T: 'static>(&self) -> Option<Rc<T>> {
        of(self.shared.attributes.borrow_mut().0.remove(&TypeId::of::<T>()))
    }

    /// A copy has what this one has.
    pub(super) fn hand_attributes_to(&self, copy: &Self) {
        copy.shared.attributes.replace(self.shared.attributes.borrow().clone());
    }
}
