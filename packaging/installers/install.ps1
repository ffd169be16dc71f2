# Installs tandem @VERSION@ into %LOCALAPPDATA%\Programs\tandem (or TANDEM_INSTALL_DIR) and adds that directory to your PATH.
# Removing the directory and the entry uninstalls it.
$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'

$architecture = if ($env:PROCESSOR_ARCHITEW6432) { $env:PROCESSOR_ARCHITEW6432 } else { $env:PROCESSOR_ARCHITECTURE }
$target, $digest = switch ($architecture) {
    'AMD64' { 'x86_64-pc-windows-msvc', '@SHA256_X86_64_PC_WINDOWS_MSVC@' }
    'ARM64' { 'aarch64-pc-windows-msvc', '@SHA256_AARCH64_PC_WINDOWS_MSVC@' }
    default { throw "there is no program for $architecture; with Rust 1.95: cargo install tandem-ls" }
}
$folder = if ($env:TANDEM_INSTALL_DIR) { $env:TANDEM_INSTALL_DIR } else { Join-Path $env:LOCALAPPDATA 'Programs\tandem' }
$source = if ($env:TANDEM_DOWNLOAD) { $env:TANDEM_DOWNLOAD } else { '@DOWNLOAD@' }
$work = Join-Path ([IO.Path]::GetTempPath()) ([Guid]::NewGuid())
New-Item -ItemType Directory -Path $work, $folder -Force | Out-Null
try {
    [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12
    Invoke-WebRequest -UseBasicParsing -Uri "$source/tandem-$target.zip" -OutFile "$work\archive.zip"
    if ((Get-FileHash -Algorithm SHA256 "$work\archive.zip").Hash -ne $digest) {
        throw 'the archive is not the one of this release (SHA-256 differs); nothing was installed'
    }
    Expand-Archive -Path "$work\archive.zip" -DestinationPath "$work\archive"
    Copy-Item -Path "$work\archive\tandem.exe" -Destination $folder -Force
} finally {
    Remove-Item -Recurse -Force $work
}
Write-Output "installed $(& "$folder\tandem.exe" --version) in $folder"
$path = [Environment]::GetEnvironmentVariable('Path', 'User')
if (($path -split ';') -notcontains $folder) {
    [Environment]::SetEnvironmentVariable('Path', (@($path, $folder) | Where-Object { $_ }) -join ';', 'User')
    Write-Output 'open a new terminal, then try it: tandem demo'
}
