package operator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/iana"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot/dhcp"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot/routers"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot/strangers"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot/tftp"
	"github.com/ingot-dev/ingot/controllers/host/leasebook"
	"github.com/ingot-dev/ingot/controllers/host/sessions"
)

// programsPath is where the boot service serves iPXE's programs to firmware that boots by HTTP.
const programsPath = "/programs/"

// bootPrograms are the files of distributions' iPXE packages, by the architecture that firmware names (RFC 4578, section 2.1; the IANA's registry of
// processor architecture types). Those that are not in the directory are not offered. snponly.efi uses the firmware's own network driver, which has the
// card already.
var bootPrograms = []struct {
	file   string
	byTFTP []iana.Arch
	byHTTP []iana.Arch
}{
	{"undionly.kpxe", []iana.Arch{iana.INTEL_X86PC}, nil},
	{"snponly.efi", []iana.Arch{iana.EFI_BC, iana.EFI_X86_64}, []iana.Arch{iana.EFI_X86_64_HTTP}},
	{"snponly-arm64.efi", []iana.Arch{iana.EFI_ARM64}, []iana.Arch{iana.EFI_ARM64_HTTP}},
}

// provisioning answers servers on the provisioning network before they speak HTTP. It runs in every replica.
type provisioning struct {
	settings settings.Network
	bootURL  string
	store    *sessions.Store
	// hostSettings finds the boot service's URL of a host.
	hostSettings func(context.Context, netboot.Session) (netboot.HostSettings, error)
	// hasProgramARM64 means that the boot service makes EFI programs of the agent for servers with an arm64 processor.
	hasProgramARM64 bool
	// books are the leased addresses of each subnet.
	books []subnetBook
	// noteStranger is told of requests of servers that are nobody's.
	noteStranger func(strangers.Sighting)
	// problems are why a service cannot answer now, by its name.
	problems sync.Map
	log      *slog.Logger
}

// subnetBook is a subnet and its leased addresses.
type subnetBook struct {
	settings.ParsedSubnet
	book *leasebook.Book
}

func newProvisioning(mgr ctrl.Manager, s settings.Settings, store *sessions.Store, noteStranger func(strangers.Sighting), log *slog.Logger) (*provisioning, error) {
	p := &provisioning{settings: s.Boot.Network, bootURL: s.Boot.URL, store: store, hostSettings: bootSettingsOfHost(mgr.GetCache(), ""), noteStranger: noteStranger, log: log,
		hasProgramARM64: bootFilesARM64(s.Boot).Program != nil}
	for i, subnet := range s.Boot.Network.Subnets {
		parsed, err := subnet.Parse()
		if err != nil {
			return nil, fmt.Errorf("boot.network.subnets[%d]: %w", i, err)
		}
		p.books = append(p.books, subnetBook{parsed, &leasebook.Book{
			APIReader: mgr.GetAPIReader(), Writer: mgr.GetClient(), Namespace: s.Namespace, Range: parsed.Range, Known: store.BootMACs, Clock: time.Now,
		}})
	}
	return p, nil
}

// NeedLeaderElection returns false: every replica answers servers that boot.
func (p *provisioning) NeedLeaderElection() bool { return false }

// bindRetry is the time until a service that cannot listen is tried again.
const bindRetry = 5 * time.Second

// Start answers until the context ends. A service that cannot listen is tried again, and meanwhile the process is not ready and says why. Without it: an
// operator starts the process on a node where another DHCP server runs, it ends and is started again for ever, and servers that have an agent at work lose the
// boot service that the agent reports to.
func (p *provisioning) Start(ctx context.Context) error {
	if p.settings.Interface == "" {
		return nil
	}
	var group sync.WaitGroup
	for _, service := range []struct {
		name      string
		isEnabled bool
		serve     func(context.Context, netip.Addr) error
	}{
		{"DHCP", p.settings.DHCP != settings.DHCPOff, p.serveDHCP},
		{"TFTP", p.settings.TFTP, p.serveTFTP},
		{"router advertisements", p.settings.RouterAdvertisements, func(ctx context.Context, _ netip.Addr) error { return p.answerSolicitations(ctx) }},
	} {
		if service.isEnabled {
			group.Go(func() { p.keepServing(ctx, service.name, service.serve) })
		}
	}
	group.Wait()
	return nil
}

// keepServing serves until the context ends.
func (p *provisioning) keepServing(ctx context.Context, name string, serve func(context.Context, netip.Addr) error) {
	for ctx.Err() == nil {
		address, err := p.ownAddress()
		if err == nil {
			// It serves, until it returns an error.
			p.problems.Delete(name)
			err = serve(ctx, address)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		if before, _ := p.problems.Swap(name, err.Error()); before != err.Error() {
			p.log.Error("a service of the provisioning network does not answer", "service", name, "err", err, "again", bindRetry)
		}
		select {
		case <-ctx.Done():
		case <-time.After(bindRetry):
		}
	}
}

// checkReady is the readiness check of the provisioning network.
func (p *provisioning) checkReady(*http.Request) error {
	var errs []error
	p.problems.Range(func(name, problem any) bool {
		errs = append(errs, fmt.Errorf("boot.network: %s: %s", name, problem))
		return true
	})
	return errors.Join(errs...)
}

// ownAddress returns the address of this machine on the interface.
func (p *provisioning) ownAddress() (netip.Addr, error) {
	if p.settings.Address != "" {
		return netip.ParseAddr(p.settings.Address)
	}
	link, err := net.InterfaceByName(p.settings.Interface)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("interface %s: %w", p.settings.Interface, err)
	}
	addresses, err := link.Addrs()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("interface %s: %w", p.settings.Interface, err)
	}
	shared, err := p.settings.ParseSharedAddress()
	if err != nil {
		return netip.Addr{}, err
	}
	for _, a := range addresses {
		// The shared address may move to another machine, so nothing listens on it alone.
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Is4() && prefix.Addr() != shared.Addr() {
			return prefix.Addr(), nil
		}
	}
	return netip.Addr{}, fmt.Errorf("interface %s has no IPv4 address: give it one, or set boot.network.address", p.settings.Interface)
}

func (p *provisioning) serveDHCP(ctx context.Context, address netip.Addr) error {
	network := dhcp.Network{Server: address, BootURL: p.bootURL, Programs: p.programs()}
	if p.settings.DHCP == settings.DHCPServe {
		network.Lease = &dhcp.LeaseSettings{}
	}
	relays, err := p.settings.ParseRelays()
	if err != nil {
		return err
	}
	return dhcp.Serve(ctx, dhcp.Options{
		Relays:  relays,
		Network: network, Interface: p.settings.Interface, NoteStranger: p.noteStranger, Log: p.log.With("protocol", "DHCP"),
		Count: func(stage dhcp.Stage, answer string) { sessions.CountDHCP(string(stage), answer) },
		Find: func(ctx context.Context, mac string, relay netip.Addr) (dhcp.Host, bool, error) {
			return p.find(ctx, mac, relay, address)
		},
	})
}

// programs are the boot programs that the directory has.
func (p *provisioning) programs() map[iana.Arch]dhcp.Program {
	out := map[iana.Arch]dhcp.Program{}
	for _, program := range bootPrograms {
		if _, err := fs.Stat(os.DirFS(p.settings.Programs), program.file); err != nil {
			p.log.Warn("servers of some kind cannot boot", "missing", program.file, "directory", p.settings.Programs, "next", "install the package ipxe there, or set boot.network.programs")
			continue
		}
		for _, arch := range program.byTFTP {
			if p.settings.TFTP {
				out[arch] = dhcp.Program{File: program.file}
			}
		}
		for _, arch := range program.byHTTP {
			out[arch] = dhcp.Program{Path: programsPath + program.file}
		}
	}
	if p.hasProgramARM64 {
		out[iana.EFI_ARM64_HTTP] = dhcp.Program{OwnFile: netboot.ProgramARM64}
	}
	return out
}

// find returns what a known host is told; found is false for a stranger.
func (p *provisioning) find(ctx context.Context, mac string, relay, own netip.Addr) (host dhcp.Host, found bool, err error) {
	session, found, err := p.store.KnownByMAC(ctx, mac)
	if err != nil || !found {
		return dhcp.Host{}, false, err
	}
	hostSettings, err := p.hostSettings(ctx, session)
	if err != nil {
		return dhcp.Host{}, false, err
	}
	host.BootURL = hostSettings.URL
	if p.settings.DHCP != settings.DHCPServe {
		return host, true, nil
	}
	subnet := own
	if relay.IsValid() {
		subnet = relay
	}
	for _, b := range p.books {
		if !b.Prefix.Contains(subnet) {
			continue
		}
		host.Lease = &dhcp.LeaseSettings{Prefix: b.Prefix, Router: b.Router, DNS: b.DNS, Time: p.settings.LeaseTime.Duration}
		host.Address, err = b.book.AddressOf(ctx, mac)
		return host, true, err
	}
	return dhcp.Host{}, false, fmt.Errorf("none of boot.network.subnets contains %s: add the subnet of %s/%s", subnet, session.Namespace, session.Name)
}

func (p *provisioning) serveTFTP(ctx context.Context, address netip.Addr) error {
	conn, err := (&net.ListenConfig{}).ListenPacket(ctx, "udp4", netip.AddrPortFrom(address, tftpPort).String())
	if err != nil {
		return fmt.Errorf("TFTP: %w: may this program use the port (CAP_NET_BIND_SERVICE)?", err)
	}
	return tftp.Serve(ctx, conn, tftp.Options{
		Files: programFiles{os.DirFS(p.settings.Programs)}, Clock: time.Now, Log: p.log.With("protocol", "TFTP"), Count: sessions.CountTFTP,
	})
}

const (
	tftpPort = 69
	// solicitationsRetry is the time until an interface that is not ready is tried again: its link-local address takes seconds to be confirmed.
	solicitationsRetry = 5 * time.Second
)

// answerSolicitations answers router solicitations. Servers boot without, only later, so a failure ends nothing.
func (p *provisioning) answerSolicitations(ctx context.Context) error {
	isKnown := func(mac string) bool {
		_, found, err := p.store.KnownByMAC(ctx, mac)
		return err == nil && found
	}
	for {
		err := routers.Serve(ctx, p.settings.Interface, isKnown, p.log.With("protocol", "NDP"))
		if ctx.Err() != nil {
			return nil
		}
		p.log.Warn("iPXE waits 16 seconds in each boot, because router solicitations are not answered", "err", err, "again", solicitationsRetry)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(solicitationsRetry):
		}
	}
}

// programFiles are the boot programs and no other file of the directory.
type programFiles struct{ fs.FS }

// Open implements fs.FS.
func (f programFiles) Open(name string) (fs.File, error) {
	for _, program := range bootPrograms {
		if name == program.file {
			return f.FS.Open(name)
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// withPrograms serves the boot programs beside the boot service.
func withPrograms(service http.Handler, directory string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", service)
	mux.Handle("GET "+programsPath+"{name}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		files := programFiles{os.DirFS(directory)}
		if _, err := fs.Stat(files, r.PathValue("name")); errors.Is(err, fs.ErrNotExist) {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/efi") // the UEFI specification's name for a program that firmware loads by HTTP
		http.ServeFileFS(w, r, files, r.PathValue("name"))
	}))
	return mux
}
