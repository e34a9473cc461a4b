//! The names of the values of an enum.

/// Implements `ALL`, `name` and `Display` for an enum that is shown by the names of its values. With a noun, `parse` too.
macro_rules! wire_names {
    ($type:ident { $($value:ident: $name:literal),+ $(,)? }) => {
        impl $type {
            /// All values.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            /// Returns the name on the wire.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
    ($type:ident, $noun:literal { $($value:ident: $name:literal),+ $(,)? }) => {
        wire_names!($type { $($value: $name),+ });

        impl $type {
            /// Returns the value of this name.
            ///
            /// # Errors
            /// Says which names there are.
            pub fn parse(name: &str) -> Result<Self, String> {
                Self::ALL.into_iter().find(|value| value.name() == name).ok_or_else(|| {
                    let [others @ .., last] = Self::ALL.map(Self::name);
                    let others = others.join(", ");
                    format!("there is no {} {name:?}; use {others} or {last}", $noun)
                })
            }
        }
    };
}
pub(crate) use wire_names;
