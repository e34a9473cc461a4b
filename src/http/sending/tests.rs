use super::*;
use http_body_util::Empty;
use hyper_util::rt::{TokioExecutor, TokioIo};
use penstock_base::permits::Permits;
use salvo::conn::{Acceptor, Listener, TcpListener};
use salvo::{FlowCtrl, Router, Server, Service, handler};
use std::net::SocketAddr;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

const SHORT: Duration = Duration::from_secs(3);
const LONG: usize = 1 << 20;

#[handler]
async fn watch_reader_briefly(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
    ctrl: &mut FlowCtrl,
) {
    ctrl.call_next(req, depot, res).await;
    watch_reader(req, res, SHORT);
}

#[handler]
async fn long(res: &mut Response) {
    res.replace_body(ResBody::Once(vec![b'x'; LONG].into()));
}

/// Sends a word, pauses for longer than a response may stay unread, and sends another word.
#[handler]
async fn rare(res: &mut Response) {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        for word in ["a", "b"] {
            let _ = sender.send(Bytes::from_static(word.as_bytes())).await;
            tokio::time::sleep(SHORT * 2).await;
        }
    });
    let pieces = futures_util::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|piece| (Ok::<_, std::io::Error>(piece), receiver))
    });
    res.replace_body(ResBody::stream(pieces));
}

async fn serve() -> SocketAddr {
    let acceptor = TcpListener::new("127.0.0.1:0").bind().await;
    let address = acceptor.holdings()[0].local_addr.clone().into_std().unwrap();
    let router = Router::new()
        .push(Router::with_path("long").get(long))
        .push(Router::with_path("rare").get(rare));
    tokio::spawn(Server::new(acceptor).serve(Service::new(router).hoop(watch_reader_briefly)));
    address
}

type Connection =
    tokio::task::JoinHandle<Result<hyper::client::conn::http2::SendRequest<Empty<Bytes>>, ()>>;

/// Sends a request over HTTP/2 with stream windows of this size. Returns the response, and a task that ends when
/// the server ends the connection.
async fn ask(
    address: SocketAddr,
    path: &str,
    window: u32,
) -> (hyper::Response<hyper::body::Incoming>, Connection) {
    let stream = TcpStream::connect(address).await.unwrap();
    let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(window);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
    let url = format!("http://{address}/{path}");
    let request = hyper::Request::builder().uri(url).body(Empty::new()).unwrap();
    let kept = sender.clone();
    let ended = tokio::spawn(async move {
        let _ = connection.await;
        Ok(kept)
    });
    (sender.send_request(request).await.unwrap(), ended)
}

#[tokio::test]
async fn an_unread_response_ends_its_connection() {
    let address = serve().await;
    for window in [0, 1, 40_000] {
        let (answer, ended) = ask(address, "long", window).await;
        assert_eq!(answer.status(), 200);
        // The head has arrived, and the client reads no more.
        let ended = tokio::time::timeout(Duration::from_mins(1), ended).await;
        assert!(ended.is_ok(), "the connection lasts, with a window of {window}");
        drop(answer);
    }
}

#[tokio::test]
async fn a_slowly_read_response_is_complete() {
    let address = serve().await;
    let (answer, ended) = ask(address, "long", 64 << 10).await;
    assert_eq!(answer.headers()["content-length"], LONG.to_string());
    let mut body = answer.into_body();
    let (mut read, begun) = (0, Instant::now());
    while let Some(frame) = body.frame().await {
        read += frame.unwrap().into_data().map_or(0, |data| data.len());
        // In total it takes longer than a response may stay unread.
        if begun.elapsed() < SHORT * 2 {
            tokio::time::sleep(SHORT / 20).await;
        }
    }
    assert_eq!(read, LONG);
    assert!(begun.elapsed() > SHORT);
    ended.abort();
}

#[tokio::test]
async fn waiting_for_the_source_does_not_end_the_connection() {
    let (answer, ended) = ask(serve().await, "rare", 64 << 10).await;
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "ab");
    ended.abort();
}

#[test]
fn bytes_count_until_their_last_piece_is_dropped() {
    let permits = Permits::<&str>::new(100, 50);
    let mut bytes =
        hold_until_sent(Bytes::from(vec![0; 100]), permits.try_acquire("a", 100).unwrap());
    let piece = bytes.split_to(1);
    drop(bytes);
    assert!(permits.try_acquire("b", 1).is_none());
    drop(piece);
    assert!(permits.try_acquire("b", 1).is_some());
}
