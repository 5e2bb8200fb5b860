package join

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/ingot-dev/ingot/test/management"
)

// kubeletScript starts the image's own kubelet by the variables of its environment alone.
const kubeletScript = `#!/bin/sh
set -eu
dir=/var/lib/kubelet
cat > $dir/bootstrap <<EOF
{"apiVersion": "v1", "kind": "Config", "current-context": "tenant", "contexts": [{"name": "tenant", "context": {"cluster": "tenant", "user": "node"}}],
"clusters": [{"name": "tenant", "cluster": {"server": "$INGOT_API_ENDPOINT", "certificate-authority": "$INGOT_CA_FILE"}}],
"users": [{"name": "node", "user": {"token": "$INGOT_TOKEN"}}]}
EOF
cat > $dir/config.yaml <<EOF
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
rotateCertificates: true
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: "$INGOT_CA_FILE"}}
EOF
mkdir -p /etc/systemd/system/kubelet.service.d
cat > /etc/systemd/system/kubelet.service.d/10-script.conf <<EOF
[Service]
ExecStart=/usr/bin/kubelet --config=$dir/config.yaml --bootstrap-kubeconfig=$dir/bootstrap --kubeconfig=$dir/kubeconfig $INGOT_KUBELET_ARGS
EOF
systemctl start kubelet
`

// checkRemoved waits until the node, whose first process is pid, has neither the script nor its environment.
func checkRemoved(t *testing.T, pid int) {
	t.Helper()
	management.Eventually(t, "the script and its environment are removed", func() bool {
		left, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "root/etc/kubernetes/ingot-join"))
		return err == nil && len(left) == 1 && left[0].Name() == "ca.crt"
	})
}
