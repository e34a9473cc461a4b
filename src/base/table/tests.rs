use super::*;
use crate::collections;
use crate::error::{ErrorClass, GatewayError};
use penstock_store::{Options, Store};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

const ACCOUNTS: Table<String, AsJson<Account>> = Table::new(collections::ACCOUNTS);
const NUMBERS: Table<(String, u64), u64> = Table::new(collections::WEBHOOK_EVENTS);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Account {
    email: String,
}

#[derive(Debug, PartialEq)]
struct Sizes {
    count: u64,
    kind: u8,
}

store_as_fields!(Sizes: count: u64, kind: u8);

fn open() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
    (dir, store)
}

fn with_numbers(all: &[(&str, u64)]) -> (tempfile::TempDir, Store) {
    let (dir, store) = open();
    let put = |t: &mut Transaction<'_>| {
        all.iter().try_for_each(|(name, number)| NUMBERS.put(t, (name, *number), *number))
    };
    store.transact(put).unwrap();
    (dir, store)
}

fn decode<C: Codec>(bytes: &[u8]) -> Result<C::Owned, UnreadableDocument> {
    NUMBERS.decode::<C>(b"key", bytes)
}

#[track_caller]
fn check_form<C: Codec>(value: C::Ref<'_>, owned: &C::Owned, bytes: &[u8])
where
    C::Owned: std::fmt::Debug + PartialEq,
{
    assert_eq!(encode::<C>(value), bytes);
    assert_eq!(&decode::<C>(bytes).unwrap(), owned);
}

#[test]
fn forms_are_as_they_were_always_stored() {
    check_form::<u64>(258, &258, &[0, 0, 0, 0, 0, 0, 1, 2]);
    check_form::<()>((), &(), b"");
    check_form::<Option<u8>>(None, &None, b"");
    check_form::<Option<u8>>(Some(7), &Some(7), &[7]);
    check_form::<String>("a\0b", &"a\0b".to_owned(), b"a\0b");
    check_form::<(String, u8, Vec<u8>)>(("a", 1, b"\0"), &("a".into(), 1, vec![0]), b"a\0\x01\0");
    check_form::<((String, String), u32)>(
        (("a", "b"), 9),
        &(("a".into(), "b".into()), 9),
        b"a\0b\0\0\0\0\x09",
    );
    let empty = Some((String::new(), String::new()));
    check_form::<Option<(String, String)>>(Some(("", "")), &empty, b"\0");
    let id = Uuid::from_bytes([5; 16]);
    check_form::<(Uuid, String)>(
        (id, "x"),
        &(id, "x".into()),
        b"\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05x",
    );
    check_form::<Sizes>(
        &Sizes { count: 1, kind: 2 },
        &Sizes { count: 1, kind: 2 },
        &[0, 0, 0, 0, 0, 0, 0, 1, 2],
    );
    check_form::<AsJson<Vec<u8>>>(&vec![1, 2], &vec![1, 2], b"[1,2]");
}

#[test]
fn bytes_of_another_form_are_refused() {
    let cause = |error: UnreadableDocument| error.to_string();
    assert_eq!(cause(decode::<u64>(&[1, 2]).unwrap_err()), "it is too short");
    assert_eq!(cause(decode::<u8>(&[1, 2]).unwrap_err()), "it is too long");
    assert_eq!(cause(decode::<(String, u8)>(b"ab").unwrap_err()), "a text has no end");
    assert!(decode::<String>(&[0xff]).is_err());
    assert!(decode::<AsJson<Account>>(b"{}").is_err());
}

#[test]
fn a_document_that_cannot_be_decoded_is_an_error_unless_the_reader_does_without_it() {
    let (_dir, store) = open();
    let ada = Account { email: "ada".to_owned() };
    store
        .transact::<_, Error>(|t| {
            ACCOUNTS.put(t, "a", &ada)?;
            t.put_document("accounts", b"b", json!({"name": "b"}).to_string().as_bytes())
        })
        .unwrap();
    let read = store.read();
    assert_eq!(ACCOUNTS.get(&read, "a").unwrap(), Some(ada.clone()));
    assert_eq!(ACCOUNTS.get(&read, "c").unwrap(), None);
    assert!(ACCOUNTS.contains(&read, "b").unwrap());
    let error = ACCOUNTS.get(&read, "b").unwrap_err();
    let text = "An account could not be read (accounts/b): missing field `email`";
    assert!(error.to_string().starts_with(text), "{error}");
    let error = GatewayError::from(error);
    assert_eq!(error.class, ErrorClass::Internal);
    assert_eq!(error.detail, "an account could not be read; the log has the cause");
    assert_eq!(ACCOUNTS.get_readable(&read, "b").unwrap(), None);
    assert_eq!(ACCOUNTS.get_or_log(&read, "b").unwrap(), None);
    let rows = ACCOUNTS.scan().read_all(&read).unwrap();
    let readable: Vec<_> = rows.iter().filter_map(|row| row.entry().ok()).collect();
    assert_eq!((rows.len(), readable), (2, vec![("a".to_owned(), ada)]));
    drop(read);
    let delete = |t: &mut Transaction<'_>| ACCOUNTS.scan().delete(t, 9);
    assert_eq!(store.transact(delete).unwrap().0, 2);
}

#[test]
fn a_scan_reads_page_by_page_in_both_directions() {
    let (_dir, store) = with_numbers(&[("a", 1), ("ab", 300), ("ab", 2), ("ab", 257), ("b", 4)]);
    let list = |scan: Scan<(String, u64), u64>, rows_per_read| -> Vec<u64> {
        let rows = scan.pages(|| store.read(), rows_per_read);
        rows.map(|row| row.unwrap().value().unwrap()).collect()
    };
    for rows_per_read in 1..7 {
        assert_eq!(list(NUMBERS.scan(), rows_per_read), [1, 2, 257, 300, 4]);
        assert_eq!(list(NUMBERS.scan().reverse(), rows_per_read), [4, 300, 257, 2, 1]);
        let ab = || NUMBERS.scan().prefix::<String>("ab");
        assert_eq!(list(ab().after(Some(("ab", 2))), rows_per_read), [257, 300]);
        assert_eq!(list(ab().reverse().after(Some(("ab", 300))), rows_per_read), [257, 2]);
        assert_eq!(list(ab().after(None), rows_per_read), [2, 257, 300]);
    }
    let last = NUMBERS.scan().prefix::<String>("ab").reverse().first(&store.read()).unwrap();
    assert_eq!(last.unwrap().key().unwrap(), ("ab".to_owned(), 300));
}

#[test]
fn a_new_counter_begins_where_a_restore_put_the_counters() {
    let (_dir, store) = with_numbers(&[("a", 3)]);
    let last = |name: &str| NUMBERS.last_number(&store.read(), (name, 3)).unwrap();
    assert_eq!((last("a"), last("b")), (3, 0));
    let begin = 1_000_000_u64.to_be_bytes();
    let name = collections::WEBHOOK_EVENTS.name;
    store.transact(|t| t.put_document(name, NEW_COUNTERS, &begin)).unwrap();
    assert_eq!((last("a"), last("b")), (3, 1_000_000));
}
