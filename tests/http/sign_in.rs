//! Signing in while unauthenticated clients try to prevent it.
use penstock_test_support::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PASSWORD: &str = "correct horse battery";
/// Makes the gateway trust the test as a proxy, so that `X-Forwarded-For` sets the address of each client.
const PROXY: [&str; 2] =
    ["--server.forward-headers-strategy=native", "--service.trusted-proxies=127.0.0.1"];

async fn server() -> TestApp {
    let server = TestApp::start(&PROXY).await;
    let new = json!({"email": "ada", "password": PASSWORD, "roles": ["User"]});
    server.post("/api/v1/users", &new).await.expect(201);
    server
}

async fn sign_in(server: &TestApp, from: &str, password: &str) -> u16 {
    let body = json!({"email": "ada", "password": password}).to_string();
    let headers = [JSON, ("X-Forwarded-For", from)];
    connect(server.address, "POST", "/login", &headers, body).await.status
}

/// Opens a client that sends a part of a body and then stops.
async fn hold(server: &TestApp, from: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST /login HTTP/1.1\r\nHost: {}\r\nX-Forwarded-For: {from}\r\nContent-Type: application/json\r\n\
         Content-Length: 10000\r\nExpect: 100-continue\r\n\r\n",
        server.address
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The gateway asks for the body once it starts to read it.
    expect_continue(&mut stream).await;
    // Pieces of this size use up the quota of all clients together.
    stream.write_all(&[b' '; 8192]).await.unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_bodies_from_many_addresses_do_not_prevent_sign_in() {
    let server = server().await;
    let mut held = Vec::new();
    for n in 0..150 {
        held.push(hold(&server, &format!("203.0.113.{n}")).await);
    }
    assert_eq!(sign_in(&server, "198.51.100.1", PASSWORD).await, 200);
    // The slowest client was disconnected and got an answer that says so.
    let mut status = [0; 12];
    held[0].read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 503");
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_bodies_from_one_address_do_not_prevent_sign_in() {
    let server = server().await;
    let mut held = Vec::new();
    for n in 0..20 {
        held.push(hold(&server, &format!("2001:db8::{n:x}")).await);
    }
    assert_eq!(sign_in(&server, "2001:db8::ffff", PASSWORD).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_passwords_do_not_lock_out_accounts_known_at_the_address() {
    let server = server().await;
    let here = "203.0.113.1";
    assert_eq!(sign_in(&server, here, PASSWORD).await, 200);
    while sign_in(&server, here, "a wrong password").await != 429 {}
    assert_eq!(sign_in(&server, here, PASSWORD).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn forty_clients_with_distinct_addresses_leave_a_permit_to_others() {
    let server = server().await;
    let (address, known) = (server.address, "198.51.100.1");
    assert_eq!(sign_in(&server, known, PASSWORD).await, 200);
    let attackers: Vec<_> = (0..40_u32)
        .map(|n| {
            tokio::spawn(async move {
                for round in 0_u32.. {
                    let from = format!("10.{n}.{}.{}", round / 200, round % 200);
                    let body = json!({"email": "nobody", "password": "a wrong password"});
                    let headers = [JSON, ("X-Forwarded-For", from.as_str())];
                    connect(address, "POST", "/login", &headers, body.to_string()).await;
                }
            })
        })
        .collect();
    // The clients are active: some were refused already.
    while server.get("/api/v1/audit?what=sign-in.refused").await.json()["items"][0].is_null() {
        tokio::task::yield_now().await;
    }
    assert_eq!(sign_in(&server, known, PASSWORD).await, 200);
    attackers.iter().for_each(tokio::task::JoinHandle::abort);
}
