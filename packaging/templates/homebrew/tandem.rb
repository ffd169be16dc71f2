class Tandem < Formula
  desc "Coding agent that your editor runs as a language server"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "@DOWNLOAD@/tandem-aarch64-apple-darwin.tar.gz"
      sha256 "@SHA256_AARCH64_APPLE_DARWIN@"
    end
    on_intel do
      url "@DOWNLOAD@/tandem-x86_64-apple-darwin.tar.gz"
      sha256 "@SHA256_X86_64_APPLE_DARWIN@"
    end
  end

  on_linux do
    on_arm do
      url "@DOWNLOAD@/tandem-aarch64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256_AARCH64_UNKNOWN_LINUX_MUSL@"
    end
    on_intel do
      url "@DOWNLOAD@/tandem-x86_64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256_X86_64_UNKNOWN_LINUX_MUSL@"
    end
  end

  def install
    bin.install "tandem"
    man1.install "man/tandem.1"
    bash_completion.install "completions/tandem.bash" => "tandem"
    zsh_completion.install "completions/_tandem"
    fish_completion.install "completions/tandem.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/tandem --version")
  end
end
