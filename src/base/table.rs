//! Tables: collections of documents whose keys and values have types.
//!
//! A document that cannot be decoded is an [`UnreadableDocument`]: an error of [`Table::get`], and of each [`Row`] on its
//! own. A reader that can do without the document calls [`Table::get_readable`], or [`Table::get_or_log`] if an operator
//! has to know.
mod codec;

pub use codec::{AsJson, Codec, encode};

use crate::collections::Collection;
use crate::error::log_unreadable;
use penstock_store::{DocumentRange, Error, NEW_COUNTERS, Read, Transaction, UnreadableDocument};
use std::marker::PhantomData;

/// Implements [`Codec`] for a struct that is stored as its fields, one after the other.
#[macro_export]
macro_rules! store_as_fields {
    ($name:ty: $($field:ident: $form:ty),+) => {
        impl $crate::table::Codec for $name {
            type Owned = Self;
            type Ref<'v> = &'v Self;

            fn write(value: &Self, _is_last: bool, bytes: &mut Vec<u8>) {
                $(<$form as $crate::table::Codec>::write(value.$field, false, bytes);)+
            }

            fn read(bytes: &mut &[u8], _is_last: bool) -> Result<Self, String> {
                Ok(Self { $($field: <$form as $crate::table::Codec>::read(bytes, false)?),+ })
            }
        }
    };
}

/// A collection whose keys have the form `K` and whose values have the form `V`.
#[derive(Debug)]
pub struct Table<K, V> {
    collection: Collection,
    forms: PhantomData<fn(K) -> V>,
}

impl<K, V> Clone for Table<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Table<K, V> {}

impl<K: Codec, V: Codec> Table<K, V> {
    /// Creates the table of a collection.
    pub const fn new(collection: Collection) -> Self {
        Self { collection, forms: PhantomData }
    }

    /// Returns its collection.
    pub const fn collection(&self) -> Collection {
        self.collection
    }

    /// Returns the table of the same documents with another form of the values.
    pub const fn with_values<W: Codec>(&self) -> Table<K, W> {
        Table::new(self.collection)
    }

    /// Reads a value.
    ///
    /// # Errors
    /// The errors of the store, and [`Error::Unreadable`].
    pub fn get(&self, read: &dyn Read, key: K::Ref<'_>) -> Result<Option<V::Owned>, Error> {
        Ok(self.row(read, key)?.map(|row| row.value()).transpose()?)
    }

    /// Reads a value; `None` also if it cannot be decoded.
    pub fn get_readable(
        &self,
        read: &dyn Read,
        key: K::Ref<'_>,
    ) -> Result<Option<V::Owned>, Error> {
        Ok(self.row(read, key)?.and_then(|row| row.value().ok()))
    }

    /// Reads a value; `None` also if it cannot be decoded, which is logged as an error.
    pub fn get_or_log(&self, read: &dyn Read, key: K::Ref<'_>) -> Result<Option<V::Owned>, Error> {
        Ok(self.row(read, key)?.and_then(|row| row.value_or_log()))
    }

    /// Reads a document without decoding it.
    pub fn row(&self, read: &dyn Read, key: K::Ref<'_>) -> Result<Option<Row<K, V>>, Error> {
        let key = encode::<K>(key);
        let value = read.read_document(self.collection.name, &key)?;
        Ok(value.map(|value| Row { table: *self, key, value }))
    }

    /// Returns whether there is a document with this key, also if it cannot be decoded.
    pub fn contains(&self, read: &dyn Read, key: K::Ref<'_>) -> Result<bool, Error> {
        Ok(read.read_document(self.collection.name, &encode::<K>(key))?.is_some())
    }

    /// Stores a value.
    pub fn put(
        &self,
        transaction: &mut Transaction<'_>,
        key: K::Ref<'_>,
        value: V::Ref<'_>,
    ) -> Result<(), Error> {
        transaction.put_document(self.collection.name, &encode::<K>(key), &encode::<V>(value))
    }

    /// Stores a value, and returns the number of its bytes.
    pub fn put_sized(
        &self,
        transaction: &mut Transaction<'_>,
        key: K::Ref<'_>,
        value: V::Ref<'_>,
    ) -> Result<u64, Error> {
        let value = encode::<V>(value);
        transaction.put_document(self.collection.name, &encode::<K>(key), &value)?;
        Ok(value.len() as u64)
    }

    /// Deletes a document, if there is one with this key.
    pub fn delete(&self, transaction: &mut Transaction<'_>, key: K::Ref<'_>) -> Result<(), Error> {
        transaction.delete_document(self.collection.name, &encode::<K>(key))
    }

    /// Returns a scan of all rows, in the order of their keys.
    pub fn scan(&self) -> Scan<K, V> {
        Scan { table: *self, prefix: Vec::new(), after: None, is_reverse: false }
    }

    fn decode<C: Codec>(
        &self,
        key: &[u8],
        mut bytes: &[u8],
    ) -> Result<C::Owned, UnreadableDocument> {
        let decoded = C::read(&mut bytes, true).and_then(|value| {
            if bytes.is_empty() { Ok(value) } else { Err("it is too long".to_owned()) }
        });
        let Collection { name, document, .. } = self.collection;
        decoded.map_err(|cause| {
            let place = format!("{name}/{}", key.escape_ascii());
            UnreadableDocument { document, place, cause }
        })
    }
}

impl<K: Codec> Table<K, u64> {
    /// Reads the last number of a counter. One that is not there yet begins at 0, or where the last restore put the
    /// counters: it may have been there, and have issued numbers that the backup did not have.
    ///
    /// # Errors
    /// The errors of the store, and [`Error::Unreadable`].
    pub fn last_number(&self, read: &dyn Read, key: K::Ref<'_>) -> Result<u64, Error> {
        if let Some(number) = self.get(read, key)? {
            return Ok(number);
        }
        let begin = read.read_document(self.collection.name, NEW_COUNTERS)?;
        let begin = begin.map(|bytes| self.decode::<u64>(NEW_COUNTERS, &bytes)).transpose()?;
        Ok(begin.unwrap_or(0))
    }
}

/// A document of a table.
#[derive(Debug)]
pub struct Row<K, V> {
    table: Table<K, V>,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<K: Codec, V: Codec> Row<K, V> {
    /// Decodes the key.
    pub fn key(&self) -> Result<K::Owned, UnreadableDocument> {
        self.table.decode::<K>(&self.key, &self.key)
    }

    /// Decodes the value.
    pub fn value(&self) -> Result<V::Owned, UnreadableDocument> {
        self.table.decode::<V>(&self.key, &self.value)
    }

    /// Decodes the value. If that fails, logs the error and returns `None`.
    pub fn value_or_log(&self) -> Option<V::Owned> {
        self.value().inspect_err(log_unreadable).ok()
    }

    /// Decodes the value, which has another form.
    pub fn value_as<W: Codec>(&self) -> Result<W::Owned, UnreadableDocument> {
        self.table.decode::<W>(&self.key, &self.value)
    }

    /// Decodes key and value.
    pub fn entry(&self) -> Result<(K::Owned, V::Owned), UnreadableDocument> {
        Ok((self.key()?, self.value()?))
    }

    /// Decodes the key. If that fails, logs the error and returns `None`.
    pub fn key_or_log(&self) -> Option<K::Owned> {
        self.key().inspect_err(log_unreadable).ok()
    }

    /// Decodes key and value. If that fails, logs the error and returns `None`.
    pub fn entry_or_log(&self) -> Option<(K::Owned, V::Owned)> {
        self.entry().inspect_err(log_unreadable).ok()
    }

    /// Returns the stored form of the key.
    pub fn key_bytes(&self) -> &[u8] {
        &self.key
    }

    /// Returns the stored form of the value.
    pub fn value_bytes(&self) -> &[u8] {
        &self.value
    }

    /// Deletes the document.
    pub fn delete(&self, transaction: &mut Transaction<'_>) -> Result<(), Error> {
        transaction.delete_document(self.table.collection.name, &self.key)
    }
}

/// Reads rows of a table in the order of their keys.
#[derive(Debug)]
pub struct Scan<K, V> {
    table: Table<K, V>,
    prefix: Vec<u8>,
    after: Option<Vec<u8>>,
    is_reverse: bool,
}

impl<K: Codec, V: Codec> Scan<K, V> {
    /// Reads only keys with these first parts.
    #[must_use]
    pub fn prefix<P: Codec>(mut self, first_parts: P::Ref<'_>) -> Self {
        self.prefix.clear();
        P::write(first_parts, false, &mut self.prefix);
        self
    }

    /// Begins after this key, if there is one.
    #[must_use]
    pub fn after(self, key: Option<K::Ref<'_>>) -> Self {
        Self { after: key.map(encode::<K>), ..self }
    }

    /// Begins after this stored form of a key.
    #[must_use]
    pub fn after_bytes(self, key: Vec<u8>) -> Self {
        Self { after: Some(key), ..self }
    }

    /// Reads from the last key to the first.
    #[must_use]
    pub fn reverse(self) -> Self {
        Self { is_reverse: true, ..self }
    }

    /// Reads at most `limit` rows.
    pub fn read(&self, read: &dyn Read, limit: usize) -> Result<Vec<Row<K, V>>, Error> {
        let range = DocumentRange {
            prefix: &self.prefix,
            after: self.after.as_deref(),
            reverse: self.is_reverse,
            limit,
        };
        let rows = read.read_documents(self.table.collection.name, range)?.into_iter();
        Ok(rows.map(|(key, value)| Row { table: self.table, key, value }).collect())
    }

    /// Reads all rows.
    pub fn read_all(&self, read: &dyn Read) -> Result<Vec<Row<K, V>>, Error> {
        self.read(read, usize::MAX)
    }

    /// Reads the first row.
    pub fn first(&self, read: &dyn Read) -> Result<Option<Row<K, V>>, Error> {
        Ok(self.read(read, 1)?.pop())
    }

    /// Reads at most `limit` rows, and continues after them the next time. Returns none at the end.
    pub fn next_page(&mut self, read: &dyn Read, limit: usize) -> Result<Vec<Row<K, V>>, Error> {
        let rows = self.read(read, limit)?;
        if let Some(last) = rows.last() {
            self.after = Some(last.key.clone());
        }
        Ok(rows)
    }

    /// Iterates over the rows, reading `rows_per_read` at a time, each time from what `open` returns. Ends after an error
    /// of the store.
    pub fn pages<R: Read>(
        mut self,
        open: impl Fn() -> R,
        rows_per_read: usize,
    ) -> impl Iterator<Item = Result<Row<K, V>, Error>> {
        let mut page = Vec::new().into_iter();
        let mut is_last_page = false;
        std::iter::from_fn(move || {
            if let Some(row) = page.next() {
                return Some(Ok(row));
            }
            if is_last_page {
                return None;
            }
            match self.next_page(&open(), rows_per_read) {
                Ok(rows) => {
                    is_last_page = rows.len() < rows_per_read;
                    page = rows.into_iter();
                }
                Err(error) => {
                    is_last_page = true;
                    return Some(Err(error));
                }
            }
            page.next().map(Ok)
        })
    }

    /// Deletes at most `limit` rows, also those that cannot be decoded. Returns their number.
    pub fn delete(&self, transaction: &mut Transaction<'_>, limit: usize) -> Result<usize, Error> {
        let rows = self.read(transaction, limit)?;
        rows.iter().try_for_each(|row| row.delete(transaction))?;
        Ok(rows.len())
    }
}

#[cfg(test)]
mod tests;
