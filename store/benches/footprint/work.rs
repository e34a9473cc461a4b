//! The objects that are written and read.
use oxrdf::{GraphName, Literal, NamedNode, Quad, Term};

/// Number of objects in a commit.
pub(crate) const OBJECTS_PER_COMMIT: u64 = 100;
/// Number of quads of an object.
pub(crate) const QUADS_PER_OBJECT: u64 = 10;

/// The order in which subjects are minted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    Minted,
    Random,
}

impl Order {
    pub(crate) fn from_name(name: &str) -> Self {
        if name == "random" { Self::Random } else { Self::Minted }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Minted => "minted",
            Self::Random => "random",
        }
    }
}

/// The properties that all objects share, and the names of their subjects.
pub(crate) struct Workload {
    pub(crate) predicates: Vec<NamedNode>,
    pub(crate) graph: GraphName,
    order: Order,
}

fn mix_bits(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

pub(crate) fn shared_value(n: u64) -> NamedNode {
    NamedNode::new_unchecked(format!("https://example.org/shared/{n}"))
}

impl Workload {
    pub(crate) fn new(order: Order) -> Self {
        let predicate = |n| NamedNode::new_unchecked(format!("https://example.org/vocabulary#{n}"));
        Self {
            predicates: (0..QUADS_PER_OBJECT).map(predicate).collect(),
            graph: NamedNode::new_unchecked("https://example.org/").into(),
            order,
        }
    }

    pub(crate) fn subject(&self, n: u64) -> NamedNode {
        let n = match self.order {
            Order::Minted => n,
            Order::Random => mix_bits(n),
        };
        NamedNode::new_unchecked(format!("https://example.org/object/{n:016x}"))
    }

    pub(crate) fn object_quads(&self, n: u64) -> impl Iterator<Item = Quad> {
        let subject = self.subject(n);
        let mut random = mix_bits(n) | 1;
        self.predicates.iter().zip(0_u64..).map(move |(predicate, field)| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(field);
            let object: Term = if field < 5 {
                shared_value(random >> 54).into()
            } else {
                Literal::new_simple_literal(format!("{random:020} {n:08} {field:08}")).into()
            };
            Quad::new(subject.clone(), predicate.clone(), object, self.graph.clone())
        })
    }
}
