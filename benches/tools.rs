//! Finding files and text in a big tree: the folder named by `TANDEM_BENCH_TREE`, else the sources of this crate's
//! dependencies. To compare: `fdfind -H -e rs . TREE` and `rg -H -n --hidden PATTERN TREE`.

use std::path::PathBuf;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};
use tandem::text::Encoding;
use tandem::tools::{Editing, ToolContext, all, find};
use tandem::workspace::{Documents, NoEditor, Root, Workspace};
use tokio_util::sync::CancellationToken;

#[expect(clippy::disallowed_methods, reason = "a bench has no configuration")]
fn tree() -> PathBuf {
    let named = std::env::var_os("TANDEM_BENCH_TREE").map(PathBuf::from);
    named
        .or_else(|| Some(std::env::home_dir()?.join(".cargo/registry/src")))
        .expect("there is a home folder")
}

fn tools(criterion: &mut Criterion) {
    let root = Arc::new(Root::open(&tree()).expect("the tree can be opened"));
    let workspace = Workspace::new(
        vec![root],
        Documents::new(Encoding::Utf16),
        Arc::new(NoEditor),
    );
    let context = ToolContext::new(workspace, CancellationToken::new());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime can be made");
    let mut group = criterion.benchmark_group("tools");
    group.sample_size(20);
    let mut bench = |label: &str, tool: &str, arguments: Value| {
        let tool = find(&all(Editing::Replacements), tool)
            .expect("the tool is built in")
            .clone();
        group.bench_function(label, |bencher| {
            bencher.iter(|| {
                runtime
                    .block_on(tool.run(&context, &arguments))
                    .expect("the call is right")
            });
        });
    };
    bench("list", "list_files", json!({}));
    bench("glob", "glob", json!({"pattern": "*.rs"}));
    bench(
        "grep rare text",
        "grep",
        json!({"pattern": "RESOLVE_BENEATH"}),
    );
    bench("grep common text", "grep", json!({"pattern": "unwrap"}));
    bench(
        "grep expression",
        "grep",
        json!({"pattern": r"\bfn\s+\w+_with\w*\("}),
    );
    group.finish();
}

criterion_group!(benches, tools);
criterion_main!(benches);
