package v1alpha1_test

// examples are one good object of each kind, as small as they come.
var examples = map[string]string{
	"OSImage": `
metadata: {name: debian-13}
spec:
  url: https://images.example.com/debian-13.raw.zst
  checksum: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
  format: raw.zst
  os: {id: debian, version: "13"}
  software: {kubelet: 1.37.0}
`,
	"NodeProvider": `
metadata: {name: hall-1}
spec:
  hostNamespace: metal
  redfish: {netboot: {address: 10.20.0.2}}
`,
	"NodeType": `
metadata: {name: h100}
spec:
  providerRef: {name: hall-1}
  hostSelector: {matchLabels: {gpu-model: h100}}
  osImageRef: {name: debian-13}
  gpu: {vendor: nvidia, model: H100-SXM5-80GB, count: 8, presentation: {mode: Passthrough}}
`,
	"NodeTypeRevision": `
metadata: {name: h100-77aa}
spec:
  nodeTypeRef: {name: h100}
  image: {name: debian-13, checksum: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", format: raw.zst, userData: CloudInit}
  gpu: {vendor: nvidia, model: H100-SXM5-80GB, count: 8, presentation: {mode: Passthrough}}
  hashVersion: 1
`,
	"NodeTypeRendering": `
metadata: {name: h100-77aa-1f2e3d4c}
spec:
  revisionRef: {name: h100-77aa}
  encoding: 1
  plan: {kernelArguments: [quiet], expectation: {resources: [{name: nvidia.com/gpu, quantity: "8"}]}}
`,
	"NodePool": `
metadata: {name: training, namespace: research}
spec: {nodeTypeRef: {name: h100}, tenantClusterRef: {name: research}}
`,
	"NodeQuota": `
metadata: {name: default, namespace: research}
spec: {machines: [{nodeType: h100, limit: 4}], gpus: 32}
`,
	"Entitlement": `
metadata: {name: legal-ai, namespace: shared}
spec:
  tenantClusterRef: {name: shared}
  tenant: legal-ai
  namespaces: {names: [legal-ai]}
  classes: [{name: a100-mig, nodeTypeRef: {name: a100-mig}, kind: MIG, profile: 1g.5gb, devices: 4}]
`,
	"Machine": `
metadata: {name: training-7xk2p, namespace: research}
spec: {nodeTypeRef: {name: h100}, tenantClusterRef: {name: research}}
`,
	"TenantCluster": `
metadata: {name: research, namespace: research}
spec:
  kubeconfigSecretRef: {name: research-admin}
  join: {tlsBootstrap: {}}
`,
	"Rollout": `
metadata: {name: h100-4be1}
spec: {nodeTypeRef: {name: h100}, from: h100-77aa, to: h100-4be1}
`,
	"HostRecord": `
metadata: {name: server-17, namespace: metal}
spec:
  machine: {namespace: research, name: training-7xk2p, uid: 6f1c}
  image: {url: "https://images.example.com/x.raw.zst", checksum: "sha256:00", format: raw.zst}
`,
}

// ruleCase shows a rule at work. rule is "Kind path: message"; bad and good are merge patches over the example, and so
// is old, the object before the change, which only the rules about changes need.
type ruleCase struct {
	rule, bad, good, old string
}

func ruleCases() []ruleCase {
	cases := []ruleCase{
		{rule: "OSImage spec: spec is immutable: create a new OSImage and point the NodeType's osImageRef at it",
			old: "{}", bad: "{spec: {url: 'https://images.example.com/other'}}", good: "{metadata: {labels: {a: b}}}"},
		{rule: "OSImage spec: ignitionPlatform is only for userData: Ignition; remove it",
			bad: "{spec: {ignitionPlatform: openstack}}", good: "{spec: {ignitionPlatform: openstack, userData: Ignition}}"},
		{rule: "OSImage spec: userData: Ignition needs ignitionPlatform: openstack, the platform that reads a config drive",
			bad: "{spec: {ignitionPlatform: metal, userData: Ignition}}", good: "{spec: {ignitionPlatform: openstack, userData: Ignition}}"},
		{rule: "OSImage spec.checksum: checksum must be sha256: and 64, or sha512: and 128, lower-case hex digits, or the http(s) URL of a checksum file",
			bad: "{spec: {checksum: 'md5:d41d8cd98f00b204e9800998ecf8427e'}}", good: "{spec: {checksum: 'https://images.example.com/SHA256SUMS'}}"},
		{rule: "OSImage spec.software.kubelet: kubelet must be a version such as 1.37.0, without a leading v",
			bad: "{spec: {software: {kubelet: v1.37.0}}}", good: "{spec: {software: {kubelet: 1.37.0-rc.1}}}"},
		{rule: "OSImage spec.url: url must begin with http:// or https://",
			bad: "{spec: {url: 'ftp://x/y'}}", good: "{spec: {url: 'http://x/y'}}"},

		{rule: "NodeProvider spec: set exactly one of redfish, ironic, metal3",
			bad: "{spec: {metal3: {}}}", good: "{spec: {redfish: null, metal3: {}}}"},
		{rule: "NodeProvider spec: hostNamespace is immutable: create a new NodeProvider",
			old: "{}", bad: "{spec: {hostNamespace: other}}", good: "{spec: {userData: '#cloud-config'}}"},
		{rule: "NodeProvider spec: which of redfish, ironic and metal3 is set is immutable: create a new NodeProvider",
			old: "{}", bad: "{spec: {redfish: null, metal3: {}}}", good: "{spec: {redfish: {netboot: {address: 10.20.0.3}}}}"},
		{rule: "NodeProvider spec: erase.onRelease: Full is not possible with metal3, whose automatedCleaningMode knows metadata and disabled only: use Metadata or None, or a redfish provider",
			bad: "{spec: {redfish: null, metal3: {}, erase: {onRelease: Full}}}", good: "{spec: {redfish: null, metal3: {}, erase: {onRelease: None}}}"},
		{rule: "NodeProvider spec: erase.onRoll is possible with metal3 alone: with redfish and ironic a roll writes the image over the root disk and erases no other. Remove it, or set it to None",
			bad: "{spec: {erase: {onRoll: Metadata}}}", good: "{spec: {erase: {onRoll: None}}}"},
		{rule: "NodeProvider spec: erase.onRoll must be None or what erase.onRelease says: a roll erases no more than a release",
			bad: "{spec: {redfish: null, metal3: {}, erase: {onRelease: None, onRoll: Metadata}}}", good: "{spec: {redfish: null, metal3: {}, erase: {onRoll: Metadata}}}"},
		{rule: "NodeProvider spec: strictIdentity is not possible with metal3, whose own agent installs: remove it, or use a redfish provider",
			bad: "{spec: {redfish: null, metal3: {}, strictIdentity: true}}", good: "{spec: {redfish: null, metal3: {}, strictIdentity: false}}"},
		{rule: "NodeProvider spec.containerd.sandboxImage: sandboxImage must be an image with its registry, such as registry.example.com/pause:3.10.1",
			bad: "{spec: {containerd: {sandboxImage: 'pause:3.10'}}}", good: "{spec: {containerd: {sandboxImage: 'registry.example.com:5000/k8s/pause:3.10.1'}}}"},
		{rule: "NodeProvider spec.containerd.registryMirrors[].registry: registry must be HOST or HOST:PORT as the names of images begin, such as docker.io, or _default",
			bad:  "{spec: {containerd: {registryMirrors: [{registry: 'https://docker.io', endpoints: ['https://m']}]}}}",
			good: "{spec: {containerd: {registryMirrors: [{registry: _default, endpoints: ['https://m']}, {registry: '10.0.0.1:5000', endpoints: ['https://m']}]}}}"},
		{rule: "NodeProvider spec.containerd.registryMirrors[].endpoints: endpoints must be http or https URLs such as https://registry.example.com, without user, password or query",
			bad:  "{spec: {containerd: {registryMirrors: [{registry: docker.io, endpoints: ['https://user:secret@m']}]}}}",
			good: "{spec: {containerd: {registryMirrors: [{registry: docker.io, endpoints: ['https://m/v2/hub', 'http://[fd00::1]:5000']}]}}}"},
		{rule: "NodeProvider spec.containerd.registryMirrors[].caBundle: caBundle must be certificates in PEM, and no private key",
			bad:  "{spec: {containerd: {registryMirrors: [{registry: docker.io, endpoints: ['https://m'], caBundle: 'x'}]}}}",
			good: "{spec: {containerd: {registryMirrors: [{registry: docker.io, endpoints: ['https://m'], caBundle: '-----BEGIN CERTIFICATE-----'}]}}}"},
		{rule: "NodeTypeRevision spec.containerd.sandboxImage: sandboxImage must be an image with its registry, such as registry.example.com/pause:3.10.1",
			bad: "{spec: {containerd: {sandboxImage: 'pause:3.10'}}}", good: "{spec: {containerd: {sandboxImage: 'registry.example.com:5000/k8s/pause:3.10.1'}}}"},
		{rule: "NodeTypeRevision spec.containerd.registryMirrors[].registry: registry must be HOST or HOST:PORT as the names of images begin, such as docker.io, or _default",
			bad:  "{spec: {containerd: {registryMirrors: [{registry: 'https://docker.io', endpoints: ['https://m']}]}}}",
			good: "{spec: {containerd: {registryMirrors: [{registry: _default, endpoints: ['https://m']}, {registry: '10.0.0.1:5000', endpoints: ['https://m']}]}}}"},
		{rule: "NodeTypeRevision spec.containerd.registryMirrors[].endpoints: endpoints must be http or https URLs such as https://registry.example.com, without user, password or query",
			bad:  "{spec: {containerd: {registryMirrors: [{registry: docker.io, endpoints: ['https://user:secret@m']}]}}}",
			good: "{spec: {containerd: {registryMirrors: [{registry: docker.io, endpoints: ['https://m/v2/hub', 'http://[fd00::1]:5000']}]}}}"},
		{rule: "NodeTypeRevision spec.containerd.registryMirrors[].caBundle: caBundle must be certificates in PEM, and no private key",
			bad:  "{spec: {containerd: {registryMirrors: [{registry: docker.io, endpoints: ['https://m'], caBundle: 'x'}]}}}",
			good: "{spec: {containerd: {registryMirrors: [{registry: docker.io, endpoints: ['https://m'], caBundle: '-----BEGIN CERTIFICATE-----'}]}}}"},
		{rule: "NodeProvider spec.ironic.endpoint: endpoint must begin with http:// or https://",
			bad: "{spec: {redfish: null, ironic: {endpoint: 'ironic:6385'}}}", good: "{spec: {redfish: null, ironic: {endpoint: 'http://ironic:6385'}}}"},
		{rule: "NodeProvider spec.ironic.endpoint: endpoint must have no user and no password, which everybody who may read NodeProviders would see: put them into the Secret of credentialsSecretRef",
			bad: "{spec: {redfish: null, ironic: {endpoint: 'http://ingot:secret@ironic:6385'}}}", good: "{spec: {redfish: null, ironic: {endpoint: 'http://ironic:6385'}}}"},
		{rule: "NodeProvider spec.ironic.keystoneURL: keystoneURL must have no user and no password",
			bad:  "{spec: {redfish: null, ironic: {endpoint: 'http://ironic:6385', keystoneURL: 'https://u:p@keystone/v3', credentialsSecretRef: {name: ironic}}}}",
			good: "{spec: {redfish: null, ironic: {endpoint: 'http://ironic:6385', keystoneURL: 'https://keystone/v3', credentialsSecretRef: {name: ironic}}}}"},
		{rule: "NodeProvider spec.ironic: keystoneURL needs credentialsSecretRef: a Secret in hostNamespace with applicationCredentialID and applicationCredentialSecret",
			bad:  "{spec: {redfish: null, ironic: {endpoint: 'http://ironic:6385', keystoneURL: 'https://keystone/v3'}}}",
			good: "{spec: {redfish: null, ironic: {endpoint: 'http://ironic:6385', keystoneURL: 'https://keystone/v3', credentialsSecretRef: {name: ironic}}}}"},
		{rule: "NodeProvider spec.ironic.deployInterface: deployInterface must be one that writes disks, such as direct: an OSImage of the format live-iso selects ramdisk for its own installations",
			bad:  "{spec: {redfish: null, ironic: {endpoint: 'http://ironic:6385', deployInterface: ramdisk}}}",
			good: "{spec: {redfish: null, ironic: {endpoint: 'http://ironic:6385', deployInterface: direct}}}"},
		{rule: "NodeProvider spec.ironic: set both of deployKernel and deployRamdisk, or neither",
			bad:  "{spec: {redfish: null, ironic: {endpoint: 'http://ironic:6385', deployKernel: 'http://a/k'}}}",
			good: "{spec: {redfish: null, ironic: {endpoint: 'http://ironic:6385', deployKernel: 'http://a/k', deployRamdisk: 'http://a/r'}}}"},
		{rule: "NodeProvider spec.ironic.bmcCAPath: bmcCAPath must be an absolute path on the machines of Ironic's conductors",
			bad:  "{spec: {redfish: null, ironic: {endpoint: 'http://ironic:6385', bmcCAPath: ca.pem}}}",
			good: "{spec: {redfish: null, ironic: {endpoint: 'http://ironic:6385', bmcCAPath: /etc/ironic/bmc-ca.pem}}}"},
		{rule: "NodeProvider spec.ironic.keystoneURL: keystoneURL must begin with http:// or https://",
			bad:  "{spec: {redfish: null, ironic: {endpoint: 'http://ironic:6385', credentialsSecretRef: {name: ironic}, keystoneURL: keystone}}}",
			good: "{spec: {redfish: null, ironic: {endpoint: 'http://ironic:6385', credentialsSecretRef: {name: ironic}, keystoneURL: 'https://keystone/v3'}}}"},
		{rule: "NodeProvider spec.ironic.caBundle: caBundle must be certificates in PEM, and no private key",
			bad:  "{spec: {redfish: null, ironic: {endpoint: 'https://ironic:6385', caBundle: '-----BEGIN CERTIFICATE----- -----BEGIN PRIVATE KEY-----'}}}",
			good: "{spec: {redfish: null, ironic: {endpoint: 'https://ironic:6385', caBundle: '-----BEGIN CERTIFICATE-----'}}}"},
		{rule: "NodeProvider spec.redfish: insecureSkipVerify: true makes caBundleSecretRef useless: remove one of them",
			bad: "{spec: {redfish: {insecureSkipVerify: true, caBundleSecretRef: {name: ca}}}}", good: "{spec: {redfish: {caBundleSecretRef: {name: ca}}}}"},
		{rule: "NodeProvider spec.redfish.netboot.caBundle: caBundle must be certificates in PEM, and no private key",
			bad:  "{spec: {redfish: {netboot: {caBundle: '-----BEGIN CERTIFICATE----- -----BEGIN PRIVATE KEY-----'}}}}",
			good: "{spec: {redfish: {netboot: {caBundle: '-----BEGIN CERTIFICATE-----'}}}}"},
		{rule: "NodeProvider spec.redfish.netboot.address: address must be HOST or HOST:PORT, without scheme or path",
			bad: "{spec: {redfish: {netboot: {address: 'http://10.20.0.2'}}}}", good: "{spec: {redfish: {netboot: {address: '10.20.0.2:8090'}}}}"},
		{rule: "NodeProvider spec.redfish.netboot.secureAddress: secureAddress must be HOST or HOST:PORT, without scheme or path",
			bad: "{spec: {redfish: {netboot: {secureAddress: 'https://10.20.0.2'}}}}", good: "{spec: {redfish: {netboot: {secureAddress: '[fd00::2]:443'}}}}"},
		{rule: "NodeProvider spec.redfish.netboot.network.cidr: cidr must be the gateway's address with a prefix length, such as 10.20.4.1/22",
			bad: "{spec: {redfish: {netboot: {network: {cidr: 10.20.4.1}}}}}", good: "{spec: {redfish: {netboot: {network: {cidr: 10.20.4.1/22, vlan: 120, bond: {mode: 802.3ad}}}}}}"},
		{rule: "NodeProvider spec.redfish.netboot.network.dnsServers: dnsServers must be IP addresses",
			bad: "{spec: {redfish: {netboot: {network: {dnsServers: [dns.example.com]}}}}}", good: "{spec: {redfish: {netboot: {network: {dnsServers: [10.20.0.7, '2001:db8::7']}}}}}"},

		{rule: "NodeType spec.hardware: minMemory must be more than 0, such as 2Ti",
			bad: "{spec: {hardware: {minMemory: 0Gi}}}", good: "{spec: {hardware: {minMemory: 2Ti, gpuLink: FullWidth, nics: {count: 8, minGbps: 400}}}}"},
		{rule: "NodeType spec.hardware: firmware: name says which NICs (PCI ids such as 15b3:1021, or the driver) or disks (part of the model) are meant: set it for component NIC and Disk, and for no other",
			bad:  "{spec: {hardware: {firmware: [{component: BIOS, name: ami, minVersion: '2.21'}]}}}",
			good: "{spec: {hardware: {firmware: [{component: BIOS, minVersion: '2.21'}, {component: NIC, name: '15b3:1021', minVersion: 28.39.1002}]}}}"},
		{rule: "NodeType spec.gate.taintKey: taintKey must be a qualified name such as ingot.dev/unvalidated",
			bad: "{spec: {gate: {taintKey: 'a b'}}}", good: "{spec: {gate: {taintKey: example.com/gate}}}"},
		{rule: "NodeType spec.gate.taintKey: taintKey must not be a key that Kubernetes, a cloud provider or a vendor manages, because their programs would remove the gate: use ingot.dev/unvalidated, or a key of a domain of your own",
			bad: "{spec: {gate: {taintKey: node.kubernetes.io/not-ready}}}", good: "{spec: {gate: {taintKey: kubernetes.io.example.com/gate}}}"},
		{rule: "NodeType spec.node.taints: taints must not have keys that Kubernetes, an autoscaler or Cilium removes, such as node.kubernetes.io/not-ready: Ingot would place them again for ever",
			bad: "{spec: {node: {taints: [{key: node.kubernetes.io/not-ready, effect: NoSchedule}]}}}", good: "{spec: {node: {taints: [{key: nvidia.com/gpu, effect: NoSchedule}]}}}"},
		{rule: "NodeType spec.gate.taintKey: taintKey is immutable, because Nodes that have the old taint would keep it: create a new NodeType",
			old: "{}", bad: "{spec: {gate: {taintKey: example.com/gate}}}", good: "{spec: {gate: {taintKey: ingot.dev/unvalidated}}}"},
		{rule: "NodeType spec: node.taints must not have the key of gate.taintKey: the gate would never be lifted for good",
			bad:  "{spec: {node: {taints: [{key: ingot.dev/unvalidated, effect: NoSchedule}]}}}",
			good: "{spec: {gate: {taintKey: example.com/gate}, node: {taints: [{key: ingot.dev/unvalidated, effect: NoSchedule}]}}}"},
		{rule: "NodeType spec.hostSelector: hostSelector must select by at least one label: an empty selector would take every host of the provider",
			bad: "{spec: {hostSelector: {matchLabels: null}}}", good: "{spec: {hostSelector: {matchLabels: null, matchExpressions: [{key: gpu-model, operator: Exists}]}}}"},
		{rule: "NodeType spec.node.labels: labels must not begin with ingot.dev/ or node-restriction.kubernetes.io/",
			bad: "{spec: {node: {labels: {ingot.dev/machine-uid: x}}}}", good: "{spec: {node: {labels: {team: research}}}}"},
		{rule: "NodeType spec.node.taints: the effect of taints must be NoSchedule, PreferNoSchedule or NoExecute: with another one the kubelet would never start",
			bad: "{spec: {node: {taints: [{key: a, effect: NoScheduling}]}}}", good: "{spec: {node: {taints: [{key: a, effect: NoSchedule}]}}}"},
		{rule: "NodeType spec.rollout.maxUnavailable: maxUnavailable must be a number of at least 1, or a percentage from 1% to 100%",
			bad: "{spec: {rollout: {maxUnavailable: 0%}}}", good: "{spec: {rollout: {maxUnavailable: 10%}}}"},
		{rule: "NodeType spec.rollout.maxUnavailable: maxUnavailable must be a number of at least 1, or a percentage from 1% to 100%",
			bad: "{spec: {rollout: {maxUnavailable: 0}}}", good: "{spec: {rollout: {maxUnavailable: 3}}}"},
		{rule: "NodeType spec.validation: settle must be shorter than timeout, or no verdict could ever pass",
			bad: "{spec: {validation: {settle: 20m}}}", good: "{spec: {validation: {settle: 20m, timeout: 1h}}}"},
		{rule: "NodeType spec: validation.probe needs a device to ask for, and this NodeType promises none: set gpu or an extended resource in resources, or remove the probe",
			bad:  "{spec: {gpu: null, resources: {cpu: '96'}, validation: {probe: {kind: Command, image: x, command: [/bin/true]}}}}",
			good: "{spec: {gpu: null, resources: {rdma/hca: '8'}, validation: {probe: {kind: Command, image: x, command: [/bin/true]}}}}"},
		{rule: "NodeType spec: validation.probe.kind: NvidiaSMI, DCGMDiag and HealthValidation are for NVIDIA GPUs that containers use: for GPUs of virtual machines and of other vendors use kind: Command",
			bad:  "{spec: {gpu: {presentation: {mode: Passthrough, passthrough: {workload: VM}}}, validation: {probe: {kind: NvidiaSMI, image: x}}}}",
			good: "{spec: {validation: {probe: {kind: NvidiaSMI, image: x}}}}"},
		{rule: "NodeType spec: validation.probe is not possible with onFailure: Observe, which lifts the gate before a pod could use the devices: remove one of them",
			bad: "{spec: {validation: {onFailure: Observe, probe: {kind: NvidiaSMI, image: x}}}}", good: "{spec: {validation: {onFailure: Observe}}}"},
		{rule: "NodeType spec: validation.probe.kind: DCGMDiag tests whole GPUs, and these are partitioned: use kind: NvidiaSMI or Command",
			bad:  "{spec: {gpu: {model: H100-SXM5-80GB, presentation: {mode: MIG, passthrough: null, mig: {strategy: mixed, layout: [{profiles: {1g.10gb: 7}}]}}}, validation: {probe: {kind: DCGMDiag, level: 1, image: x}}}}",
			good: "{spec: {validation: {probe: {kind: DCGMDiag, level: 1, image: x}}}}"},
		{rule: "NodeType spec.validation.probe: kind: Command needs command",
			bad: "{spec: {validation: {probe: {kind: Command, image: x}}}}", good: "{spec: {validation: {probe: {kind: Command, image: x, command: [/bin/true]}}}}"},
		{rule: "NodeType spec.validation.probe: command is for kind: Command, or for kind: HealthValidation where its image has the program elsewhere",
			bad: "{spec: {validation: {probe: {kind: NvidiaSMI, image: x, command: [/bin/true]}}}}", good: "{spec: {validation: {probe: {kind: HealthValidation, image: x, command: [/opt/hv]}}}}"},
		{rule: "NodeType spec.validation.probe: level is for kind: DCGMDiag, which needs it: 1 to 4",
			bad: "{spec: {validation: {probe: {kind: DCGMDiag, image: x}}}}", good: "{spec: {validation: {probe: {kind: DCGMDiag, level: 4, image: x}}}}"},

		{rule: "NodeTypeRevision spec: spec is immutable: change the NodeType, which makes a new revision",
			old: "{}", bad: "{spec: {gpu: {count: 4}}}", good: "{metadata: {labels: {a: b}}}"},

		{rule: "NodePool : metadata.name must be at most 50 characters without dots: Machines and Nodes are named after the pool",
			bad: "{metadata: {name: a.b}}", good: "{metadata: {name: a-b}}"},
		{rule: "NodePool : metadata.name must be at most 50 characters without dots: Machines and Nodes are named after the pool",
			bad: "{metadata: {name: a123456789b123456789c123456789d123456789e123456789f}}", good: "{metadata: {name: a123456789b123456789c123456789d123456789e123456789}}"},
		{rule: "NodePool spec: nodeTypeRef and tenantClusterRef are immutable: create a new NodePool and scale this one down",
			old: "{}", bad: "{spec: {nodeTypeRef: {name: a100}}}", good: "{spec: {replicas: 4}}"},
		{rule: "NodePool spec.rollout.maxUnavailable: maxUnavailable must be a number of at least 1, or a percentage from 1% to 100%",
			bad: "{spec: {rollout: {maxUnavailable: 101%}}}", good: "{spec: {rollout: {maxUnavailable: 100%}}}"},

		{rule: "NodeQuota : metadata.name must be default: a namespace has one NodeQuota",
			bad: "{metadata: {name: research}}", good: "{metadata: {labels: {a: b}}}"},
		{rule: "NodeQuota spec: give machines, gpus or both: a NodeQuota without a limit limits nothing",
			bad: "{spec: {machines: null, gpus: null}}", good: "{spec: {machines: null}}"},

		{rule: "Entitlement spec: tenant and tenantClusterRef are immutable: delete the Entitlement and create another",
			old: "{}", bad: "{spec: {tenant: other}}", good: "{spec: {classes: null}}"},
		{rule: "Entitlement spec: tenant and a class's name must have at most 62 characters together: the DeviceClass is named TENANT-CLASS",
			bad:  "{spec: {classes: [{name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, nodeTypeRef: {name: a}, kind: GPU, devices: 1}], tenant: bbbbbbbbbbbbbbbbbbbbbbb}}",
			good: "{spec: {classes: [{name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, nodeTypeRef: {name: a}, kind: GPU, devices: 1}], tenant: bbbbbbbbbbbbbbbbbbbbbb}}"},
		{rule: "Entitlement spec.tenantLabel: tenantLabel must not be one of Ingot's own labels",
			bad: "{spec: {tenantLabel: ingot.dev/tenant}}", good: "{spec: {tenantLabel: example.com/tenant}}"},
		{rule: "Entitlement spec.namespaces: set exactly one of names, selector",
			bad: "{spec: {namespaces: {names: null}}}", good: "{spec: {namespaces: {names: null, selector: {matchLabels: {tenant: legal-ai}}}}}"},
		{rule: "Entitlement spec.namespaces.names: names must not be namespaces of Kubernetes: its own pods would be refused",
			bad: "{spec: {namespaces: {names: [kube-system]}}}", good: "{spec: {namespaces: {names: [system]}}}"},
		{rule: "Entitlement spec.namespaces.selector: selector must not be empty: it would match every namespace",
			bad: "{spec: {namespaces: {names: null, selector: {}}}}", good: "{spec: {namespaces: {names: null, selector: {matchExpressions: [{key: tenant, operator: Exists}]}}}}"},
		{rule: "Entitlement spec.classes[]: profile goes with kind MIG, such as 1g.5gb, and with kind Partition, such as cpx_nps4",
			bad: "{spec: {classes: [{name: a, nodeTypeRef: {name: a}, kind: GPU, profile: 1g.5gb, devices: 1}]}}", good: "{spec: {classes: [{name: a, nodeTypeRef: {name: a}, kind: GPU, devices: 1}]}}"},
		{rule: "Entitlement spec.classes[]: resource goes with kind Resource, such as nvidia.com/gpu",
			bad:  "{spec: {classes: [{name: a, nodeTypeRef: {name: a}, kind: Resource, devices: 1}]}}",
			good: "{spec: {classes: [{name: a, nodeTypeRef: {name: a}, kind: Resource, resource: nvidia.com/gpu, devices: 1}]}}"},
		{rule: "Entitlement spec.classes[]: maxUnavailable counts the devices that claims hold, and kind Resource has no claims: leave maxUnavailable out",
			bad:  "{spec: {classes: [{name: a, nodeTypeRef: {name: a}, kind: Resource, resource: nvidia.com/gpu, devices: 1, maxUnavailable: 0}]}}",
			good: "{spec: {classes: [{name: a, nodeTypeRef: {name: a}, kind: GPU, devices: 1, maxUnavailable: 0}]}}"},

		{rule: "Machine : metadata.name must be at most 63 characters without dots: the Node and its host name are named after the Machine",
			bad: "{metadata: {name: a.b}}", good: "{metadata: {name: a-b}}"},
		{rule: "Machine : metadata.name must not be a name of the system: a node of that name would get a certificate for it",
			bad: "{metadata: {name: kubernetes}}", good: "{metadata: {name: kubernetes-0}}"},
		{rule: "Machine : spec.hostName cannot change once a host is claimed: delete the Machine and create another",
			old:  "{spec: {hostName: server-1}, status: {hostRef: {namespace: metal, name: server-1}}}",
			bad:  "{spec: {hostName: server-2}, status: {hostRef: {namespace: metal, name: server-1}}}",
			good: "{spec: {hostName: server-1, revision: h100-4be1}, status: {hostRef: {namespace: metal, name: server-1}}}"},
		{rule: "Machine : spec.hostName cannot change once a host is claimed: delete the Machine and create another",
			old: "{spec: {hostName: server-1}, status: {hostRef: {namespace: metal, name: server-1}}}",
			bad: "{status: {hostRef: {namespace: metal, name: server-1}}}", good: "{spec: {hostName: server-1}}"},
		{rule: "Machine spec: nodeTypeRef and tenantClusterRef are immutable: delete the Machine and create another",
			old: "{}", bad: "{spec: {tenantClusterRef: {name: other}}}", good: "{spec: {hostName: server-2}}"},
		{rule: "Machine spec.properties: a Machine's properties must be values, and no templates: set ingot.dev/user-data-template and ingot.dev/network-data-template on the NodeType",
			bad: "{spec: {properties: {ingot.dev/network-data-template: x}}}", good: "{spec: {properties: {rack: r1, metal3.vcluster.com/dns-servers: 10.20.0.1}}}"},
		{rule: "Machine spec.properties: a Machine's properties must not say what the network is: whoever runs the hosts sets metal3.vcluster.com/network-data, network-cidr and network-ip-range on the NodeType or the NodeProvider, and a host's own address as ingot.dev/ip-address on its BareMetalHost",
			bad: "{spec: {properties: {metal3.vcluster.com/network-data: x}}}", good: "{spec: {properties: {rack: r1, vcluster.com/user-data: x}}}"},

		{rule: "Rollout spec: only paused may change: change the NodeType instead",
			old: "{}", bad: "{spec: {to: h100-9999}}", good: "{spec: {paused: true}}"},
		{rule: "Rollout spec: only paused may change: change the NodeType instead",
			old: "{spec: {fromRendering: a, toRendering: b}}", bad: "{spec: {fromRendering: a, toRendering: c}}", good: "{spec: {fromRendering: a, toRendering: b, paused: true}}"},
		{rule: "Machine spec: rendering needs revision: it is a rendering of that one",
			bad: "{spec: {rendering: h100-77aa-1f2e3d4c}}", good: "{spec: {revision: h100-77aa, rendering: h100-77aa-1f2e3d4c}}"},
		{rule: "NodeTypeRendering spec: spec is immutable: run ingot rollout refresh, which makes a new rendering",
			old: "{}", bad: "{spec: {plan: {kernelArguments: [other]}}}", good: "{metadata: {labels: {a: b}}}"},

		{rule: "TenantCluster spec.join: set exactly one of tlsBootstrap, kubeadm, vcluster, script",
			bad: "{spec: {join: {kubeadm: {}}}}", good: "{spec: {join: {tlsBootstrap: null, script: {secretRef: {name: s}}}}}"},
		{rule: "TenantCluster spec.join: set exactly one of tlsBootstrap, kubeadm, vcluster, script",
			bad: "{spec: {join: {tlsBootstrap: null}}}", good: "{spec: {join: {tlsBootstrap: null, kubeadm: {}}}}"},
	}
	cases = append(cases,
		ruleCase{rule: "TenantCluster spec.clusterDNS: clusterDNS: each must be an IP address, such as 10.96.0.10",
			bad: "{spec: {clusterDNS: [dns.example.com]}}", good: "{spec: {clusterDNS: [169.254.20.10, 'fd00::a'], clusterDomain: tenant.example}}"},
		ruleCase{rule: "TenantCluster spec.nodeNetworks: nodeNetworks: each must be a network, such as 10.20.0.0/16",
			bad: "{spec: {nodeNetworks: [10.20.0.1/16]}}", good: "{spec: {nodeNetworks: [10.20.0.0/16]}}"},
		ruleCase{rule: "TenantCluster spec.nodeNetworks: nodeNetworks: each must be a network, such as 10.20.0.0/16",
			bad: "{spec: {nodeNetworks: ['$(reboot)']}}", good: "{spec: {nodeNetworks: ['fd00::/64', 10.20.0.0/16]}}"},
		ruleCase{rule: "TenantCluster spec.nodeNetworks: nodeNetworks: two must be of IPv4 and IPv6",
			bad: "{spec: {nodeNetworks: [10.20.0.0/16, 10.30.0.0/16]}}", good: "{spec: {nodeNetworks: [10.20.0.0/16, 'fd00::/64']}}"})
	for _, join := range []string{"tlsBootstrap", "kubeadm", "vcluster", "script"} {
		set := "{spec: {join: {tlsBootstrap: null, " + join + ": {endpoint: 'http"
		if join == "script" {
			set = "{spec: {join: {tlsBootstrap: null, script: {secretRef: {name: s}, endpoint: 'http"
		}
		cases = append(cases, ruleCase{rule: "TenantCluster spec.join." + join + ".endpoint: endpoint must begin with https://",
			bad: set + "://x:6443'}}}}", good: set + "s://x:6443'}}}}"},
			ruleCase{rule: "TenantCluster spec.join." + join + ".endpoint: endpoint must be a URL such as https://tenant.example.com:6443, without a user",
				bad: set + "s://a:b@x:6443'}}}}", good: set + "s://[fd00::1]:6443'}}}}"})
		for bad, good := range map[string]string{"169.254.169.254": "169.253.1.1:6443", "[fe80::1]:6443": "fe80.example.com", "[fe80::1%25eth0]:6443": "localhost:6443", "[::ffff:169.254.0.1]": "127.0.0.1:6443"} {
			cases = append(cases, ruleCase{rule: "TenantCluster spec.join." + join + ".endpoint: endpoint must not be link-local: such an address leads to another machine from every network; name the address or the host name that nodes reach",
				bad: set + "s://" + bad + "'}}}}", good: set + "s://" + good + "'}}}}"})
		}
	}
	for _, kind := range []string{"NodeProvider", "NodeTypeRevision"} {
		cases = append(cases,
			ruleCase{rule: kind + " spec.network.cidr: cidr must be the gateway's address with a prefix length, such as 10.20.4.1/22",
				bad: "{spec: {network: {cidr: 10.20.4.1}}}", good: "{spec: {network: {cidr: 10.20.4.1/22}}}"},
			ruleCase{rule: kind + " spec.network.dnsServers: dnsServers must be IP addresses",
				bad: "{spec: {network: {dnsServers: [dns.example.com]}}}", good: "{spec: {network: {dnsServers: [10.20.0.1, 'fd00::1']}}}"})
	}
	for _, kind := range []string{"NodeType", "NodeTypeRevision"} {
		cases = append(cases, gpuCases(kind)...)
	}
	return cases
}

// gpuCases are of the type that NodeType and NodeTypeRevision share.
func gpuCases(kind string) []ruleCase {
	const mixed = "{spec: {gpu: {presentation: {mode: MIG, mig: {strategy: mixed, layout: "
	return []ruleCase{
		{rule: kind + " spec.gpu: vendor: generic knows presentation.mode: Passthrough only",
			bad: "{spec: {gpu: {vendor: generic, generic: {resourceName: habana.ai/gaudi}, presentation: {mode: DRA}}}}", good: "{spec: {gpu: {vendor: generic, generic: {resourceName: habana.ai/gaudi}}}}"},
		{rule: kind + " spec.gpu: generic must be set for vendor: generic, and for no other vendor",
			bad: "{spec: {gpu: {generic: {resourceName: habana.ai/gaudi}}}}", good: "{spec: {gpu: {vendor: generic, generic: {dra: {driver: gaudi.intel.com}}}}}"},
		{rule: kind + " spec.gpu: presentation.partitions is only for vendor: amd; remove it",
			bad: "{spec: {gpu: {presentation: {partitions: {compute: CPX, memory: NPS1}}}}}", good: "{spec: {gpu: {vendor: amd, presentation: {partitions: {compute: CPX, memory: NPS1}}}}}"},
		{rule: kind + " spec.gpu.generic: set resourceName, which a device plugin advertises, or dra, or both",
			bad: "{spec: {gpu: {vendor: generic, generic: {modules: [habanalabs]}}}}", good: "{spec: {gpu: {vendor: generic, generic: {resourceName: habana.ai/gaudi}}}}"},
		{rule: kind + " spec.gpu.generic.resourceName: resourceName must be a qualified name such as habana.ai/gaudi",
			bad: "{spec: {gpu: {vendor: generic, generic: {resourceName: gaudi}}}}", good: "{spec: {gpu: {vendor: generic, generic: {resourceName: fpga.intel.com/region-0a}}}}"},
		{rule: kind + " spec.gpu.driver: version must be set for source: Packages and Operator, and for no other source: the OSImage says which driver is baked in",
			bad: "{spec: {gpu: {driver: {source: Operator}}}}", good: "{spec: {gpu: {driver: {source: Operator, version: 580.126.09}}}}"},
		{rule: kind + " spec.gpu.driver: packages must be set for source: Packages, and for no other source",
			bad: "{spec: {gpu: {driver: {source: Packages, version: 580.126.09}}}}", good: "{spec: {gpu: {driver: {source: Packages, version: 580.126.09, packages: [nvidia-driver=580.126.09-1]}}}}"},
		{rule: kind + " spec.gpu: vendor: amd has no VGPU and no MIG presentation: use Passthrough or DRA",
			bad: "{spec: {gpu: {vendor: amd, presentation: {mode: VGPU, vgpu: {role: Host, types: {x: 1}}}}}}", good: "{spec: {gpu: {vendor: amd, presentation: {mode: DRA}}}}"},
		{rule: kind + " spec.gpu: vendor: amd has no VGPU and no MIG presentation: use Passthrough or DRA",
			bad: "{spec: {gpu: {vendor: amd, presentation: {mode: MIG, mig: {strategy: none}}}}}", good: "{spec: {gpu: {vendor: amd}}}"},
		{rule: kind + " spec.gpu: presentation.mig.layout names GPUs that a server does not have: gpus go from 0 to count - 1",
			bad: mixed + "[{gpus: [8], profiles: {1g.10gb: 7}}]}}}}}", good: mixed + "[{gpus: [0, 7], profiles: {1g.10gb: 7}}]}}}}}"},
		{rule: kind + " spec.gpu.presentation: passthrough is only for mode: Passthrough; remove it or change mode",
			bad: "{spec: {gpu: {presentation: {mode: DRA, passthrough: {}}}}}", good: "{spec: {gpu: {presentation: {passthrough: {}}}}}"},
		{rule: kind + " spec.gpu.presentation: vgpu must be set for mode: VGPU, and for no other mode",
			bad: "{spec: {gpu: {presentation: {mode: VGPU}}}}", good: "{spec: {gpu: {presentation: {mode: VGPU, vgpu: {role: Host, types: {H100XM-20C: 4}}}}}}"},
		{rule: kind + " spec.gpu.presentation: vgpu must be set for mode: VGPU, and for no other mode",
			bad: "{spec: {gpu: {presentation: {vgpu: {role: Host, types: {H100XM-20C: 4}}}}}}", good: "{}"},
		{rule: kind + " spec.gpu.presentation: mig must be set for mode: MIG, and for no other mode",
			bad: "{spec: {gpu: {presentation: {mode: MIG}}}}", good: "{spec: {gpu: {presentation: {mode: MIG, mig: {strategy: none}}}}}"},
		{rule: kind + " spec.gpu.presentation: dra is only for mode: DRA; remove it or change mode",
			bad: "{spec: {gpu: {presentation: {dra: {}}}}}", good: "{spec: {gpu: {presentation: {mode: DRA, dra: {devices: MIG}}}}}"},
		{rule: kind + " spec.gpu.presentation.mig: layout must say which profiles: strategy single and mixed partition the GPUs",
			bad: "{spec: {gpu: {presentation: {mode: MIG, mig: {strategy: single}}}}}", good: mixed + "[{profiles: {1g.10gb: 7}}]}}}}}"},
		{rule: kind + " spec.gpu.presentation.mig: strategy: none has no layout: remove it",
			bad: "{spec: {gpu: {presentation: {mode: MIG, mig: {strategy: none, layout: [{profiles: {1g.10gb: 7}}]}}}}}", good: "{spec: {gpu: {presentation: {mode: MIG, mig: {strategy: none}}}}}"},
		{rule: kind + " spec.gpu.presentation.mig.layout[].profiles: profiles must say how many of each per GPU, from 1 to 7, which is all that a GPU has",
			bad: mixed + "[{profiles: {1g.10gb: 0}}]}}}}}", good: mixed + "[{profiles: {1g.10gb: 1}}]}}}}}"},
		{rule: kind + " spec.gpu.presentation.passthrough: sharing is for workload: Container only: a virtual machine owns its GPU",
			bad:  "{spec: {gpu: {presentation: {passthrough: {workload: VM, sharing: {strategy: MPS, replicas: 4}}}}}}",
			good: "{spec: {gpu: {presentation: {passthrough: {sharing: {strategy: MPS, replicas: 4}}}}}}"},
		{rule: kind + " spec.gpu.presentation.vgpu: role: Host needs types and no licence; role: Guest needs licence and no types",
			bad:  "{spec: {gpu: {presentation: {mode: VGPU, vgpu: {role: Guest, types: {H100XM-20C: 4}}}}}}",
			good: "{spec: {gpu: {presentation: {mode: VGPU, vgpu: {role: Guest, licence: {tokenSecretRef: {name: s}}}}}}}"},
		{rule: kind + " spec.gpu.presentation.passthrough: addresses and resourceName are for workload: VM only; remove them",
			bad:  "{spec: {gpu: {presentation: {passthrough: {addresses: ['0000:17:00.0']}}}}}",
			good: "{spec: {gpu: {presentation: {passthrough: {workload: VM, addresses: ['0000:17:00.0']}}}}}"},
		{rule: kind + " spec.gpu.presentation.passthrough.resourceName: resourceName must be a qualified name such as nvidia.com/GA102GL_A10",
			bad:  "{spec: {gpu: {presentation: {passthrough: {workload: VM, resourceName: GA102GL_A10}}}}}",
			good: "{spec: {gpu: {presentation: {passthrough: {workload: VM, resourceName: nvidia.com/GA102GL_A10}}}}}"},
		{rule: kind + " spec.gpu.presentation.dra: layout is for devices: MIG only; remove it",
			bad:  "{spec: {gpu: {presentation: {mode: DRA, dra: {layout: [{profiles: {1g.10gb: 7}}]}}}}}",
			good: "{spec: {gpu: {presentation: {mode: DRA, dra: {devices: MIG, layout: [{profiles: {1g.10gb: 7}}]}}}}}"},
		{rule: kind + " spec.gpu.presentation.dra.layout[].profiles: profiles must say how many of each per GPU, from 1 to 7, which is all that a GPU has",
			bad:  "{spec: {gpu: {presentation: {mode: DRA, dra: {devices: MIG, layout: [{profiles: {1g.10gb: 0}}]}}}}}",
			good: "{spec: {gpu: {presentation: {mode: DRA, dra: {devices: MIG, layout: [{profiles: {1g.10gb: 7}}]}}}}}"},
		{rule: kind + " spec.gpu.presentation.vgpu: framework and namePrefix are for role: Host only; remove them",
			bad:  "{spec: {gpu: {presentation: {mode: VGPU, vgpu: {role: Guest, framework: Mdev, licence: {tokenSecretRef: {name: s}}}}}}}",
			good: "{spec: {gpu: {presentation: {mode: VGPU, vgpu: {role: Host, framework: Mdev, types: {H100XM-20C: 4}}}}}}"},
		{rule: kind + " spec.gpu.presentation.vgpu: role: Host needs types and no licence; role: Guest needs licence and no types",
			bad:  "{spec: {gpu: {presentation: {mode: VGPU, vgpu: {role: Host, types: {}}}}}}",
			good: "{spec: {gpu: {presentation: {mode: VGPU, vgpu: {role: Host, types: {H100XM-20C: 4}}}}}}"},
		{rule: kind + " spec.gpu.presentation.vgpu.types: types must say how many of each per GPU, from 1 to 64",
			bad:  "{spec: {gpu: {presentation: {mode: VGPU, vgpu: {role: Host, types: {H100XM-20C: 0}}}}}}",
			good: "{spec: {gpu: {presentation: {mode: VGPU, vgpu: {role: Host, types: {H100XM-20C: 4}}}}}}"},
	}
}

// schemaCases are mistakes that need no rule.
var schemaCases = []struct{ kind, bad, want string }{
	{"OSImage", "{spec: {format: vmdk}}", "spec.format"},
	{"OSImage", "{spec: {software: {kubelet: null}}}", "spec.software.kubelet"},
	{"OSImage", "{spec: {os: {id: ''}}}", "spec.os.id"},
	{"OSImage", "{spec: {architecture: riscv64}}", "spec.architecture"},
	{"OSImage", "{spec: {sotfware: {}}}", "unknown-field"},
	{"NodeType", "{spec: {gpu: {count: 0}}}", "spec.gpu.count"},
	{"NodeType", "{spec: {hardware: {gpuLink: Wide}}}", "spec.hardware.gpuLink"},
	{"NodeType", "{spec: {hardware: {nics: {count: 0, minGbps: 400}}}}", "spec.hardware.nics.count"},
	{"NodeType", "{spec: {hardware: {firmware: [{component: BIOS, minVersion: '-'}]}}}", "spec.hardware.firmware[0].minVersion"},
	{"NodeType", "{spec: {hardware: {firmware: [{component: BIOS, minVersion: '1'}, {component: BIOS, minVersion: '2'}]}}}", "spec.hardware.firmware[1]"},
	{"NodeType", "{spec: {gpu: {presentation: {mode: SRIOV}}}}", "spec.gpu.presentation.mode"},
	{"NodeType", "{spec: {resources: {cpu: lots}}}", "spec.resources.cpu"},
	{"NodeType", "{spec: {validation: {timeout: forever}}}", "spec.validation.timeout"},
	{"NodeType", "{spec: {zone: 'hall 1'}}", "spec.zone"},
	{"NodeType", "{spec: {osImageRef: {name: ''}}}", "spec.osImageRef.name"},
	{"NodePool", "{spec: {replicas: -1}}", "spec.replicas"},
	{"NodePool", "{spec: {replicas: 10001}}", "spec.replicas"},
	{"NodeProvider", "{spec: {erase: {onRelease: Shred}}}", "spec.erase.onRelease"},
	{"NodeProvider", "{spec: {redfish: {inspect: agent}}}", "spec.redfish.inspect"},
	{"NodeProvider", "{spec: {inspect: Agent}}", "unknown-field"},
	{"HostRecord", "{status: {wanted: {number: 1, operation: Inspect, inspector: Person, since: '2026-01-01T00:00:00.000000Z', deadline: '2026-01-01T00:00:00.000000Z'}}}", "status.wanted.inspector"},
	{"TenantCluster", "{spec: {kubeconfigSecretRef: null}}", "spec.kubeconfigSecretRef"},
	{"TenantCluster", "{spec: {servingCertificates: Approved}}", "spec.servingCertificates"},
	{"Machine", "{status: {phase: Failed}}", "status.phase"},
	{"NodeQuota", "{spec: {gpus: -1}}", "spec.gpus"},
	{"Entitlement", "{spec: {tenant: Legal}}", "spec.tenant"},
	{"Entitlement", "{spec: {classes: [{name: a, nodeTypeRef: {name: a}, kind: Other, devices: 1}]}}", "spec.classes[0].kind"},
	{"Entitlement", "{spec: {classes: [{name: a, nodeTypeRef: {name: a}, kind: GPU, devices: -1}]}}", "spec.classes[0].devices"},
	{"Entitlement", "{spec: {classes: [{name: a, nodeTypeRef: {name: a}, kind: GPU, devices: 1, maxUnavailable: -1}]}}", "spec.classes[0].maxUnavailable"},
	{"NodeQuota", "{spec: {machines: []}}", "spec.machines"},
	{"NodeQuota", "{spec: {machines: [{nodeType: h100, limit: 10001}]}}", "spec.machines[0].limit"},
	{"NodeQuota", "{spec: {machines: [{nodeType: h100, limit: 1}, {nodeType: h100, limit: 2}]}}", "spec.machines[1]"},
}
