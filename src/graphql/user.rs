//! `authenticatedUser`: who sent the request.
use super::schema::caller;
use crate::auth::{Account, Caller};
use async_graphql::Value;
use async_graphql::dynamic::{Field, FieldFuture, FieldValue, Object, TypeRef};

const USER: &str = "AuthenticatedUser";

/// The type.
pub(super) fn object() -> Object {
    let strings = TypeRef::named_nn_list_nn(TypeRef::STRING);
    Object::new(USER)
        .description("The account that sent the request.")
        .field(field("id", TypeRef::named_nn(TypeRef::ID), "Its identifier.", |caller| {
            Some(caller.id().into())
        }))
        .field(text("givenName", "The given name.", |account| account.given_name.as_deref()))
        .field(text("familyName", "The family name.", |account| account.family_name.as_deref()))
        .field(text("email", "The email; of a service account synthetic.", |account| {
            Some(&account.email)
        }))
        .field(text("organization", "The organization.", |account| account.organization.as_deref()))
        .field(field("roles", strings, "Its role, as a list of one.", |caller| {
            let role = caller.account.as_ref().map_or(caller.role, |account| account.role);
            Some(Value::List(vec![format!("{role:?}").into()]))
        }))
        .field(field(
            "serviceAccount",
            TypeRef::named_nn(TypeRef::BOOLEAN),
            "Whether it is a client application's.",
            |caller| {
                let account = caller.account.as_ref();
                Some(account.is_some_and(|account| account.is_service_account()).into())
            },
        ))
}

/// The field of the query type.
pub(super) fn query() -> Field {
    Field::new("authenticatedUser", TypeRef::named_nn(USER), |ctx| {
        let caller = caller(&ctx).cloned();
        FieldFuture::new(async move { Ok(Some(FieldValue::owned_any(caller?))) })
    })
    .description("The account that sent the request.")
}

fn text(name: &'static str, description: &str, value: fn(&Account) -> Option<&str>) -> Field {
    Field::new(name, TypeRef::named(TypeRef::STRING), move |ctx| {
        let caller = ctx.parent_value.try_downcast_ref::<Caller>().cloned();
        FieldFuture::new(async move {
            let account = caller?.account;
            let text = account.as_ref().and_then(|account| value(account));
            Ok(text.map(|text| Value::from(text)))
        })
    })
    .description(description)
}

fn field(
    name: &'static str,
    kind: TypeRef,
    description: &str,
    value: fn(&Caller) -> Option<Value>,
) -> Field {
    Field::new(name, kind, move |ctx| {
        let caller = ctx.parent_value.try_downcast_ref::<Caller>().cloned();
        FieldFuture::new(async move { Ok(value(&caller?)) })
    })
    .description(description)
}
