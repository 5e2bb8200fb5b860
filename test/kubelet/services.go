package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Services forwards connections to the addresses of Services, in place of kube-proxy: the addresses are this machine's, so it must be the nodes'
// gateway.
type Services struct {
	client client.Client
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu    sync.Mutex
	ports map[string]net.Listener
}

// ForwardServices forwards until Stop. The API server's own Service leads to its address, HOST:PORT.
func ForwardServices(ctx context.Context, c client.Client, apiServer string) *Services {
	ctx, cancel := context.WithCancel(ctx)
	s := &Services{client: c, cancel: cancel, ports: map[string]net.Listener{}}
	s.group.Go(func() {
		for ctx.Err() == nil {
			s.listenToAll(ctx, apiServer)
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
		}
	})
	return s
}

// Stop ends all connections.
func (s *Services) Stop() error {
	s.cancel()
	s.mu.Lock()
	var err error
	for _, l := range s.ports {
		err = errors.Join(err, l.Close())
	}
	s.mu.Unlock()
	s.group.Wait()
	return err
}

// listenToAll takes the addresses of Services that are new. What fails is tried again.
func (s *Services) listenToAll(ctx context.Context, apiServer string) {
	var list corev1.ServiceList
	if err := s.client.List(ctx, &list); err != nil {
		return
	}
	for i := range list.Items {
		service := &list.Items[i]
		for _, port := range service.Spec.Ports {
			if port.Protocol != corev1.ProtocolTCP || net.ParseIP(service.Spec.ClusterIP) == nil {
				continue
			}
			find := func(ctx context.Context) (string, error) { return s.endpoint(ctx, service, port) }
			if service.Namespace == metav1.NamespaceDefault && service.Name == "kubernetes" {
				find = func(context.Context) (string, error) { return apiServer, nil }
			}
			s.listen(ctx, net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(int(port.Port))), find)
		}
	}
}

// endpoint returns the address of a ready pod of the Service.
func (s *Services) endpoint(ctx context.Context, service *corev1.Service, port corev1.ServicePort) (string, error) {
	var slices discoveryv1.EndpointSliceList
	err := s.client.List(ctx, &slices, client.InNamespace(service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name})
	if err != nil {
		return "", err
	}
	for _, slice := range slices.Items {
		for _, p := range slice.Ports {
			if p.Port == nil || p.Name == nil || *p.Name != port.Name {
				continue
			}
			for _, e := range slice.Endpoints {
				if e.Conditions.Ready != nil && *e.Conditions.Ready {
					return net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*p.Port))), nil
				}
			}
		}
	}
	return "", fmt.Errorf("the Service %s/%s has no pod that is ready", service.Namespace, service.Name)
}

// listen takes the address and forwards its connections to what find returns.
func (s *Services) listen(ctx context.Context, address string, find func(context.Context) (string, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ports[address] != nil || ctx.Err() != nil {
		return
	}
	host, _, _ := net.SplitHostPort(address)
	if err := addLoopbackAddress(host); err != nil {
		return
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return
	}
	s.ports[address] = l
	s.group.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			s.group.Go(func() { forward(ctx, in, find) })
		}
	})
}

func addLoopbackAddress(host string) error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	address, err := netlink.ParseAddr(host + "/32")
	if err != nil {
		return err
	}
	return netlink.AddrReplace(loopback, address)
}

// forward copies both ways until one side ends.
func forward(ctx context.Context, in net.Conn, find func(context.Context) (string, error)) {
	defer in.Close()
	to, err := find(ctx)
	if err != nil {
		return
	}
	out, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", to)
	if err != nil {
		return
	}
	defer out.Close()
	stop := context.AfterFunc(ctx, func() { _ = errors.Join(in.Close(), out.Close()) })
	defer stop()
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			if tcp, ok := pair[0].(*net.TCPConn); ok {
				_ = tcp.CloseWrite()
			}
			done <- struct{}{}
		}()
	}
	<-done
	<-done
}
