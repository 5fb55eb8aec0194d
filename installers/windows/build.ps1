# The installer for Windows: python dev.py package, then Inno Setup over the folder that it made.
# Needs Python 3.11, Visual Studio's C++ tools and Inno Setup 6. Never built, never run: there was
# no such machine.
#
#   powershell -ExecutionPolicy Bypass -File installers\windows\build.ps1 [-Certificate THUMBPRINT]

[CmdletBinding()]
param(
    # Of a certificate for code in the user's store; without it nothing is signed, and SmartScreen warns.
    [string] $Certificate = ''
)

Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'

$root = (Resolve-Path (Join-Path $PSScriptRoot '..\..')).Path
$dist = Join-Path $root 'dist'

function Invoke-Checked {
    param([string] $Program, [string[]] $Arguments)
    & $Program @Arguments
    if ($LASTEXITCODE -ne 0) {
        throw "$Program ended with status $LASTEXITCODE"
    }
}

function Find-Program {
    param([string] $Name, [string[]] $Places)
    $found = Get-Command $Name -ErrorAction SilentlyContinue
    if ($found) {
        return $found.Source
    }
    foreach ($place in $Places) {
        if (Test-Path $place) {
            return $place
        }
    }
    throw "$Name is not installed"
}

function Add-Signature {
    param([string[]] $Files)
    if (-not $Certificate) {
        return
    }
    $tool = Find-Program 'signtool.exe' @()
    $options = @('sign', '/sha1', $Certificate, '/fd', 'SHA256',
        '/tr', 'http://timestamp.digicert.com', '/td', 'SHA256')
    Invoke-Checked $tool ($options + $Files)
}

$compiler = Find-Program 'ISCC.exe' @("${env:ProgramFiles(x86)}\Inno Setup 6\ISCC.exe")
Invoke-Checked 'python' @((Join-Path $root 'dev.py'), 'package')
$sizes = Get-ChildItem (Join-Path $dist 'slipstream-*.sizes.json') |
    Sort-Object LastWriteTime | Select-Object -Last 1
$made = Get-Content $sizes.FullName -Raw | ConvertFrom-Json
Add-Signature @(
    (Join-Path $made.folder 'slipstream.exe'),
    (Join-Path $made.folder 'slipstreamw.exe')
)
Invoke-Checked $compiler @(
    "/DVersion=$($made.version)", "/DSource=$($made.folder)", "/DOutput=$dist",
    (Join-Path $PSScriptRoot 'slipstream.iss')
)
Add-Signature @((Join-Path $dist "slipstream-$($made.version)-windows-x86_64.exe"))
