package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// runEtcd is etcd's own main.
func runEtcd() { etcdmain.Main(os.Args) }

// runAPIServer is kube-apiserver's own main.
func runAPIServer() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
