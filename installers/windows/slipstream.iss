; Inno Setup 6: per user, without rights of an administrator. build.ps1 runs it.
; Never run yet: see installers/README.md.

#ifndef Version
  #error "build.ps1 gives /DVersion, /DSource and /DOutput"
#endif

[Setup]
; Another one would be another app beside this one, which an upgrade then leaves.
AppId={{6B0F2B57-5E0D-4C55-9A0E-2B0D2C1B7C11}
AppName=Slipstream
AppVersion={#Version}
AppPublisher=Slipstream contributors
DefaultDirName={localappdata}\Programs\Slipstream
DefaultGroupName=Slipstream
DisableProgramGroupPage=yes
PrivilegesRequired=lowest
ArchitecturesAllowed=x64compatible
ArchitecturesInstallIn64BitMode=x64compatible
MinVersion=10.0.17763
LicenseFile={#SourcePath}\..\..\LICENSE
OutputDir={#Output}
OutputBaseFilename=slipstream-{#Version}-windows-x86_64
SetupIconFile={#Source}\..\..\slipstream.ico
UninstallDisplayIcon={app}\slipstreamw.exe
Compression=lzma2/max
SolidCompression=yes
WizardStyle=modern
CloseApplications=yes
ChangesAssociations=yes

[Tasks]
Name: desktopicon; Description: "{cm:CreateDesktopIcon}"; Flags: unchecked

; What an older version had and this one has not would else be loaded.
[InstallDelete]
Type: filesandordirs; Name: "{app}\_internal"

[Files]
Source: "{#Source}\*"; DestDir: "{app}"; Flags: ignoreversion recursesubdirs createallsubdirs

[Icons]
Name: "{userprograms}\Slipstream"; Filename: "{app}\slipstreamw.exe"; AppUserModelID: "invalid.slipstream.Slipstream"
Name: "{userdesktop}\Slipstream"; Filename: "{app}\slipstreamw.exe"; Tasks: desktopicon

[Registry]
Root: HKCU; Subkey: "Software\Classes\Slipstream.Chat"; ValueType: string; ValueData: "Slipstream chat"; Flags: uninsdeletekey
Root: HKCU; Subkey: "Software\Classes\Slipstream.Chat\shell\open\command"; ValueType: string; ValueData: """{app}\slipstreamw.exe"" ""%1"""
; Windows knows the last suffix alone: ours is offered for .json, and takes it from nobody.
Root: HKCU; Subkey: "Software\Classes\.json\OpenWithProgids"; ValueType: none; ValueName: "Slipstream.Chat"; Flags: uninsdeletevalue

[Run]
Filename: "{app}\slipstreamw.exe"; Description: "{cm:LaunchProgram,Slipstream}"; Flags: nowait postinstall skipifsilent
