package render

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

func TestALicenceTokenIsAPlaceholder(t *testing.T) {
	const guest = `
apiVersion: ingot.dev/v1alpha1
kind: OSImage
metadata: {name: guest}
spec:
  url: https://images.example.com/guest.raw.zst
  checksum: sha256:9b74c9897bac770ffc029102a200c5de9b74c9897bac770ffc029102a200c5de
  format: raw.zst
  userData: CloudInit
  os: {id: debian, version: "13"}
  kernelArguments: [modprobe.blacklist=nouveau]
  software: {kubelet: 1.37.0, containerd: 2.2.0, containerToolkit: 1.18.0, gpuDriver: {vendor: nvidia, version: 550.163.01, kind: VGPUGuest}}
---
apiVersion: ingot.dev/v1alpha1
kind: NodeType
metadata: {name: guest}
spec:
  providerRef: {name: hall-1}
  hostSelector: {matchLabels: {use: guest}}
  osImageRef: {name: guest}
  gpu: {vendor: nvidia, model: A40-48GB, count: 1, presentation: {mode: VGPU, vgpu: {role: Guest, licence: {tokenSecretRef: {name: licence}}}}}
`
	status, stdout, stderr := render(guest, "-f", "-", "-f", samples+"/nodeprovider.yaml", "--machine", "a", "-o", "user-data")
	encoded := files(t, stdout)["/etc/nvidia/ClientConfigToken/client_configuration_token.tok"]
	text, err := base64.StdEncoding.DecodeString(encoded)
	const what = "client_configuration_token.tok of Secret metal/licence"
	if status != cli.ExitOK || err != nil || string(text) != "PLACEHOLDER: "+what+"\n" || !strings.Contains(stderr, encoded+`" stands for `+what+", which is secret") {
		t.Errorf("status %d, %v: the file holds %q: %s", status, err, text, stderr)
	}
}
