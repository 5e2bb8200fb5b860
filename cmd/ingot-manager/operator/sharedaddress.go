package operator

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	utilrand "k8s.io/apimachinery/pkg/util/rand"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot/sharedaddress"
	"github.com/ingot-dev/ingot/controllers/host/addresslease"
)

// addressLeaseName is the Lease of the replica that has the boot service's address. config/rbac grants it by this name.
const addressLeaseName = "ingot-boot-address"

// addSharedAddress adds what keeps the boot service's address on one replica, where the settings name one.
func addSharedAddress(mgr ctrl.Manager, s settings.Settings, boot *bootServer, log *slog.Logger) error {
	prefix, err := s.Boot.Network.ParseSharedAddress()
	if err != nil || !prefix.IsValid() {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("the name of this replica: %w", err)
	}
	holder := addresslease.New(addresslease.Options{
		Cluster: mgr.GetConfig(), Namespace: s.Namespace, Name: addressLeaseName, Identity: host + "_" + utilrand.String(8), Durations: addresslease.Usual,
		Address: &sharedaddress.Address{Interface: s.Boot.Network.Interface, Prefix: prefix, Clock: time.Now},
		IsReady: func() bool { return boot.checkReady(nil) == nil }, Clock: time.Now, Log: log.With("logger", "address"),
	})
	if err := mgr.Add(holder); err != nil {
		return fmt.Errorf("add the boot service's address to the manager: %w", err)
	}
	return nil
}
