package ironic

import "text/template"

// Options configure a Server. The zero value is an Ironic without authentication.
type Options struct {
	// Username and Password are those of HTTP basic authentication; empty: the API asks for none.
	Username, Password string
	// MaxDeploys and MaxCleans are the limits above which Ironic rejects; 0: its own, 250 and 50.
	MaxDeploys, MaxCleans int
	// DeployDelay, PowerDelay and InspectDelay are the seconds that the interfaces of fake-hardware take.
	DeployDelay, PowerDelay, InspectDelay int
	// HardwareType is the only one that is enabled, with Ironic's own default for each interface; empty: fake-hardware, redfish and ipmi, with the management
	// interface noop.
	HardwareType string
	// Address is the IP address that Ironic is reached at, also by its agent; empty: one of the loopback.
	Address string
	// FilesURL is where the files in the directory FilesDir are served, which servers and BMCs boot; empty: nowhere.
	FilesURL string
	// AgentDir is the directory with the files that boot Ironic's agent: vmlinuz, agent.cpio.zst and, for virtual media, bootloader.img, which is an EFI system
	// partition with GRUB as Debian builds it; empty: nothing is booted.
	AgentDir string
	// Root is the directory of another system whose Ironic is run, which needs root; empty: this system's. It is for the Ironic of another release of Debian.
	Root string
	// HasOwnIntervals leaves Ironic's own intervals of power synchronization and its own retries on a locked node; false: those that let a test wait briefly.
	HasOwnIntervals bool
	// Workers is the size of the pool of workers of the conductor, at least 3, of which it takes two itself; 0: Ironic's own, 100.
	Workers int
	// AgentTimeout is how many seconds Ironic waits for an agent that says nothing; 0: its own, half an hour.
	AgentTimeout int
	// PowerSync is how many seconds lie between two looks of Ironic at the power of its nodes; 0: a few, because a test waits for it.
	PowerSync int
	// AdoptsPower means that Ironic takes a power for its own that was changed without it; false: it changes the power back, as it does by default.
	AdoptsPower bool
	// PageLimit is the most nodes that one page of a list has, whatever is asked for; 0: Ironic's own, 1000.
	PageLimit int
	// InspectorURL is where ironic-inspector is served, for nodes with the inspect interface inspector; empty: nowhere.
	InspectorURL string
}

// FilesDir is the directory, below that of the process, with what servers and BMCs boot.
const FilesDir = "httpboot"

// settings are what the template of the configuration takes.
type settings struct {
	Options
	Dir, Auth         string
	Port, ConductPort string
	FilesDir          string
}

// config is Ironic's configuration. Power synchronization is frequent unless HasOwnIntervals, because a test waits for it. The management interface of fake-hardware knows no boot
// from a disk, which ends a deployment by an agent: noop takes its place.
var config = template.Must(template.New("ironic.conf").Parse(`[DEFAULT]
auth_strategy={{.Auth}}
http_basic_auth_user_file={{.Dir}}/htpasswd
rpc_transport=json-rpc
host={{.Address}}
my_ip={{.Address}}
enabled_hardware_types={{or .HardwareType "fake-hardware,redfish,ipmi"}}
enabled_boot_interfaces=fake,redfish-virtual-media,ipxe,pxe
enabled_deploy_interfaces=fake,direct,ramdisk
enabled_network_interfaces=noop
enabled_power_interfaces=fake,redfish,ipmitool
enabled_management_interfaces=fake,redfish,ipmitool,noop
{{- if not .HardwareType}}
default_management_interface=noop{{end}}
enabled_inspect_interfaces=fake,redfish,no-inspect{{if .InspectorURL}},inspector{{end}}
enabled_bios_interfaces=fake,redfish,no-bios
enabled_raid_interfaces=fake,redfish,no-raid
enabled_console_interfaces=fake,no-console
enabled_rescue_interfaces=fake,no-rescue
enabled_storage_interfaces=noop,fake
enabled_vendor_interfaces=fake,redfish,no-vendor,ipmitool
grub_config_path=EFI/debian/grub.cfg
state_path={{.Dir}}/state
[api]
host_ip={{.Address}}
port={{.Port}}
{{- if .PageLimit}}
max_limit={{.PageLimit}}{{end}}
[json_rpc]
auth_strategy=noauth
host_ip={{.Address}}
port={{.ConductPort}}
[database]
connection=sqlite:///{{.Dir}}/ironic.sqlite?timeout=60
sqlite_synchronous=false
[dhcp]
dhcp_provider=none
[agent]
image_download_source=http
require_tls=false
post_deploy_get_power_state_retries=1
post_deploy_get_power_state_retry_interval=0
[deploy]
http_root={{.Dir}}/{{.FilesDir}}
http_url={{or .FilesURL "http://127.0.0.1:9"}}
default_boot_mode=uefi
[pxe]
tftp_root={{.Dir}}/tftpboot
tftp_master_path={{.Dir}}/master
images_path={{.Dir}}/images
instance_master_path={{.Dir}}/master
kernel_append_params=console=ttyS0
[redfish]
use_swift=false
kernel_append_params=console=ttyS0
[ipmi]
command_retry_timeout=10
min_command_interval=1
[service_catalog]
auth_type=none
endpoint_override=http://{{.Address}}:{{.Port}}
{{- if .InspectorURL}}
[inspector]
auth_type=none
endpoint_override={{.InspectorURL}}{{end}}
[fake]
deploy_delay={{.DeployDelay}}
power_delay={{.PowerDelay}}
inspect_delay={{.InspectDelay}}
[conductor]
{{- if .AgentDir}}
file_url_allowed_paths={{.AgentDir}}
deploy_kernel=file://{{.AgentDir}}/vmlinuz
deploy_ramdisk=file://{{.AgentDir}}/agent.cpio.zst
bootloader=file://{{.AgentDir}}/bootloader.img{{end}}
automated_clean=true
{{- if not .HasOwnIntervals}}
sync_power_state_interval={{or .PowerSync 5}}
node_locked_retry_attempts=1{{end}}
{{- if .AdoptsPower}}
force_power_state_during_sync=false{{end}}
{{- if .Workers}}
workers_pool_size={{.Workers}}{{end}}
{{- if .MaxDeploys}}
max_concurrent_deploy={{.MaxDeploys}}{{end}}
{{- if .MaxCleans}}
max_concurrent_clean={{.MaxCleans}}{{end}}
{{- if .AgentTimeout}}
deploy_callback_timeout={{.AgentTimeout}}
clean_callback_timeout={{.AgentTimeout}}
check_provision_state_interval=1{{end}}
`))
