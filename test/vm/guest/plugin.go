package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	// bus has a folder for each device on the PCI bus.
	bus = "/sys/bus/pci/devices"
	// devicePath is where a container has its device: the memory of its first region.
	devicePath = "/device"
	// socket is the plugin's, beside kubelet's.
	socket = deviceplugin.DevicePluginPath + "ingot-guest.sock"
	// retry is the pause before the plugin speaks to a kubelet again that did not answer.
	retry = time.Second
)

// plugin is a device plugin.
type plugin struct {
	deviceplugin.UnimplementedDevicePluginServer
	devices []string
}

// advertise serves the devices and registers with kubelet until the context ends.
func advertise(ctx context.Context, resource, id string) error {
	devices, err := findDevices(id)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %q\n", resource, devices)
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	deviceplugin.RegisterDevicePluginServer(server, &plugin{devices: devices})
	context.AfterFunc(ctx, server.Stop)
	go register(ctx, resource)
	return server.Serve(listener)
}

// register registers with kubelet as soon as it answers.
func register(ctx context.Context, resource string) {
	for ctx.Err() == nil {
		err := registerOnce(ctx, resource)
		if err == nil {
			fmt.Println("registered")
			return
		}
		fmt.Println("register:", err)
		time.Sleep(retry)
	}
}

func registerOnce(ctx context.Context, resource string) error {
	connection, err := grpc.NewClient("unix://"+deviceplugin.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	_, err = deviceplugin.NewRegistrationClient(connection).Register(ctx, &deviceplugin.RegisterRequest{
		Version: deviceplugin.Version, Endpoint: filepath.Base(socket), ResourceName: resource,
	})
	return err
}

// findDevices returns the addresses of the devices with the ids, VENDOR:DEVICE in hexadecimal digits, and switches their memory on.
func findDevices(id string) ([]string, error) {
	all, err := os.ReadDir(bus)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, one := range all {
		vendor, err := os.ReadFile(filepath.Join(bus, one.Name(), "vendor"))
		if err != nil {
			return nil, err
		}
		device, err := os.ReadFile(filepath.Join(bus, one.Name(), "device"))
		if err != nil {
			return nil, err
		}
		if digits(vendor)+":"+digits(device) != id {
			continue
		}
		// No driver does it.
		if err := os.WriteFile(filepath.Join(bus, one.Name(), "enable"), []byte("1"), 0); err != nil {
			return nil, err
		}
		out = append(out, one.Name())
	}
	return out, nil
}

// digits returns the digits of a file of the PCI bus, "0x1234\n".
func digits(content []byte) string {
	return strings.TrimPrefix(strings.TrimSpace(string(content)), "0x")
}

// GetDevicePluginOptions implements the protocol.
func (p *plugin) GetDevicePluginOptions(context.Context, *deviceplugin.Empty) (*deviceplugin.DevicePluginOptions, error) {
	return &deviceplugin.DevicePluginOptions{}, nil
}

// ListAndWatch implements the protocol: the devices never change.
func (p *plugin) ListAndWatch(_ *deviceplugin.Empty, stream grpc.ServerStreamingServer[deviceplugin.ListAndWatchResponse]) error {
	out := &deviceplugin.ListAndWatchResponse{}
	for _, d := range p.devices {
		out.Devices = append(out.Devices, &deviceplugin.Device{ID: d, Health: deviceplugin.Healthy})
	}
	if err := stream.Send(out); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

// Allocate implements the protocol: a container gets the memory of its device.
func (p *plugin) Allocate(_ context.Context, in *deviceplugin.AllocateRequest) (*deviceplugin.AllocateResponse, error) {
	out := &deviceplugin.AllocateResponse{}
	for _, c := range in.ContainerRequests {
		one := &deviceplugin.ContainerAllocateResponse{}
		for _, d := range c.DevicesIds {
			one.Mounts = append(one.Mounts, &deviceplugin.Mount{HostPath: filepath.Join(bus, d, "resource0"), ContainerPath: devicePath})
		}
		out.ContainerResponses = append(out.ContainerResponses, one)
	}
	return out, nil
}
