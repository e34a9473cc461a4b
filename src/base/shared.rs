//! A shared value whose type the compiler does not look into.
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

/// An [`Arc`] that is `Send` and `Sync` whatever it points to.
///
/// An `Arc<T>` in a future makes the compiler check every type within `T`, again for each asynchronous function that
/// holds one across an `await`. For the parts of the whole gateway that took half a second for each handler of a request.
pub struct Shared<T> {
    value: Arc<dyn Any + Send + Sync>,
    value_type: PhantomData<fn() -> T>,
}

impl<T: Send + Sync + 'static> Shared<T> {
    /// Shares a value.
    pub fn new(value: T) -> Self {
        Self { value: Arc::new(value), value_type: PhantomData }
    }

    /// Returns the value, unless it has other owners.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        Arc::get_mut(&mut self.value)?.downcast_mut()
    }
}

impl<T: Default + Send + Sync + 'static> Default for Shared<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self { value: self.value.clone(), value_type: PhantomData }
    }
}

impl<T: 'static> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.downcast_ref().expect("`new` made it from a `T`")
    }
}

impl<T: fmt::Debug + 'static> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}
