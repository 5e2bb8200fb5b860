package component

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

const etcdStartTimeout = 30 * time.Second

// StartEtcd serves the data in dir to clients on a free loopback port, and returns their endpoint.
func StartEtcd(dir string) (*Component, string, error) {
	server, err := embed.StartEtcd(etcdConfig(dir))
	if err != nil {
		return nil, "", fmt.Errorf("start etcd: %w", err)
	}
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		server.Close()
		return nil, "", fmt.Errorf("start etcd: %w", err)
	case <-time.After(etcdStartTimeout):
		server.Close()
		return nil, "", fmt.Errorf("etcd is not ready within %s", etcdStartTimeout)
	}
	component := start("etcd", func(ctx context.Context) error {
		defer server.Close()
		select {
		case <-ctx.Done():
			return nil
		case err := <-server.Err():
			return err
		case <-server.Server.StopNotify():
			return errors.New("the server stopped")
		}
	})
	return component, "http://" + server.Clients[0].Addr().String(), nil
}

func etcdConfig(dir string) *embed.Config {
	config := embed.NewConfig()
	config.Dir = dir
	config.ListenClientUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config.AdvertiseClientUrls = config.ListenClientUrls
	// A single member has no peers to listen to.
	config.ListenPeerUrls = nil
	// The gateway would dial the client URL, whose port is not known yet; kube-apiserver does not need it.
	config.EnableGRPCGateway = false
	// The data lives as long as a test or a demo: a crash of this process loses nothing, a crash of the machine may.
	config.UnsafeNoFsync = true
	config.LogLevel = "error"
	config.LogOutputs = []string{"stderr"}
	return config
}
