//! What may stand between an editor and its model: authorities of a company's own, proxies, HTTP/2. All on loopback.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use tandem::model::{Api, Endpoint, Provider};
use tandem::server::Transport;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::driver::World;

/// A host that only the proxy knows.
const HOST: &str = "models.test";

/// A certificate authority of its own, and a server that it vouches for.
struct Company {
    ca_file: PathBuf,
    acceptor: TlsAcceptor,
}

impl Company {
    fn new(world: &World, protocol: &str) -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        world.write("ca.pem", &authority.pem());
        let key = KeyPair::generate().unwrap();
        let names = CertificateParams::new([HOST.to_owned(), "127.0.0.1".to_owned()]).unwrap();
        let certificate = names.signed_by(&key, &authority).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.into()], key)
            .unwrap();
        config.alpn_protocols = vec![protocol.into()];
        Self { ca_file: world.path().join("ca.pem"), acceptor: Arc::new(config).into() }
    }

    /// The scripted model of the world, behind TLS.
    fn serve(self, world: &World) -> SocketAddr {
        let model = model(world);
        listen(world, move |socket| {
            let acceptor = self.acceptor.clone();
            async move { pass(acceptor.accept(socket).await?, model).await }
        })
    }
}

/// Where the scripted model of the world listens.
fn model(world: &World) -> SocketAddr {
    let url = world.model.base_url();
    url.trim_start_matches("http://").trim_end_matches("/v1").parse().unwrap()
}

/// Serves every connection to a new port.
fn listen<F: Future<Output = std::io::Result<()>> + Send + 'static>(
    world: &World,
    serve: impl Fn(TcpStream) -> F + Send + 'static,
) -> SocketAddr {
    let listener = world.wait(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let address = listener.local_addr().unwrap();
    world.runtime.spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve(socket));
        }
    });
    address
}

async fn pass(mut socket: impl AsyncRead + AsyncWrite + Unpin, to: SocketAddr) -> std::io::Result<()> {
    copy_bidirectional(&mut socket, &mut TcpStream::connect(to).await?).await?;
    Ok(())
}

/// A proxy that connects everybody with `to`, and what it was asked for.
fn proxy(world: &World, to: SocketAddr) -> (String, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let address = listen(world, move |mut socket| {
        let seen = Arc::clone(&seen);
        async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(socket.read_u8().await?);
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            seen.lock().unwrap().push(head.lines().next().unwrap_or_default().to_owned());
            socket.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await?;
            pass(socket, to).await
        }
    });
    (format!("http://{address}"), asked)
}

/// Asks the model of this configuration one question and gives the answer.
fn ask(world: &World, config: &str, environment: &[(&str, &str)]) -> String {
    world.write(".home/config/config.toml", config);
    let mut client = world.stranger_on(Transport::Acp, environment);
    client.call("initialize", json!({ "protocolVersion": 1 }));
    let session = client.session(world);
    let id = client.prompt(&session, "hi");
    let answer = client.answer(id);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    client.text()
}

#[test]
fn a_model_behind_a_proxy_with_a_company_certificate_works() {
    let world = World::new(json!([[{ "text": "hello" }]]));
    let company = Company::new(&world, "http/1.1");
    let config = format!(
        "model = \"company/m\"\n[providers.company]\nbase-url = \"https://{HOST}/v1\"\nca-file = {:?}\napi-key-env = \"KEY\"\n",
        company.ca_file
    );
    let (proxy, asked) = proxy(&world, company.serve(&world));
    assert_eq!(ask(&world, &config, &[("HTTPS_PROXY", &proxy), ("KEY", "sk")]), "hello");
    let asked = asked.lock().unwrap();
    assert!(!asked.is_empty() && asked.iter().all(|line| line == "CONNECT models.test:443 HTTP/1.1"), "{asked:?}");
}

#[test]
fn hosts_in_no_proxy_bypass_the_proxy() {
    let world = World::new(json!([[{ "text": "hello" }]]));
    let company = Company::new(&world, "http/1.1");
    let ca_file = company.ca_file.clone();
    let address = company.serve(&world);
    let (proxy, asked) = proxy(&world, address);
    let config = format!(
        "model = \"company/m\"\n[providers.company]\nbase-url = \"https://{address}/v1\"\nca-file = {ca_file:?}\n"
    );
    assert_eq!(ask(&world, &config, &[("ALL_PROXY", &proxy), ("NO_PROXY", "elsewhere.test,127.0.0.1")]), "hello");
    assert_eq!(*asked.lock().unwrap(), Vec::<String>::new());
}

#[test]
fn plain_http_uses_absolute_urls_at_the_proxy() {
    let world = World::new(json!([[{ "text": "hello" }]]));
    let proxy = format!("http://{}", model(&world));
    let config = format!("model = \"company/m\"\n[providers.company]\nbase-url = \"http://{HOST}/v1\"\n");
    assert_eq!(ask(&world, &config, &[("http_proxy", &proxy)]), "hello");
}

#[test]
fn untrusted_certificates_are_refused_with_a_remedy() {
    let world = World::new(json!([]));
    let address = Company::new(&world, "http/1.1").serve(&world);
    let endpoint = Endpoint::new("company", Api::Chat, &format!("https://{address}/v1"), "m");
    let error = world.wait(Provider::http(endpoint.clone()).models()).unwrap_err().to_string();
    assert!(error.contains("UnknownIssuer") && error.contains("ca-file"), "{error}");

    let nowhere = Endpoint { ca_file: Some("/nowhere.pem".into()), ..endpoint.clone() };
    let error = world.wait(Provider::http(nowhere).models()).unwrap_err().to_string();
    assert!(error.contains("ca-file /nowhere.pem"), "{error}");

    world.write("empty.pem", "nothing\n");
    let empty = Endpoint { ca_file: Some(world.path().join("empty.pem")), ..endpoint };
    let error = world.wait(Provider::http(empty).models()).unwrap_err().to_string();
    assert!(error.contains("has no PEM certificate"), "{error}");
}

#[test]
fn http_2_is_used_if_the_server_supports_it() {
    let world = World::new(json!([]));
    let Company { ca_file, acceptor } = Company::new(&world, "h2");
    let address = listen(&world, move |socket| {
        let acceptor = acceptor.clone();
        async move {
            let mut connection = h2::server::handshake(acceptor.accept(socket).await?).await.unwrap();
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                let list = json!({ "data": [{ "id": request.uri().path() }] }).to_string();
                #[expect(clippy::default_trait_access, reason = "its type is of a crate that is not named here")]
                let mut body = respond.send_response(Default::default(), false).unwrap();
                body.send_data(list.into(), true).unwrap();
            }
            Ok(())
        }
    });
    let endpoint = Endpoint {
        ca_file: Some(ca_file),
        ..Endpoint::new("company", Api::Chat, &format!("https://{address}/v1"), "m")
    };
    let models = world.wait(Provider::http(endpoint).models()).unwrap();
    assert_eq!(models[0].id, "/v1/models");
}
