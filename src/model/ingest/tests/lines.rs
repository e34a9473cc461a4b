use super::*;
use penstock_base::error::Place;

#[test]
fn each_line_is_an_object_with_its_index_in_the_stream() {
    let fixture = Fixture::new(machine());
    let text = b"{\"name\": \"a\"}\n\r\n  {\"uri\": \"urn:b\", \"parts\": [{\"name\": \"p\"}]}\r\n";
    let answer = fixture
        .run(&fixture.request(Mode::Add, Body::Lines { text, first: 1000, line_numbers: &[7, 9] }))
        .unwrap();
    let found: Vec<_> = answer.objects.iter().map(|o| (o.index, o.uri.as_str())).collect();
    assert_eq!(found, [(1000, "http://x/Machine/1"), (1001, "urn:b")]);
    assert_eq!(answer.objects[1].nested[0].pointer, "/data/1001/parts/0");
}

#[test]
fn errors_name_object_and_line() {
    let fixture = Fixture::new(machine());
    let run = |text: &[u8]| {
        fixture.run(
            &fixture.request(Mode::Add, Body::Lines { text, first: 7, line_numbers: &[8, 9, 10] }),
        )
    };
    let wrong = run(b"{\"name\": \"a\"}\n{\"name\": 1}\n[]\n").unwrap_err();
    assert_eq!(wrong.class, ErrorClass::Invalid);
    assert_eq!(pointers(&wrong), ["/data/8/name", "/data/9"]);
    let broken = run(b"{\"name\": \"a\"}\n{\"name\": \n").unwrap_err();
    assert_eq!(broken.class, ErrorClass::Malformed);
    assert!(
        broken.detail.starts_with(
            "Ingestion failed: object 8 of the stream cannot be read: line 9, column "
        ),
        "{broken}"
    );
    assert!(
        broken.findings.iter().all(|e| !matches!(e.place, Place::Line { line, .. } if line != 9)),
        "{broken}"
    );
    assert_eq!(fixture.quads(), Vec::<String>::new());
}

#[test]
fn a_line_that_is_part_of_an_object_says_that_each_is_whole() {
    let fixture = Fixture::new(machine());
    let text = b"{\n  \"name\": \"a\"\n}\n";
    let lines = Body::Lines { text, first: 0, line_numbers: &[1, 2, 3] };
    let broken = fixture.run(&fixture.request(Mode::Add, lines)).unwrap_err();
    assert!(broken.detail.ends_with("cut short here; each line is one whole object"), "{broken}");
    let text = b"{\"name\": NaN}\n";
    let lines = Body::Lines { text, first: 0, line_numbers: &[1] };
    let broken = fixture.run(&fixture.request(Mode::Add, lines)).unwrap_err();
    assert!(broken.detail.ends_with("JSON has no NaN: leave the field out"), "{broken}");
}
