//! The identifiers of a request: minted now, or by an earlier run of the same request.
//!
//! The first run of a change under review mints identifiers. Later runs use them in the same order, so that what was
//! shown is what is published.
use crate::namespace::moving::rebase::Rebase;
use crate::namespace::{self, Namespace, TakenNumbers};
use oxrdf::NamedNode;
use penstock_base::error::GatewayError;
use penstock_resources::namespace::Generator;
use penstock_store::{Read, Transaction};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};

/// An identifier that a generator minted for a change under review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MintedIdentifier {
    /// The name of its namespace.
    pub namespace: String,
    /// The identifier.
    pub uri: String,
}

/// The identifiers of one run.
#[derive(Debug, Default)]
pub(super) struct Identifiers {
    /// Those of an earlier run that were not used yet, for each namespace.
    earlier: HashMap<String, VecDeque<NamedNode>>,
    /// The used ones, if the caller needs them.
    used: Option<Vec<MintedIdentifier>>,
    /// The taken numbers of counters, by the beginning of their identifiers; `None` without a savepoint.
    taken: Option<HashMap<String, TakenNumbers>>,
}

impl Identifiers {
    /// Creates the identifiers of a run that continues with those of the last one. `moves` are the moves of namespaces
    /// since the last run; an identifier that it minted has the bases of that time.
    pub(super) fn of_change(earlier: &[MintedIdentifier], moves: &[Rebase]) -> Self {
        let mut found = Self { used: Some(Vec::new()), ..Self::default() };
        for MintedIdentifier { namespace, uri } in earlier {
            let mut uri = uri.clone();
            for rebase in moves {
                uri = rebase.rewrite(&uri).unwrap_or(uri);
            }
            let unused = found.earlier.entry(namespace.clone()).or_default();
            unused.push_back(NamedNode::new_unchecked(uri));
        }
        found
    }

    pub(super) fn set_savepoint(&mut self) {
        for taken in self.taken.get_or_insert_default().values_mut() {
            taken.found.clear();
        }
    }

    /// Keeps which of the numbers that were found taken since the savepoint still are. The transaction is rolled back already.
    pub(super) fn roll_back_to_savepoint(
        &mut self,
        read: &dyn Read,
        is_claimed: impl Fn(&NamedNode) -> bool,
    ) -> Result<(), GatewayError> {
        for (prefix, taken) in self.taken.iter_mut().flatten() {
            for number in std::mem::take(&mut taken.found) {
                let uri = NamedNode::new_unchecked(format!("{prefix}{number}"));
                if is_claimed(&uri) || namespace::is_taken(read, &uri)? {
                    taken.add(number);
                }
            }
        }
        Ok(())
    }

    /// Returns an identifier that neither the store has nor `is_claimed`.
    pub(super) fn mint(
        &mut self,
        transaction: &mut Transaction<'_>,
        namespace: &Namespace,
        is_claimed: impl Fn(&NamedNode) -> bool,
    ) -> Result<NamedNode, GatewayError> {
        let mut found = None;
        if let Some(earlier) = self.earlier.get_mut(&namespace.name) {
            while let Some(uri) = earlier.pop_front() {
                // The namespace may have been defined again with another base.
                let is_unused = namespace.contains(uri.as_ref())
                    && !is_claimed(&uri)
                    && !namespace::is_taken(transaction, &uri)?;
                if is_unused {
                    found = Some(uri);
                    break;
                }
            }
        }
        let uri = match found {
            Some(uri) => uri,
            None if namespace.generator == Generator::Counter => {
                let mut unknown = TakenNumbers::default();
                let taken = match &mut self.taken {
                    Some(taken) => taken.entry(namespace.identifier_prefix()).or_default(),
                    None => &mut unknown,
                };
                namespace::mint_number(transaction, namespace, taken, &is_claimed)?
            }
            None => loop {
                let uri = namespace::mint_identifier(transaction, namespace)?;
                if !is_claimed(&uri) {
                    break uri;
                }
            },
        };
        if let Some(used) = &mut self.used {
            let (namespace, uri) = (namespace.name.clone(), uri.as_str().to_owned());
            used.push(MintedIdentifier { namespace, uri });
        }
        Ok(uri)
    }

    /// Returns the identifiers for the next run: the used ones, and then the others.
    pub(super) fn into_minted(self) -> Vec<MintedIdentifier> {
        let mut minted = self.used.unwrap_or_default();
        let mut unused: Vec<_> = self.earlier.into_iter().collect();
        unused.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        for (namespace, uris) in unused {
            minted.extend(uris.into_iter().map(|uri| MintedIdentifier {
                namespace: namespace.clone(),
                uri: uri.into_string(),
            }));
        }
        minted
    }
}
