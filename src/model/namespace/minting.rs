//! Mints identifiers, and keeps what must not be minted again: counters, and the identifiers of changes under review.
use super::moving::rebase::Rebase;
use super::{Generator, Namespace, TakenNumbers, get};
use oxrdf::NamedNode;
use penstock_base::collections;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::table::{Row, Table};
use penstock_store::{Error, Pattern, Read, Transaction};
use rand::Rng;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The last number issued, by URI base. A counter belongs to the base and is kept when a namespace is deleted, so that no
/// identifier is ever issued twice.
pub const COUNTERS: Table<String, u64> = Table::new(collections::COUNTERS);

/// The identifiers that were minted for changes under review. They are not minted again, even if their change is never
/// published. The counter or the time in a UUID has the same effect for the other generators.
pub const RESERVED: Table<String, ()> = Table::new(collections::RESERVED_IDENTIFIERS);

/// Mints an identifier that does not occur in the store. The new state of a counter is part of the transaction.
///
/// # Errors
/// `ErrorClass::Invalid` for a namespace whose generator is `manual`.
pub fn mint_identifier(
    transaction: &mut Transaction<'_>,
    namespace: &Namespace,
) -> Result<NamedNode, GatewayError> {
    match namespace.generator {
        Generator::Uuid => Ok(namespace.build_identifier(&uuid::Uuid::now_v7().to_string())),
        Generator::Counter => {
            mint_number(transaction, namespace, &mut TakenNumbers::default(), |_| false)
        }
        Generator::Alphanumeric => loop {
            let identifier = namespace.build_identifier(&random_alphanumeric());
            let is_reserved = RESERVED.contains(transaction, identifier.as_str())?;
            if !is_reserved && !is_taken(transaction, &identifier)? {
                return Ok(identifier);
            }
        },
        Generator::Manual => Err(GatewayError::new(
            ErrorClass::Invalid,
            format!(
                "the object has no URI, and the namespace {:?} generates none (its generator is manual); send `uri`",
                namespace.name
            ),
        )),
    }
}

/// Mints the next number of a counter that neither the store has nor `is_claimed`. Skips the numbers that are known to be taken,
/// and adds those that it finds taken to [`TakenNumbers::found`].
pub(crate) fn mint_number(
    transaction: &mut Transaction<'_>,
    namespace: &Namespace,
    taken: &mut TakenNumbers,
    is_claimed: impl Fn(&NamedNode) -> bool,
) -> Result<NamedNode, GatewayError> {
    let mut number = COUNTERS.last_number(transaction, &namespace.uri_base)?;
    loop {
        number = taken.skip_from(number).checked_add(1).ok_or_else(|| {
            let name = &namespace.name;
            GatewayError::new(
                ErrorClass::Internal,
                format!("the counter of the namespace {name:?} has reached its maximum"),
            )
        })?;
        let identifier = namespace.build_identifier(&number.to_string());
        if !is_claimed(&identifier) && !is_taken(transaction, &identifier)? {
            COUNTERS.put(transaction, &namespace.uri_base, number)?;
            return Ok(identifier);
        }
        taken.found.push(number);
    }
}

/// The state of generators after a change under review, which is stored although the change is not published.
#[derive(Debug, Default)]
pub(crate) struct MintingState {
    /// The base and the last number of each counter.
    counters: Vec<(String, u64)>,
    /// The identifiers that were drawn at random.
    reserved: Vec<String>,
}

impl MintingState {
    /// Reads the state after these identifiers were minted: each with the name of its namespace.
    pub(crate) fn read<'i>(
        read: &dyn Read,
        minted: impl IntoIterator<Item = (&'i str, &'i str)>,
    ) -> Result<Self, GatewayError> {
        let mut namespaces: HashMap<&str, Option<Namespace>> = HashMap::new();
        let mut state = Self::default();
        for (name, uri) in minted {
            let namespace = match namespaces.entry(name) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let namespace = get(read, name)?;
                    if let Some(Namespace { uri_base, generator: Generator::Counter, .. }) =
                        &namespace
                        && let Some(last) = COUNTERS.get(read, uri_base)?
                    {
                        state.counters.push((uri_base.clone(), last));
                    }
                    new.insert(namespace)
                }
            };
            if namespace.as_ref().is_some_and(|it| it.generator == Generator::Alphanumeric) {
                state.reserved.push(uri.to_owned());
            }
        }
        Ok(state)
    }

    /// Returns the bytes of the reservations that [`Self::store`] stores.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.reserved.iter().map(|uri| uri.len() as u64).sum()
    }

    /// Stores the state.
    pub(crate) fn store(&self, transaction: &mut Transaction<'_>) -> Result<(), GatewayError> {
        for (base, last) in &self.counters {
            COUNTERS.put(transaction, base, *last)?;
        }
        for uri in &self.reserved {
            RESERVED.put(transaction, uri, ())?;
        }
        Ok(())
    }
}

/// Removes the reservation of an identifier, if it has one. Then only the quads decide whether it is taken.
pub(crate) fn release_identifier(
    transaction: &mut Transaction<'_>,
    uri: &str,
) -> Result<(), GatewayError> {
    if RESERVED.contains(transaction, uri)? {
        RESERVED.delete(transaction, uri)?;
    }
    Ok(())
}

/// Returns whether the store has this identifier, as a subject or as an object.
pub(crate) fn is_taken(read: &dyn Read, identifier: &NamedNode) -> Result<bool, Error> {
    Ok(read.any(&Pattern { subject: Some(identifier.clone().into()), ..Pattern::default() })?
        || read.any(&Pattern { object: Some(identifier.clone().into()), ..Pattern::default() })?)
}

/// Continues the counter of the old base with the new one. The counter of the old base is kept, so that a later
/// namespace with that base issues none of its numbers again. Returns whether this changes anything.
pub(super) fn rewrite_counter(
    transaction: &mut Transaction<'_>,
    rebase: &Rebase,
    row: &Row<String, u64>,
) -> Result<bool, GatewayError> {
    let (from, to) = (rebase.from(), rebase.to());
    if row.key_or_log().as_ref() != Some(&from.uri_base) {
        return Ok(false);
    }
    let issued = row.value()?;
    let there = COUNTERS.last_number(transaction, &to.uri_base)?;
    if issued <= there {
        return Ok(false);
    }
    COUNTERS.put(transaction, &to.uri_base, issued)?;
    Ok(true)
}

/// Reserves an identifier with the new base of its namespace too. Returns whether this changes anything.
pub(super) fn rewrite_reserved(
    transaction: &mut Transaction<'_>,
    rebase: &Rebase,
    row: &Row<String, ()>,
) -> Result<bool, GatewayError> {
    let moved = row.key_or_log().and_then(|uri| rebase.rewrite(&uri));
    let Some(moved) = moved else { return Ok(false) };
    if RESERVED.contains(transaction, &moved)? {
        return Ok(false);
    }
    RESERVED.put(transaction, &moved, ())?;
    Ok(true)
}

fn random_alphanumeric() -> String {
    let mut rng = rand::rng();
    (0..10)
        .map(|_| char::from_digit(rng.random_range(0..36), 36).expect("below the radix"))
        .collect()
}
