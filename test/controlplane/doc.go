// Program ingot-controlplane is a real Kubernetes control plane in one process: etcd, kube-apiserver, kube-scheduler
// and kube-controller-manager, compiled from their own Go modules. Tests and the demo use it as the cluster that
// hosts Ingot and as the tenant clusters that nodes join. No download, container or privilege is needed to run it.
//
//	ingot-controlplane run --dir DIR [--address IP] [--port N] [--audit-log FILE] [--exit-with-parent] [-v]
//
// keeps data and credentials under DIR, may be started again on them, and prints
// "ready https://ADDRESS:PORT DIR/admin.kubeconfig" once pods can be created. It listens on loopback, or where --address says; etcd there
// asks for no credentials. The servers' log is DIR/controlplane.log. --apiserver-arg, --scheduler-arg and
// --controller-manager-arg, each as often as needed, hand flags to the components and win over the flags set here:
//
//	--controller-manager-arg=--node-monitor-grace-period=5s
//
// It is set up as nodes that join for real need it: Node and RBAC authorization, NodeRestriction, bootstrap tokens,
// certificate signing requests approved and signed, and kubeadm's RBAC for bootstrapping.
//
// Invoked through a link named etcd or kube-apiserver it is that program, so that a directory with both links serves
// as envtest's KUBEBUILDER_ASSETS.
//
// # Why a nested module
//
// k8s.io/kubernetes requires its staging modules at v0.0.0, so whoever imports it must replace all of them. A replace
// binds every package of a module: here it stays out of the versions the product is built with.
//
// # Build
//
// Feature gates and metrics are global to a process, hence one control plane per process. build.sh builds the program
// and the links; it sets the version that the server reports, which is v0.0.0-master+$Format:%H$ without it.
package main
