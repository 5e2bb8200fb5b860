package kubelet

// defaultsScript writes the defaults of a server by its size. INGOT_ROOT is the root of the files that it reads and writes, for tests.
//
// kubeReserved.cpu and the first steps of kubeReserved.memory are those of GKE (cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes), which
// EKS and AKS follow for CPUs. GKE also takes 2% above 128 GiB, 38 GiB of 2 TiB, for many small nodes' worth of pods; a GPU server runs few, so nothing is
// taken there. systemReserved is for sshd, containerd, the GPU driver's daemons and fabric manager: 0.1 CPU and 100 MiB, and 0.25% of the CPUs and 0.5% of
// the memory.
//
// topologyManagerPolicy best-effort prefers CPUs, GPUs and NICs of one NUMA node, and never rejects a pod. It is set where there are 2 to 8 NUMA nodes:
// with more than 8 kubelet does not start (pkg/kubelet/cm/topologymanager, maxAllowableNUMANodes), and on GB200 and GH200 the GPUs' memory is NUMA nodes too.
//
// maxPods is 250 from 64 CPUs on: with MIG one server has 56 GPUs of tenants beside the DaemonSets, and a /24 of addresses is enough for it.
//
// resolvConf leads past the stub of systemd-resolved, 127.0.0.53, which answers nobody in a pod. It is a fact of the image: kubeadm gives nodes without
// systemd-resolved the file of the control plane's, and no pod starts where that does not exist.
//
// What the owner of the cluster has set in the configuration that kubeadm writes stays, member by member: such as maxPods, which depends on how many
// addresses the cluster gives to a node.
const defaultsScript = `#!/bin/sh
# Written by Ingot: the settings of kubelet that follow from the size of this server. NodeType.spec.kubelet wins over them, and so does the file in $1, which
# is kubelet's --config: what it sets is left out here.
set -eu
root=${INGOT_ROOT:-}
file=$root` + pathDefaults + `
config=$root${1:-}
resolved=/run/systemd/resolve/resolv.conf
cpus=$(grep -c '^processor' < "$root/proc/cpuinfo")
while read -r name number _; do
	if [ "$name" = MemTotal: ]; then memory=$((number / 1024)); fi
done < "$root/proc/meminfo"
numa=0
for node in "$root"/sys/devices/system/node/node[0-9]*; do
	[ ! -d "$node" ] || numa=$((numa + 1))
done
# take NUMBER STEP SHARE...: the sum of the shares of each step, in ten thousandths, in the unit of NUMBER. The last step has no end.
take() {
	left=$1 sum=0
	shift
	while [ $# -gt 0 ]; do
		part=$left
		if [ "$1" != rest ] && [ "$1" -lt "$left" ]; then part=$1; fi
		sum=$((sum + part * $2)) left=$((left - part))
		shift 2
	done
	echo $((sum / 10000))
}
# isset LINE: the file of --config has a line that begins so.
isset() { [ -f "$config" ] && grep -q "^$1" < "$config"; }
kube_cpu=$(take $((cpus * 1000)) 1000 600 1000 100 2000 50 rest 25)
kube_memory=$(take "$memory" 4096 2500 4096 2000 8192 1000 114688 600)
system_cpu=$((100 + cpus * 5 / 2))
system_memory=$((100 + memory / 200))
# A server that is smaller than what is taken from it is a test's: kubelet would not start.
if [ $((kube_cpu + system_cpu)) -ge $((cpus * 500)) ]; then system_cpu=0; fi
if [ $((kube_memory + system_memory)) -ge $((memory / 2)) ]; then kube_memory=0 system_memory=0; fi
mkdir -p "$root` + settingsDirectory + `"
{
	printf '{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"'
	isset kubeReserved: || printf ', "kubeReserved": {"cpu": "%sm", "memory": "%sMi"}' "$kube_cpu" "$kube_memory"
	isset systemReserved: || printf ', "systemReserved": {"cpu": "%sm", "memory": "%sMi"}' "$system_cpu" "$system_memory"
	if [ "$numa" -ge 2 ] && [ "$numa" -lt 9 ] && ! isset topologyManagerPolicy:; then printf ', "topologyManagerPolicy": "best-effort"'; fi
	if [ "$cpus" -ge 64 ] && ! isset maxPods:; then printf ', "maxPods": 250'; fi
	if [ -s "$root$resolved" ]; then
		printf ', "resolvConf": "%s"' "$resolved"
	elif isset "resolvConf: $resolved"; then
		printf ', "resolvConf": "/etc/resolv.conf"'
	fi
	printf '}\n'
} > "$file.new"
mv "$file.new" "$file"
`
