//! Calculations with a variable run what its value contains; they ask unless the line sets it to numbers alone.

use super::*;

/// Lines that set `i` to a text that runs `rm f` when evaluated as arithmetic.
const TEXTS: &str = r#"
i={}
i=0; i={}
i=0; i+={}
i=0; true && i={}
i=0; declare i={}
i=0; declare 'i='{}
i=0; declare -x i={}
i=0; export i={}
i=0; readonly i={}
i=0; v=i; declare $v={}
ix=0; i=0; v=x; declare i$v={}; i=ix
i=0; declare {i,j}={}
for i in {}; do break; done
for i in 1 {}; do :; done
set -- {}; for i; do break; done
i=0; read i <<< {}
i=0; read -r j i <<< 1' '{}
i=0; read -ai <<< {}
i=0; v=i; read $v <<< {}
i=0; mapfile i <<< {}
i=0; readarray -t i <<< {}
i=0; printf -v i %s {}
i=0; printf -vi %s {}
i=0; v=-v; printf $v i %s {}
i=0; printf {-v,i} %s {}
i=0; printf ""{-v,i} %s {}
false && i=0; : ${i:={}}
false && i=0; : "${j:=${i={}}}"
i=0; j={}; i=$j
i=0; j={}; k=$j; i=${k}
i=0; eval i={}
i=0; f() { i=$1; }; f {}
i=0; set -- {}; i=$1
((1=2)); set -- {}; i=$1
((1a=2)); set -- {}; i=$1a
i=0; select i in {}; do break; done <<< 1
while read -r i; do break; done <<< {}
i=0; while getopts b: i -b {}; do i=$OPTARG; done
i=0; [[ {} =~ .* ]]; i=$BASH_REMATCH
i=0; : {}; i=$_
_=0; : {}; i=$_
i=$(echo {})
i=$(echo {}; ls | wc -l)
i=$(echo {} | tee x)
i=`echo {}`
i=$((echo {}); (true))
wc() { echo {}; }; i=$(wc -l < a)
i=$(seq {})
unset RANDOM; RANDOM={}; i=$RANDOM
i=(1 {}); i=${i[1]}
i[0]={}
"#;

/// Lines that set it to a number.
const SETS: &str = r"
i=3
i=-3; i+=1
for i in 0 1 2; do :; done
for i in {1..3}; do :; done
for i in $(seq 1 5); do :; done
i=$(ls | wc -l)
i=$(wc -l < a.txt)
i=$(date +%s)
i=$#
i=$((2 + 1))
j=3; i=$j
((i = 3))
let i=3
for ((i = 0; i < 3; i++)); do :; done
s=abc; i=${#s}
";

const CALCULATIONS: &str = r#"
(( i ))
(( i += 2 )) || ls
while (( i-- > 0 )); do ls; done
echo $((i + 1)) $((-$i)) $((${i} * 16))
echo "$[i]"
let i
let j=i+1 "k = i << 2"
[[ i -gt 0 ]] && ls
[[ 1 -lt $i || $i -eq 3 ]]
echo ${s:i} "${s:0:$i}"
echo ${a[i]} "${a[$i + 1]}" ${#a[i]}
for ((j = 0; j < i; j++)); do ls; done
j=$i; (( j ))
cat <<END; ls@$((i))@END
"#;

fn rows(table: &str) -> impl Iterator<Item = String> {
    table
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| line.replace('@', "\n"))
}

#[test]
fn a_line_calculates_with_its_own_numbers_and_asks_about_anything_else() {
    let deny = policy(&[], &[], &["run_command(rm *)"]);
    let is_free = |line: &String| deny.decide(Auto, &run(line)) == Verdict::Allow;
    // No word of these lines names the command in the rule.
    let values = [
        r#"'a[$(r""m f)]'"#,
        r#""a[\$(r''m f)]""#,
        r"a\[\`r\m\ f\`\]",
    ];
    let (mut texts, mut numbers) = (Vec::new(), Vec::new());
    for calculation in rows(CALCULATIONS) {
        for value in values {
            texts.extend(rows(TEXTS).map(|set| {
                let set = set.replace("{}", value);
                let rest = calculation.split_once('\n').map_or("", |(_, rest)| rest);
                let first = calculation.lines().next().unwrap_or_default();
                format!("{set}; {first}\n{rest}").trim_end().to_owned()
            }));
            // Another shell inherits what this one exports, whatever its own line sets.
            let inner = format!("false && i=0; {calculation}");
            let inner = crate::text::shell::quoted(&[inner]);
            texts.push(format!("export i={value}; bash -c {inner}"));
            texts.push(format!("i={value} sh -c {inner}"));
        }
        numbers.extend(rows(SETS).map(|set| format!("{set}; {calculation}")));
    }
    assert!(texts.len() > 1900 && numbers.len() > 190);
    texts.retain(is_free);
    assert_eq!(texts, Vec::<String>::new());
    numbers.retain(|line| !is_free(line));
    assert_eq!(numbers, Vec::<String>::new());
}

/// Whatever a variable or `xargs` appends to a script runs as part of it, and `find` runs the words after `-exec`.
#[test]
fn no_text_is_added_to_a_script_unasked() {
    let deny = policy(&[], &[], &["run_command(rm *)"]);
    for line in [
        r#"set -- 'a[$(r""m f)]'; echo ${!1}"#,
        r#"x='system("r" "m f")'; awk "BEGIN { $x }""#,
        r#"awk "BEGIN { `cat x` }""#,
        r#"x='b/e;1e r""m f;s/q'; sed "s/a/$x/" a"#,
        r#"sed -e "s/a/$x/" a"#,
        "cat x | xargs -I{} awk 'BEGIN { {} }'",
        "cat x | xargs -I % sed 's/a/%/' a",
        "cat x | xargs -I{} sh -c {}",
        "cat x | xargs -I{} -n1 env",
        "cat x | xargs -I rm rm f",
        "find f -exec env r\"\"m {} \\;",
        "find f -exec sh -c 'r\"\"m \"$0\"' {} \\;",
        "find f -exec echo {} + -exec rm {} +",
        "find f -exec echo {} + -delete",
        "find f -exec {} \\;",
        "find . -not -name -exec -exec sh \\; <<< 'r\"\"m f'",
        "git --namespace x -c alias.x='!r\"\"m f' x",
        "git -C . -c alias.x='!r\"\"m f' x",
        "git -c color.ui=always -c core.fsmonitor=./x status",
        "git -c core.hooksPath=true commit",
        "git -c alias.x=cat x",
        "GIT_EXEC_PATH=1 git x",
        "GIT_PAGER=./x git log",
        "export GIT_EDITOR=./x; git commit",
    ] {
        assert_ne!(deny.decide(Auto, &run(line)), Verdict::Allow, "{line}");
    }
}
