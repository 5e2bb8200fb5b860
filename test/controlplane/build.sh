#!/bin/sh
# Builds the control plane program to $1 (absolute; default: bin/ingot-controlplane at the repository root), and beside it
# envtest/{etcd,kube-apiserver}, the links that KUBEBUILDER_ASSETS may point to.
#
# CGO_ENABLED=0 and -trimpath, as `ingot image build` builds kubelet: of its 1,799 packages this program has 1,689, which are compiled once.
# `CGO_ENABLED=0 GOFLAGS=-trimpath go test` in this module shares them too.
set -eu
cd "$(dirname "$0")"
out=${1:-../../bin/ingot-controlplane}

# The servers report these; without them, clients see v0.0.0-master+$Format:%H$.
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
major=${version#v} major=${major%%.*}
minor=${version#v*.} minor=${minor%%.*}
flags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	flags="$flags -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor"
done

mkdir -p "$(dirname "$out")/envtest"
# A control plane that runs keeps its file: the new one takes the name only when it is complete.
CGO_ENABLED=0 go build -trimpath -ldflags "$flags" -o "$out.new" .
mv "$out.new" "$out"
for name in etcd kube-apiserver; do
	ln -sfn "../$(basename "$out")" "$(dirname "$out")/envtest/$name"
done
