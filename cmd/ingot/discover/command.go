package discover

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/hostimport"
	"github.com/ingot-dev/ingot/controllers/hardware/redfish/serviceroot"
)

// passwordVariable is the environment variable that may hold the password.
const passwordVariable = "INGOT_BMC_PASSWORD"

// maxParallel bounds how many addresses are asked at once, below the usual limit of open files.
const maxParallel = 512

// options are the flags.
type options struct {
	ranges, ports          []string
	parallel, maxRefusals  int
	timeout                time.Duration
	username, passwordFile string
	caFile, bootNIC        string
	isInsecure             bool
}

// Command is `ingot host discover`.
func Command() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "discover --address RANGE",
		Short: "Find BMCs in a range of addresses, and print the table for ingot host import",
		Long: `Asks every address of the ranges that you name, and no other, whether a Redfish
service is there, and prints a table of what was found: a line for each BMC, below
comments that say what it is and what is missing.

Without --username nothing secret is sent, and certificates are not verified. With
it, the command logs in once at each BMC and reads model, serial number, NICs and
GPUs. Then the certificates are verified, by the CAs of this system or --ca-file.
It stops to log in after --max-refusals BMCs have refused the account.

Redfish services that cannot be read, and what accepts connections and gives no
answer, are listed on standard error; everything else that answers is left out.
Ctrl-C prints what was found so far.`,
		Example: `  ingot host discover --address 10.0.0.0/24 > hosts.csv
  ingot host discover --address 10.0.0.11-10.0.0.42 --username root --password-file bmc-password --ca-file bmc-ca.crt --boot-nic NIC.Slot.3-1 |
    ingot host import - -n metal | kubectl apply -f -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd, o) },
	}
	f := c.Flags()
	f.StringSliceVar(&o.ranges, "address", nil, "addresses to ask: 10.0.0.7, 10.0.0.0/24, 10.0.0.7-10.0.0.40, or several with commas")
	f.StringSliceVar(&o.ports, "port", []string{"443"}, "ports to ask at each address")
	f.IntVar(&o.parallel, "parallel", 128, "how many addresses are asked at once")
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long an address may take to answer")
	f.StringVar(&o.username, "username", "", "log in as this user of the BMCs")
	f.StringVar(&o.passwordFile, "password-file", "", "file with the password, - for standard input (default: the environment variable "+passwordVariable+")")
	f.StringVar(&o.caFile, "ca-file", "", "PEM file with the CAs of the BMCs' certificates (default: those of this system)")
	f.BoolVar(&o.isInsecure, "insecure", false, "log in without verifying certificates: whoever is in between learns the password")
	f.IntVar(&o.maxRefusals, "max-refusals", 3, "after so many BMCs that refuse the account, log in at no other; 0: go on")
	f.StringVar(&o.bootNIC, "boot-nic", "", "name of the NIC that the servers boot from, as the BMC names it; * fits anything")
	return c
}

func run(cmd *cobra.Command, o options) error {
	if len(o.ranges) == 0 {
		return cli.Usagef(cmd, "--address: expected the range to ask, such as 10.0.0.0/24")
	}
	addresses, err := parseAddresses(o.ranges)
	if err != nil {
		return cli.Usagef(cmd, "%v", err)
	}
	ports, err := parsePorts(o.ports)
	if err != nil {
		return cli.Usagef(cmd, "%v", err)
	}
	if err := checkFlags(cmd, o); err != nil {
		return err
	}
	account, err := readCredentials(cmd, o)
	if err != nil {
		return err
	}
	ctx, errOut := cmd.Context(), cmd.ErrOrStderr()
	all := endpoints(addresses, ports)
	p := newProgress(errOut, "addresses asked", "Redfish services", len(all))
	answers, looked := scanner{parallel: o.parallel, timeout: o.timeout, progress: p}.scan(ctx, all)
	p.end()
	found := bmcs(answers)
	if o.username != "" {
		p = newProgress(errOut, "BMCs read", "logins worked", len(found))
		err = readAll(ctx, found, account, o.parallel, p)
		p.end()
		if err != nil {
			fmt.Fprintln(errOut, "warning:", clean(err.Error()))
		}
	}
	if err := (table{username: o.username, passwordFile: absolute(o.passwordFile), bootNIC: o.bootNIC}).write(cmd.OutOrStdout(), found); err != nil {
		return err
	}
	report(errOut, answers, found)
	return conclude(ctx, errOut, len(all), looked, found, answers)
}

func checkFlags(cmd *cobra.Command, o options) error {
	switch {
	case o.parallel < 1 || o.parallel > maxParallel:
		return cli.Usagef(cmd, "--parallel %d: expected a number from 1 to %d", o.parallel, maxParallel)
	case o.timeout <= 0:
		return cli.Usagef(cmd, "--timeout %s: expected a time such as 10s", o.timeout)
	case o.maxRefusals < 0:
		return cli.Usagef(cmd, "--max-refusals %d: expected 0 or more", o.maxRefusals)
	case o.username == "" && (o.passwordFile != "" || o.caFile != "" || o.bootNIC != "" || o.isInsecure):
		return cli.Usagef(cmd, "--password-file, --ca-file, --boot-nic and --insecure are for a login: give --username too")
	}
	if _, err := path.Match(o.bootNIC, ""); err != nil {
		return cli.Usagef(cmd, "--boot-nic %s: expected a name such as NIC.Slot.3-1, or one with *", o.bootNIC)
	}
	return nil
}

// readCredentials reads the password and the CAs. Without a user there is nothing to read.
func readCredentials(cmd *cobra.Command, o options) (credentials, error) {
	c := credentials{username: o.username, isInsecure: o.isInsecure, maxRefusals: o.maxRefusals}
	if o.username == "" {
		return c, nil
	}
	if o.caFile != "" {
		text, err := os.ReadFile(o.caFile)
		if err != nil {
			return c, fmt.Errorf("--ca-file: %w", err)
		}
		if !x509.NewCertPool().AppendCertsFromPEM(text) {
			return c, fmt.Errorf("--ca-file %s: expected certificates in PEM, found none", o.caFile)
		}
		c.caBundle = text
	}
	var problem string
	switch o.passwordFile {
	case "":
		if c.password = os.Getenv(passwordVariable); c.password == "" {
			return c, cli.Usagef(cmd, "--username needs --password-file, or the password in the environment variable %s", passwordVariable)
		}
	case "-":
		c.password, problem = hostimport.ReadPassword(cmd.InOrStdin())
	default:
		file, err := os.Open(o.passwordFile)
		if err != nil {
			return c, fmt.Errorf("--password-file: %w", err)
		}
		defer file.Close()
		c.password, problem = hostimport.ReadPassword(file)
	}
	if problem != "" {
		return c, fmt.Errorf("--password-file %s: %s", o.passwordFile, problem)
	}
	return c, nil
}

// absolute returns the path of the password file from the root, because a table may be kept elsewhere; empty where the password was in no file.
func absolute(passwordFile string) string {
	if passwordFile == "" || passwordFile == "-" {
		return ""
	}
	if full, err := filepath.Abs(passwordFile); err == nil {
		return full
	}
	return passwordFile
}

// report lists what cannot be read and why, and which addresses lead to one BMC.
func report(out io.Writer, answers, found []service) {
	for _, s := range answers {
		if s.answer.Kind == serviceroot.Unreadable || s.answer.Kind == serviceroot.Unclear {
			fmt.Fprintf(out, "%s: %s\n", s.at, clean(s.answer.Problem))
		}
	}
	for _, s := range found {
		if s.problem != "" {
			fmt.Fprintf(out, "%s: %s\n", s.at, clean(s.problem))
		}
		if len(s.also) > 0 {
			fmt.Fprintf(out, "%s: the same BMC, by its UUID, is at %s: one line of the table\n", s.at, addressList(s.also))
		}
	}
}

func addressList(all []netip.AddrPort) string {
	text := ""
	for i, at := range all {
		if i > 0 {
			text += ", "
		}
		text += at.String()
	}
	return text
}

// conclude prints the totals, and returns an error where the look was interrupted.
func conclude(ctx context.Context, out io.Writer, total, looked int, found, answers []service) error {
	kinds := map[serviceroot.Kind]int{}
	for _, s := range answers {
		kinds[s.answer.Kind]++
	}
	fmt.Fprintf(out, "%d of %d addresses asked: %d BMCs, %d Redfish services that cannot be read, %d without an answer to a connection, %d others\n",
		looked, total, len(found), kinds[serviceroot.Unreadable], kinds[serviceroot.Unclear], kinds[serviceroot.Other])
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: the table has what was found at %d of %d addresses", looked, total)
	}
	return nil
}
