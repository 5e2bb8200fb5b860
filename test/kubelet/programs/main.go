// Program programs builds what test nodes run, in the versions of an image's recipe: kubelet, containerd with its tools, CNI plugins; and kubectl and
// kubeadm.
//
//	go run ./test/kubelet/programs RECIPE DIR [PROGRAM]
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"

	"github.com/ingot-dev/ingot/imagebuilder/build"
	"github.com/ingot-dev/ingot/imagebuilder/recipe"
)

// paths are those of the programs in the image. kubectl and kubeadm are beside the kubelet in its module.
var paths = []string{
	kubelet, "/usr/bin/containerd", "/usr/bin/containerd-shim-runc-v2", "/usr/bin/ctr", "/opt/cni/bin/bridge", "/opt/cni/bin/loopback", "/opt/cni/bin/host-local", kubectl, kubeadm,
}

const kubelet, kubectl, kubeadm = "/usr/bin/kubelet", "/usr/bin/kubectl", "/usr/bin/kubeadm"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) < 2 || len(args) > 3 {
		return errors.New("usage: programs RECIPE DIR [PROGRAM]")
	}
	file, dir, wanted := args[0], args[1], paths
	if len(args) == 3 {
		wanted = slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return filepath.Base(p) != args[2] })
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	r, err := recipe.Parse(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	i := slices.IndexFunc(r.Programs, func(p recipe.Program) bool { return p.Path == kubelet })
	if i < 0 {
		return fmt.Errorf("%s: no program %s", file, kubelet)
	}
	for _, path := range []string{kubectl, kubeadm} {
		beside := r.Programs[i]
		beside.Path, beside.Package = path, beside.Module+"/cmd/"+filepath.Base(path)
		r.Programs = append(r.Programs, beside)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	built, err := build.Programs(ctx, build.Options{Recipe: r, Dir: filepath.Dir(file), Output: dir}, os.Stderr, wanted...)
	if err != nil {
		return err
	}
	for i, f := range built {
		if err := os.Rename(f, filepath.Join(dir, filepath.Base(wanted[i]))); err != nil {
			return err
		}
	}
	return nil
}
