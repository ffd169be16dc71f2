{ lib, stdenvNoCC, fetchurl, installShellFiles }:

let
  sources = {
    x86_64-linux = { target = "x86_64-unknown-linux-musl"; hash = "@SHA256_X86_64_UNKNOWN_LINUX_MUSL@"; };
    aarch64-linux = { target = "aarch64-unknown-linux-musl"; hash = "@SHA256_AARCH64_UNKNOWN_LINUX_MUSL@"; };
    x86_64-darwin = { target = "x86_64-apple-darwin"; hash = "@SHA256_X86_64_APPLE_DARWIN@"; };
    aarch64-darwin = { target = "aarch64-apple-darwin"; hash = "@SHA256_AARCH64_APPLE_DARWIN@"; };
  };
  source = sources.${stdenvNoCC.hostPlatform.system};
in
stdenvNoCC.mkDerivation {
  pname = "tandem-ls";
  version = "@VERSION@";
  src = fetchurl {
    url = "@DOWNLOAD@/tandem-${source.target}.tar.gz";
    sha256 = source.hash;
  };
  sourceRoot = ".";
  nativeBuildInputs = [ installShellFiles ];
  installPhase = ''
    install -Dm755 tandem $out/bin/tandem
    installManPage man/tandem.1
    installShellCompletion completions/tandem.bash completions/_tandem completions/tandem.fish
  '';
  meta = {
    description = "A coding agent that your editor runs as a language server";
    homepage = "@REPOSITORY@";
    license = [ lib.licenses.mit lib.licenses.asl20 ];
    mainProgram = "tandem";
    platforms = builtins.attrNames sources;
  };
}
