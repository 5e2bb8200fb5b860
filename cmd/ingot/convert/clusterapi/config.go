package clusterapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/cloudinit/properties"
	"github.com/ingot-dev/ingot/cmd/ingot/convert/conversion"
)

const configField = "spec.template.spec"

// convertConfig sets user data, kubelet's settings, labels and taints from the KubeadmConfigTemplate.
func (c *converter) convertConfig(d deployment, spec map[string]any) {
	config := conversion.ValueAt[map[string]any](d.config.Object, "spec", "template", "spec")
	if config == nil {
		return
	}
	if format := text(config, "format"); format == "ignition" {
		c.AddFinding(d.config, configField+".format", conversion.RuleAdd, "the image reads Ignition: add spec.userData: Ignition to its OSImage, and write what user data has as units and files")
	}
	c.convertRegistration(d, conversion.ValueAt[map[string]any](config, "joinConfiguration", "nodeRegistration"), spec)
	t := d.newTranslation()
	document := c.userData(d, config, t)
	c.reportMetadata(d, t.unknown)
	c.setUserData(d, document, t, spec)
	c.ReportDroppedFields(d.config, config, configField, map[string]string{
		"clusterConfiguration": "the control plane's own configuration is read from the cluster", "initConfiguration": "control planes stay with Cluster API",
		"postKubeadmCommands":      "the node has joined then: make a systemd unit ordered after kubelet.service, in the image or in user data",
		"useExperimentalRetryJoin": "kubeadm is started again until the Machine's deadline", "ignition": "write what it has as files and units of the image",
		"bootCommands": "write them as bootcmd of spec.userData, if they are needed at every boot",
	}, "joinConfiguration", "files", "users", "ntp", "mounts", "diskSetup", "preKubeadmCommands", "format", "verbosity")
}

// setUserData sets the NodeType's user data: as a property where it reads values of a host or a Machine.
func (c *converter) setUserData(d deployment, document map[string]any, t *translation, spec map[string]any) {
	if len(document) == 0 {
		return
	}
	body, err := yaml.Marshal(document)
	if err != nil {
		c.AddFinding(d.config, configField, conversion.RuleLost, "its user data cannot be written: %v", err)
		return
	}
	whole, isTemplate := t.template("#cloud-config\n" + string(body))
	if !isTemplate {
		spec["userData"] = whole
		return
	}
	said := conversion.ValueAt[map[string]any](spec, "properties")
	if said == nil {
		said = map[string]any{}
		spec["properties"] = said
	}
	said[properties.UserDataTemplate] = whole
}

// userData returns the members of a #cloud-config document.
func (c *converter) userData(d deployment, config map[string]any, t *translation) map[string]any {
	out := map[string]any{}
	var files []any
	for i, f := range items(config, "files") {
		if file := c.writtenFile(d, fmt.Sprintf("%s.files[%d]", configField, i), f, t); file != nil {
			files = append(files, file)
		}
	}
	conversion.CopyField(out, "write_files", files)
	var users []any
	for i, u := range items(config, "users") {
		users = append(users, c.user(d, fmt.Sprintf("%s.users[%d]", configField, i), u, t))
	}
	conversion.CopyField(out, "users", users)
	if ntp := conversion.ValueAt[map[string]any](config, "ntp"); ntp != nil {
		out["ntp"] = translateAll(ntp, t)
	}
	if mounts := conversion.ValueAt[[]any](config, "mounts"); len(mounts) > 0 {
		out["mounts"] = translateAll(mounts, t)
	}
	if disks := conversion.ValueAt[map[string]any](config, "diskSetup"); disks != nil {
		c.convertDisks(disks, out)
	}
	if commands := conversion.ValueAt[[]any](config, "preKubeadmCommands"); len(commands) > 0 {
		out["runcmd"] = translateAll(commands, t)
		c.reportCommands(d, commands)
	}
	return out
}

// translateAll translates every text of a value.
func translateAll(value any, t *translation) any {
	switch v := value.(type) {
	case string:
		return t.replaceValues(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = translateAll(v[i], t)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k := range v {
			out[k] = translateAll(v[k], t)
		}
		return out
	}
	return value
}

// writtenFile returns an entry of write_files; nil: its content is not in the files.
func (c *converter) writtenFile(d deployment, field string, f map[string]any, t *translation) map[string]any {
	if f["contentFrom"] != nil {
		c.AddFinding(d.config, field+".contentFrom", conversion.RuleLost, "%s has its content in a Secret, which user data of a NodeType cannot name: put the file into the image", text(f, "path"))
		return nil
	}
	out := map[string]any{}
	for _, member := range []string{"path", "owner", "permissions", "encoding"} {
		conversion.CopyField(out, member, text(f, member))
	}
	if isTrue := conversion.ValueAt[bool](f, "append"); isTrue {
		out["append"] = true
	}
	out["content"] = t.replaceValues(text(f, "content"))
	return out
}

// user returns an entry of users, whose members cloud-init names otherwise.
func (c *converter) user(d deployment, field string, u map[string]any, t *translation) map[string]any {
	out := map[string]any{}
	for member, name := range map[string]string{"name": "name", "gecos": "gecos", "groups": "groups", "homeDir": "homedir", "shell": "shell", "passwd": "passwd", "primaryGroup": "primary_group", "sudo": "sudo"} {
		conversion.CopyField(out, name, t.replaceValues(text(u, member)))
	}
	if locked, is := u["lockPassword"].(bool); is {
		out["lock_passwd"] = locked
	}
	if inactive, is := u["inactive"].(bool); is {
		out["inactive"] = inactive
	}
	conversion.CopyField(out, "ssh_authorized_keys", conversion.ValueAt[[]any](u, "sshAuthorizedKeys"))
	if u["passwdFrom"] != nil {
		c.AddFinding(d.config, field+".passwdFrom", conversion.RuleLost, "the password is in a Secret: let the user log in with a key, sshAuthorizedKeys")
	}
	return out
}

// convertDisks sets the disks, partitions and file systems as cloud-init has them.
func (c *converter) convertDisks(disks, out map[string]any) {
	setup := map[string]any{}
	for _, p := range items(disks, "partitions") {
		entry := map[string]any{"layout": p["layout"]}
		conversion.CopyField(entry, "table_type", text(p, "tableType"))
		if overwrite, is := p["overwrite"].(bool); is {
			entry["overwrite"] = overwrite
		}
		setup[text(p, "device")] = entry
	}
	conversion.CopyField(out, "disk_setup", setup)
	var systems []any
	for _, f := range items(disks, "filesystems") {
		entry := map[string]any{}
		for member, name := range map[string]string{"device": "device", "filesystem": "filesystem", "label": "label", "partition": "partition", "replaceFS": "replace_fs"} {
			conversion.CopyField(entry, name, text(f, member))
		}
		if overwrite, is := f["overwrite"].(bool); is {
			entry["overwrite"] = overwrite
		}
		conversion.CopyField(entry, "extra_opts", conversion.ValueAt[[]any](f, "extraOpts"))
		systems = append(systems, entry)
	}
	conversion.CopyField(out, "fs_setup", systems)
}

// fights are commands of user data that do what Ingot does, or undo it.
var fights = map[string]string{
	"kubeadm ": "the node joins by the join of its TenantCluster", "hostnamectl": "the host name is the Machine's", "nvidia-smi -mig": "GPUs are partitioned by spec.gpu.presentation before kubelet starts",
	"enable --now kubelet": "kubelet is started when the node joins", "start kubelet": "kubelet is started when the node joins", "netplan apply": "the network is there before user data runs",
}

func (c *converter) reportCommands(d deployment, commands []any) {
	for i, command := range commands {
		for _, of := range slices.Sorted(maps.Keys(fights)) {
			if strings.Contains(fmt.Sprint(command), of) {
				c.AddFinding(d.config, fmt.Sprintf("%s.preKubeadmCommands[%d]", configField, i), conversion.RuleCheck, "`%s`: %s: remove it", strings.TrimSpace(of), fights[of])
			}
		}
	}
}

// convertRegistration sets labels, taints and kubelet's settings of the node.
func (c *converter) convertRegistration(d deployment, said, spec map[string]any) {
	node, members := map[string]any{}, map[string]any{}
	var taints []any
	for _, taint := range items(said, "taints") {
		taints = append(taints, taint)
	}
	flags := extraArgs(said["kubeletExtraArgs"])
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		field := configField + ".joinConfiguration.nodeRegistration.kubeletExtraArgs." + name
		switch name {
		case "node-labels":
			node["labels"] = c.nodeLabels(d, field, flags[name])
		case "register-with-taints":
			c.AddFinding(d.config, field, conversion.RuleLost, "add spec.node.taints of the NodeType: %s", flags[name])
		case "provider-id":
			c.AddFinding(d.config, field, conversion.RuleLost, "Ingot sets the providerID, which binds the Node to its Machine")
		case "cloud-provider":
			c.AddFinding(d.config, field, conversion.RuleLost, "Ingot's nodes wait for no cloud provider")
		default:
			member, value := conversion.KubeletMember(name, flags[name])
			if problem := conversion.RefusedMember(map[string]any{member: value}); problem != "" {
				c.AddFinding(d.config, field, conversion.RuleLost, "as the member %s of spec.kubelet: %s", member, problem)
				continue
			}
			members[member] = value
		}
	}
	if labels, is := node["labels"].(map[string]any); is && len(labels) == 0 {
		delete(node, "labels")
	}
	conversion.CopyField(node, "taints", taints)
	conversion.CopyField(spec, "node", node)
	conversion.CopyField(spec, "kubelet", members)
	c.ReportDroppedFields(d.config, said, configField+".joinConfiguration.nodeRegistration", map[string]string{"criSocket": "kubelet finds containerd's own socket"},
		"name", "kubeletExtraArgs", "taints", "ignorePreflightErrors", "imagePullPolicy", "imagePullSerial")
}

// extraArgs returns kubelet's flags, which are a mapping in v1beta1 and a list in v1beta2.
func extraArgs(said any) map[string]string {
	out := map[string]string{}
	switch all := said.(type) {
	case map[string]any:
		for name, value := range all {
			out[name] = fmt.Sprint(value)
		}
	case []any:
		for _, item := range all {
			if one, is := item.(map[string]any); is {
				out[text(one, "name")] = fmt.Sprint(one["value"])
			}
		}
	}
	return out
}

// nodeLabels returns the labels that have one value for all nodes.
func (c *converter) nodeLabels(d deployment, field, flag string) map[string]any {
	out := map[string]any{}
	for pair := range strings.SplitSeq(flag, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		switch {
		case name == "":
		case strings.Contains(value, "{{"):
			c.AddFinding(d.config, field, conversion.RuleLost, "%s has a value of its own on each node: labels of the host and of the Machine say what they are", name)
		default:
			out[name] = value
		}
	}
	return out
}
