//! Structs of counters, with their differences and their sums for a longer run, written once for all of them.

/// A struct whose fields are all counters of `u64`.
macro_rules! tally {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name { $($(#[$field_meta])* pub $field: $type,)* }

        // Not each of them is asked all of this.
        #[allow(dead_code)]
        impl $name {
            /// The difference to an earlier reading.
            pub fn since(&self, earlier: &$name) -> $name {
                $name { $($field: self.$field - earlier.$field,)* }
            }

            /// Adds another one's counts.
            pub fn add(&mut self, other: &$name) {
                $(self.$field += other.$field;)*
            }

            /// All counts times `factor`, rounded.
            pub fn times(&self, factor: f64) -> $name {
                $name { $($field: (self.$field as f64 * factor).round() as u64,)* }
            }
        }
    };
}

pub(super) use tally;
