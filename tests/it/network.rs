//! The network between an editor and its model: private certificate authorities, proxies, HTTP/2. All on
//! loopback.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use tandem::domain::Proxy;
use tandem::model::{Api, Endpoint, Provider};
use tandem::server::Transport;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::driver::World;

/// A host that only the proxy can resolve.
const HOST: &str = "models.test";

/// A private certificate authority, and a server with a certificate from it.
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
        Self {
            ca_file: world.path().join("ca.pem"),
            acceptor: Arc::new(config).into(),
        }
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

/// The address of the world's scripted model.
fn model(world: &World) -> SocketAddr {
    let url = world.model.base_url();
    url.trim_start_matches("http://")
        .trim_end_matches("/v1")
        .parse()
        .unwrap()
}

/// Serves every connection to a new port.
fn listen<F: Future<Output = std::io::Result<()>> + Send + 'static>(
    world: &World,
    serve: impl Fn(TcpStream) -> F + Send + 'static,
) -> SocketAddr {
    let listener = world
        .wait(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .unwrap();
    let address = listener.local_addr().unwrap();
    world.runtime.spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve(socket));
        }
    });
    address
}

async fn pass(
    mut socket: impl AsyncRead + AsyncWrite + Unpin,
    to: SocketAddr,
) -> std::io::Result<()> {
    copy_bidirectional(&mut socket, &mut TcpStream::connect(to).await?).await?;
    Ok(())
}

/// The lines of a request up to its body.
async fn head(socket: &mut TcpStream) -> std::io::Result<Vec<String>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head)
        .lines()
        .map(str::to_owned)
        .collect())
}

/// A proxy that connects everyone to `to`, and the requests it received.
fn proxy(world: &World, to: SocketAddr) -> (String, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let address = listen(world, move |mut socket| {
        let seen = Arc::clone(&seen);
        async move {
            let head = head(&mut socket).await?;
            seen.lock().unwrap().push(head[0].clone());
            socket.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await?;
            pass(socket, to).await
        }
    });
    (format!("http://{address}"), asked)
}

/// A proxy that connects clients to `to` if they send a name and password.
fn guarded_proxy(world: &World, to: SocketAddr) -> SocketAddr {
    listen(world, move |mut socket| async move {
        let head = head(&mut socket).await?;
        // `someone:p@ss`
        if !head
            .iter()
            .any(|line| line.eq_ignore_ascii_case("proxy-authorization: Basic c29tZW9uZTpwQHNz"))
        {
            let refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            return socket.write_all(refusal).await;
        }
        socket.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await?;
        pass(socket, to).await
    })
}

/// Sends one prompt to the configured model and returns the answer.
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
    assert_eq!(
        ask(&world, &config, &[("HTTPS_PROXY", &proxy), ("KEY", "sk")]),
        "hello"
    );
    let asked = asked.lock().unwrap();
    assert!(
        !asked.is_empty()
            && asked
                .iter()
                .all(|line| line == "CONNECT models.test:443 HTTP/1.1"),
        "{asked:?}"
    );
}

#[test]
fn a_proxy_that_requires_a_password_gets_it_or_is_reported() {
    let world = World::new(json!([[{ "text": "hello" }]]));
    let company = Company::new(&world, "http/1.1");
    let ca_file = company.ca_file.clone();
    let proxy = guarded_proxy(&world, company.serve(&world));
    let through = |address: &str, scheme: &str| {
        let proxy = Proxy {
            variable: "HTTPS_PROXY",
            url: format!("http://{address}"),
            except: String::new(),
        };
        let base = format!("{scheme}://{HOST}/v1");
        let endpoint = Endpoint::new("company", Api::Chat, &base, "m");
        let endpoint = Endpoint {
            proxy: Some(proxy),
            ca_file: Some(ca_file.clone()),
            ..endpoint
        };
        world
            .wait(Provider::http(endpoint).models())
            .unwrap_err()
            .to_string()
    };
    for scheme in ["https", "http"] {
        for address in [proxy.to_string(), format!("someone:wrong@{proxy}")] {
            let error = through(&address, scheme);
            assert!(
                error.contains("HTTPS_PROXY=http://NAME:PASSWORD@HOST:PORT"),
                "{error}"
            );
            assert!(!error.contains("wrong"), "{error}");
        }
    }
    let nobody = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr();
    let nobody = nobody.unwrap().to_string();
    let error = through(&nobody, "https");
    let named = format!("and the proxy http://{nobody}");
    assert!(error.contains(&named), "{error}");

    let config = format!(
        "model = \"company/m\"\n[providers.company]\nbase-url = \"https://{HOST}/v1\"\nca-file = {ca_file:?}\n"
    );
    assert_eq!(
        ask(
            &world,
            &config,
            &[("HTTPS_PROXY", &format!("http://someone:p%40ss@{proxy}"))]
        ),
        "hello"
    );
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
    assert_eq!(
        ask(
            &world,
            &config,
            &[
                ("ALL_PROXY", &proxy),
                ("NO_PROXY", "elsewhere.test,127.0.0.1")
            ]
        ),
        "hello"
    );
    assert_eq!(*asked.lock().unwrap(), Vec::<String>::new());
}

#[test]
fn a_network_that_never_answers_does_not_delay_the_start() {
    for model in ["model = \"openai/m\"\n", ""] {
        let world = World::new(json!([]));
        let gave_up = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&gave_up);
        let silent = listen(&world, move |mut socket| {
            let seen = Arc::clone(&seen);
            async move {
                socket.read_to_end(&mut Vec::new()).await?;
                seen.store(true, Ordering::SeqCst);
                Ok(())
            }
        });
        let config = format!("{model}[providers.openai]\nbase-url = \"http://{silent}/v1\"\n");
        world.write(".home/config/config.toml", &config);
        let mut client = world.stranger_on(Transport::Acp, &[("OPENAI_API_KEY", "sk")]);
        client.call("initialize", json!({ "protocolVersion": 1 }));
        client.session(&world);
        assert!(
            !gave_up.load(Ordering::SeqCst),
            "the session waited for the model's server"
        );
    }
}

#[test]
fn plain_http_uses_absolute_urls_at_the_proxy() {
    let world = World::new(json!([[{ "text": "hello" }]]));
    let proxy = format!("http://{}", model(&world));
    let config =
        format!("model = \"company/m\"\n[providers.company]\nbase-url = \"http://{HOST}/v1\"\n");
    assert_eq!(ask(&world, &config, &[("http_proxy", &proxy)]), "hello");
}

#[test]
fn untrusted_certificates_are_refused_with_a_remedy() {
    let world = World::new(json!([]));
    let address = Company::new(&world, "http/1.1").serve(&world);
    let endpoint = Endpoint::new("company", Api::Chat, &format!("https://{address}/v1"), "m");
    let error = world
        .wait(Provider::http(endpoint.clone()).models())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("UnknownIssuer") && error.contains("ca-file"),
        "{error}"
    );

    let nowhere = Endpoint {
        ca_file: Some("/nowhere.pem".into()),
        ..endpoint.clone()
    };
    let error = world
        .wait(Provider::http(nowhere).models())
        .unwrap_err()
        .to_string();
    assert!(error.contains("ca-file /nowhere.pem"), "{error}");

    world.write("empty.pem", "nothing\n");
    let empty = Endpoint {
        ca_file: Some(world.path().join("empty.pem")),
        ..endpoint
    };
    let error = world
        .wait(Provider::http(empty).models())
        .unwrap_err()
        .to_string();
    assert!(error.contains("has no PEM certificate"), "{error}");
}

#[test]
fn http_2_is_used_if_the_server_supports_it() {
    let world = World::new(json!([]));
    let Company { ca_file, acceptor } = Company::new(&world, "h2");
    let address = listen(&world, move |socket| {
        let acceptor = acceptor.clone();
        async move {
            let mut connection = h2::server::handshake(acceptor.accept(socket).await?)
                .await
                .unwrap();
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                let list = json!({ "data": [{ "id": request.uri().path() }] }).to_string();
                #[expect(
                    clippy::default_trait_access,
                    reason = "its type is of a crate that is not named here"
                )]
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
