//! The forms in which keys and values are stored.
//!
//! A key is the concatenation of its parts. Numbers are big endian, so that keys are in the order of the numbers. A text
//! before another part ends with the byte 0, which it must not have. So the first parts of a key, encoded in the same way,
//! are a prefix of the keys that begin with them.
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;
use uuid::Uuid;

/// The form in which keys, values and their parts are stored.
pub trait Codec {
    /// What is read.
    type Owned;
    /// What is written.
    type Ref<'v>;

    /// Appends the stored form. Only the last part of a key or value need not show its end.
    fn write(value: Self::Ref<'_>, is_last: bool, bytes: &mut Vec<u8>);

    /// Reads a value, and removes it from the beginning of `bytes`.
    ///
    /// # Errors
    /// Returns what is wrong with the bytes.
    fn read(bytes: &mut &[u8], is_last: bool) -> Result<Self::Owned, String>;
}

/// A value as JSON.
#[derive(Debug)]
pub struct AsJson<T>(PhantomData<T>);

impl<T: Serialize + DeserializeOwned + 'static> Codec for AsJson<T> {
    type Owned = T;
    type Ref<'v> = &'v T;

    fn write(value: &T, _is_last: bool, bytes: &mut Vec<u8>) {
        serde_json::to_writer(bytes, value).expect("documents have only texts as names of members");
    }

    fn read(bytes: &mut &[u8], _is_last: bool) -> Result<T, String> {
        serde_json::from_slice(std::mem::take(bytes)).map_err(|error| error.to_string())
    }
}

impl Codec for String {
    type Owned = Self;
    type Ref<'v> = &'v str;

    fn write(value: &str, is_last: bool, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(value.as_bytes());
        if !is_last {
            bytes.push(0);
        }
    }

    fn read(bytes: &mut &[u8], is_last: bool) -> Result<Self, String> {
        let text = if is_last {
            std::mem::take(bytes)
        } else {
            let end = bytes.iter().position(|byte| *byte == 0).ok_or("a text has no end")?;
            let (text, rest) = bytes.split_at(end);
            *bytes = rest.get(1..).unwrap_or_default();
            text
        };
        String::from_utf8(text.to_vec()).map_err(|error| error.to_string())
    }
}

/// Bytes of any number, which are the last part.
impl Codec for Vec<u8> {
    type Owned = Self;
    type Ref<'v> = &'v [u8];

    fn write(value: &[u8], _is_last: bool, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(value);
    }

    fn read(bytes: &mut &[u8], _is_last: bool) -> Result<Self, String> {
        Ok(std::mem::take(bytes).to_vec())
    }
}

impl<const N: usize> Codec for [u8; N] {
    type Owned = Self;
    type Ref<'v> = Self;

    fn write(value: Self, _is_last: bool, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&value);
    }

    fn read(bytes: &mut &[u8], _is_last: bool) -> Result<Self, String> {
        let (value, rest) = bytes.split_first_chunk().ok_or("it is too short")?;
        *bytes = rest;
        Ok(*value)
    }
}

impl Codec for Uuid {
    type Owned = Self;
    type Ref<'v> = Self;

    fn write(value: Self, is_last: bool, bytes: &mut Vec<u8>) {
        <[u8; 16]>::write(value.into_bytes(), is_last, bytes);
    }

    fn read(bytes: &mut &[u8], is_last: bool) -> Result<Self, String> {
        <[u8; 16]>::read(bytes, is_last).map(Self::from_bytes)
    }
}

/// A value, or no bytes.
impl<C: Codec> Codec for Option<C> {
    type Owned = Option<C::Owned>;
    type Ref<'v> = Option<C::Ref<'v>>;

    fn write(value: Self::Ref<'_>, is_last: bool, bytes: &mut Vec<u8>) {
        if let Some(value) = value {
            C::write(value, is_last, bytes);
        }
    }

    fn read(bytes: &mut &[u8], is_last: bool) -> Result<Self::Owned, String> {
        if bytes.is_empty() { Ok(None) } else { C::read(bytes, is_last).map(Some) }
    }
}

impl Codec for () {
    type Owned = Self;
    type Ref<'v> = Self;

    fn write((): Self, _is_last: bool, _bytes: &mut Vec<u8>) {}

    fn read(_bytes: &mut &[u8], _is_last: bool) -> Result<Self, String> {
        Ok(())
    }
}

macro_rules! implement_for_number {
    ($number:ty) => {
        impl Codec for $number {
            type Owned = Self;
            type Ref<'v> = Self;

            fn write(value: Self, is_last: bool, bytes: &mut Vec<u8>) {
                <[u8; size_of::<$number>()]>::write(value.to_be_bytes(), is_last, bytes);
            }

            fn read(bytes: &mut &[u8], is_last: bool) -> Result<Self, String> {
                <[u8; size_of::<$number>()]>::read(bytes, is_last).map(Self::from_be_bytes)
            }
        }
    };
}

implement_for_number!(u8);
implement_for_number!(u32);
implement_for_number!(u64);

macro_rules! implement_for_tuple {
    ($($part:ident $value:ident),+; $last:ident $last_value:ident) => {
        impl<$($part: Codec,)+ $last: Codec> Codec for ($($part,)+ $last) {
            type Owned = ($($part::Owned,)+ $last::Owned);
            type Ref<'v> = ($($part::Ref<'v>,)+ $last::Ref<'v>);

            fn write(
                ($($value,)+ $last_value): Self::Ref<'_>,
                is_last: bool,
                bytes: &mut Vec<u8>,
            ) {
                $($part::write($value, false, bytes);)+
                $last::write($last_value, is_last, bytes);
            }

            fn read(bytes: &mut &[u8], is_last: bool) -> Result<Self::Owned, String> {
                Ok(($($part::read(bytes, false)?,)+ $last::read(bytes, is_last)?))
            }
        }
    };
}

implement_for_tuple!(A a; B b);
implement_for_tuple!(A a, B b; C c);
implement_for_tuple!(A a, B b, C c; D d);

/// Returns the stored form of a value.
pub fn encode<C: Codec>(value: C::Ref<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    C::write(value, true, &mut bytes);
    bytes
}
