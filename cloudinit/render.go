package cloudinit

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit/kubelet"
	"github.com/ingot-dev/ingot/cloudinit/kubelet/script"
	"github.com/ingot-dev/ingot/cloudinit/network"
)

// Paths of the files that configure kernel modules, and of units.
const (
	pathModulesLoad = "/etc/modules-load.d/ingot-gpu.conf"
	pathModprobe    = "/etc/modprobe.d/ingot-gpu.conf"
	unitDirectory   = "/etc/systemd/system/"
)

// Render returns the documents of a node. The same input always gives the same bytes. Errors are *Invalid, *Conflict, *TooLarge,
// *Unsupported, *SecretMissing, *network.Invalid, *properties.Invalid or *templates.Invalid. None of them quotes a secret.
func Render(in Input) (Documents, error) {
	in, err := resolve(in)
	if err != nil {
		return Documents{}, err
	}
	networkData, err := renderNetworkData(in)
	if err != nil {
		return Documents{}, err
	}
	userData, err := renderUserData(in)
	if err != nil {
		return Documents{}, err
	}
	metaData, err := renderMetaData(in.Machine)
	if err != nil {
		return Documents{}, err
	}
	if n := len(userData) + len(networkData) + len(metaData); n > Limit {
		return Documents{}, &TooLarge{Bytes: n}
	}
	return Documents{UserData: userData, NetworkData: networkData, MetaData: metaData}, nil
}

func renderUserData(in Input) ([]byte, error) {
	switch in.Kind {
	case "", v1alpha1.UserDataCloudInit:
		return renderCloudInit(in)
	case v1alpha1.UserDataIgnition:
		return renderIgnition(in)
	default:
		return nil, &Unsupported{Kind: string(in.Kind)}
	}
}

func renderCloudInit(in Input) ([]byte, error) {
	doc, scripts, err := mergeLayers(in.Layers, len(in.SSHKeys) > 0, reservedPaths(in.Plan))
	if err != nil {
		return nil, err
	}
	if err := addIngotKeys(doc.root, in); err != nil {
		return nil, err
	}
	// This is the last step, so that no error of an earlier step can quote a secret.
	files, join, err := secretContents(in)
	if err != nil {
		return nil, err
	}
	appendSecrets(doc.root, files)
	appendFiles(doc.root, join)
	config, err := doc.bytes()
	if err != nil || len(scripts) == 0 {
		return config, err
	}
	return mimeMessage(config, scripts), nil
}

// addIngotKeys appends what the node needs to the users' document.
func addIngotKeys(root *yaml.Node, in Input) error {
	root.Style = 0
	files, err := kubelet.Files(nodeOf(in))
	if err != nil {
		return err
	}
	appendTo(root, "ssh_authorized_keys", scalars(in.SSHKeys)...)
	appendTo(root, "packages", scalars(packageNames(in))...)
	appendFiles(root, append(planFiles(in.Plan), files...))
	appendTo(root, "runcmd", runCommands(in)...)
	return nil
}

// nodeOf returns the Node that kubelet registers.
func nodeOf(in Input) kubelet.Node {
	labels := map[string]string{}
	maps.Copy(labels, in.Node.Labels)
	maps.Copy(labels, in.Plan.NodeLabels)
	var units []string
	for _, u := range in.Plan.Units {
		units = append(units, u.Name)
	}
	providerID := v1alpha1.ProviderID(types.UID(in.Machine.UID), in.Machine.Attempt)
	if in.Node.ProviderID == v1alpha1.ProviderIDByCluster {
		providerID = ""
		labels[v1alpha1.LabelInstallation] = v1alpha1.InstallationLabel(types.UID(in.Machine.UID), in.Machine.Attempt)
	}
	return kubelet.Node{
		Units: units, Name: in.Machine.Name, ProviderID: providerID,
		Gate: in.Gate, Labels: labels, Taints: in.Node.Taints, Version: in.Kubelet.Version, Members: in.Kubelet.Members,
		ClusterDNS: in.Node.ClusterDNS, ClusterDomain: in.Node.ClusterDomain, Networks: in.Node.Networks, Method: in.Node.Method,
		ServerTLSBootstrap: in.Node.ServerTLSBootstrap,
	}
}

// planFiles returns all files of the plan without secrets, including those of its kernel modules and units.
func planFiles(p v1alpha1.NodePlan) []v1alpha1.NodeFile {
	out := plainFiles(p)
	for _, u := range p.Units {
		if u.Content != "" {
			out = append(out, v1alpha1.NodeFile{Path: unitDirectory + u.Name, Mode: "0644", Content: u.Content})
		}
	}
	return out
}

// plainFiles returns the files of planFiles without the units.
func plainFiles(p v1alpha1.NodePlan) []v1alpha1.NodeFile {
	var out []v1alpha1.NodeFile
	if len(p.Modules.Load) > 0 {
		out = append(out, v1alpha1.NodeFile{Path: pathModulesLoad, Mode: "0644", Content: strings.Join(p.Modules.Load, "\n") + "\n"})
	}
	if len(p.Modules.Blacklist) > 0 {
		out = append(out, v1alpha1.NodeFile{Path: pathModprobe, Mode: "0644", Content: "blacklist " + strings.Join(p.Modules.Blacklist, "\nblacklist ") + "\n"})
	}
	return append(out, p.Files...)
}

// reservedPaths returns the paths of the files that Ingot writes.
func reservedPaths(p v1alpha1.NodePlan) []string {
	out := slices.Clone(kubelet.Paths)
	for _, f := range planFiles(p) {
		out = append(out, f.Path)
	}
	for _, f := range p.SecretFiles {
		out = append(out, f.Path)
	}
	return out
}

// runCommands returns Ingot's items of runcmd. At the first boot they load the modules and the units, because systemd read its
// directories before cloud-init wrote to them.
//
// kubelet is stopped first and started last. Without it: an image enables kubelet; it runs with the command line of the image before cloud-init
// writes ours, "enable --now" leaves a unit that runs as it is, and the node never joins. It also keeps the policies of its CPU and memory manager in
// files, and a kubelet whose configuration has other policies does not start (pkg/kubelet/cm/cpumanager/state).
func runCommands(in Input) []*yaml.Node {
	p := in.Plan
	out := []*yaml.Node{
		command("systemctl", "daemon-reload"),
		command("systemctl", "stop", "kubelet"),
		command(append([]string{"rm", "-f"}, kubelet.PolicyFiles...)...),
	}
	if len(p.Modules.Load) > 0 {
		out = append(out, command("systemctl", "restart", "systemd-modules-load.service"))
	}
	for _, u := range p.Units {
		out = append(out, command("systemctl", "enable", "--now", u.Name))
	}
	if in.Node.Method.IsKubeadm() {
		// kubeadm waits for the API server for minutes, and tries again: the users' commands that cloud-init runs at the end do not wait for it.
		return append(out, command("systemctl", "enable", "kubelet", kubelet.JoinUnit), command("systemctl", "start", "--no-block", kubelet.JoinUnit))
	}
	if in.Node.Method == v1alpha1.JoinScript {
		return append(out, command("systemctl", "enable", script.Unit), command("systemctl", "start", "--no-block", script.Unit))
	}
	return append(out, command("systemctl", "enable", "--now", "kubelet"))
}

// command returns one item of runcmd.
func command(words ...string) *yaml.Node {
	n := sequence(scalars(words)...)
	n.Style = yaml.FlowStyle
	return n
}

// appendFiles appends files to write_files.
func appendFiles(root *yaml.Node, files []v1alpha1.NodeFile) {
	for _, f := range files {
		n := fileEntry(f.Path, f.Mode)
		set(n, "content", scalar(f.Content))
		appendTo(root, "write_files", n)
	}
}

// fileEntry returns an item of write_files without its content.
func fileEntry(path, mode string) *yaml.Node {
	n := mapping()
	set(n, "path", scalar(path))
	set(n, "permissions", scalar(mode))
	set(n, "owner", scalar("root:root"))
	return n
}

// appendTo appends items to a top-level list, and adds the list when the document does not have it.
func appendTo(root *yaml.Node, key string, items ...*yaml.Node) {
	if len(items) == 0 {
		return
	}
	list := sequence()
	if old := get(root, key); old != nil {
		list.Content = append(list.Content, old.Content...)
	}
	list.Content = append(list.Content, items...)
	set(root, key, list)
}

// scalars returns quoted string values.
func scalars(values []string) []*yaml.Node {
	out := make([]*yaml.Node, len(values))
	for i, v := range values {
		out[i] = scalar(v)
	}
	return out
}

type metaData struct {
	UUID          string `json:"uuid"`
	InstanceID    string `json:"instance-id"`
	Name          string `json:"name"`
	Hostname      string `json:"hostname"`
	LocalHostname string `json:"local-hostname"`
}

// renderMetaData returns the meta-data. Every installation has a different instance ID, because cloud-init runs its modules that run
// once for each instance only when the instance ID is new.
func renderMetaData(m MachineInput) ([]byte, error) {
	suffix := m.Revision[strings.LastIndex(m.Revision, "-")+1:]
	id := fmt.Sprintf("%s-%s-%d", m.UID, suffix, m.Attempt)
	out, err := json.MarshalIndent(metaData{UUID: id, InstanceID: id, Name: m.Name, Hostname: m.Name, LocalHostname: m.Name}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("render meta-data: %w", err)
	}
	return append(out, '\n'), nil
}

// NetworkConfig returns cloud-init's network-config version 2, for a NoCloud seed. It describes the same network as the
// network_data.json of Render. It is nil when no network is configured and the image uses its default. It must not be put on a config
// drive, whose reader would find an empty network in it. The errors are those of Render.
func NetworkConfig(in Input) ([]byte, error) {
	in, err := resolve(in)
	if err != nil {
		return nil, err
	}
	data, ok, err := networkOf(in)
	if err != nil || !ok {
		return nil, err
	}
	return data.NetworkConfig()
}

func renderNetworkData(in Input) ([]byte, error) {
	data, ok, err := networkOf(in)
	if err != nil || !ok {
		return nil, err
	}
	return data.JSON()
}

// networkOf returns the network that a user wrote, or else that of the NIC that the host boots from. ok is false when no network is
// configured.
func networkOf(in Input) (data network.Data, ok bool, err error) {
	if in.NetworkData.Text != "" {
		data, err := network.Parse(in.NetworkData.String(), in.NetworkData.Text)
		return data, err == nil, err
	}
	return bootNetwork(in).Data()
}

// bootNetwork returns the description of the NIC that the host boots from.
func bootNetwork(in Input) network.Boot {
	b := network.Boot{MAC: in.Host.BootMAC, Address: in.Host.IPAddress, Gateway: in.Host.Gateway, Ranges: in.Ranges}
	if in.Network != nil {
		b.CIDR, b.Resolvers = in.Network.CIDR, in.Network.DNSServers
	}
	if len(in.Host.Resolvers) > 0 {
		b.Resolvers = in.Host.Resolvers
	}
	return b
}
