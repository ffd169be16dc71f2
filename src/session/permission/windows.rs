//! Programs of Windows: which names mean one command, and what runs others.
//!
//! This serves rules that restrict. Commands are not sandboxed on Windows, so no rule allows one there.

use crate::text::lists;

/// The names of each command that has several, the canonical one first.
const ALIASES: &str = "
remove-item del erase rd ri rm rmdir
copy-item copy cp cpi
move-item mi move mv
rename-item ren rni
get-content cat gc type
get-childitem dir gci ls
new-item md mkdir ni
invoke-webrequest curl iwr wget
write-output echo write
stop-process kill spps taskkill
";

/// Programs that run other commands, or change what later ones mean.
const WRAPPERS: &str = "
% . ? call cd chdir cmd cscript for foreach foreach-object forfiles function icm iex if
invoke-command invoke-expression mshta new-alias popd powershell psexec pushd pwsh runas rundll32
sal saps schtasks set set-alias set-location sl start start-job start-process switch try
where-object while wmic wscript wsl
";

/// The name that a program goes by: `C:\x\RM.EXE` and `del` are `remove-item`.
pub(super) fn canonical(program: &str) -> String {
    let base = program
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or(program)
        .to_ascii_lowercase();
    let endings = [".exe", ".com", ".cmd", ".bat", ".ps1"];
    let name = endings
        .iter()
        .find_map(|ending| base.strip_suffix(ending))
        .unwrap_or(&base);
    let alias = ALIASES.lines().find(|names| lists(names, name));
    let first = alias.and_then(|names| names.split(' ').next());
    first.unwrap_or(name).to_owned()
}

/// Whether a program may run something that its name does not show.
pub(super) fn runs_others(program: &str) -> bool {
    lists(WRAPPERS, &canonical(program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_recognized_by_all_aliases() {
        for program in ["rm", "DEL", "Remove-Item", r"C:\tools\rm.EXE", "./rmdir"] {
            assert_eq!(canonical(program), "remove-item", "{program}");
        }
        assert_eq!(canonical("npm.cmd"), "npm");
        assert!(
            runs_others("IEX")
                && runs_others("cmd.exe")
                && runs_others(r"C:\w\powershell.exe")
                && !runs_others("cargo")
        );
    }
}
