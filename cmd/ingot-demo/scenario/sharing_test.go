package scenario

import (
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestATableIsShownWithTheColumnsThatFit(t *testing.T) {
	table := "note: no Lease\n" +
		"NAMESPACE   TENANT     CLASS    WAITS                PROBLEM\n" +
		"shared      legal-ai   mig-1g   1 Pod NotTried 2s    a problem\n" +
		"shared      x          -        -                    \n"
	want := "note: no Lease\n" +
		"TENANT     WAITS               PROBLEM\n" +
		"legal-ai   1 Pod NotTried 2s   a problem\n" +
		"x          -                   "
	if got := withColumns(table[:len(table)-1], "TENANT", "WAITS", "PROBLEM"); got != want {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	if got := withColumns("CLAIM   NODE\na       b", "CLAIM"); got != "CLAIM\na" {
		t.Errorf("%q", got)
	}
	if got := withColumns("no ResourceClaims in any namespace", "CLAIM"); got != "no ResourceClaims in any namespace" {
		t.Errorf("%q", got)
	}
}

func TestAUserOfTheStoryHasAKubeconfigOfItsOwn(t *testing.T) {
	admin, path := filepath.Join(t.TempDir(), "admin"), filepath.Join(t.TempDir(), "user")
	config := clientcmdapi.NewConfig()
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: "x"}
	if err := clientcmd.WriteToFile(*config, admin); err != nil {
		t.Fatal(err)
	}
	if err := writeUserKubeconfig(admin, path, "legal-ai"); err != nil {
		t.Fatal(err)
	}
	written, err := clientcmd.LoadFromFile(path)
	if err != nil || written.AuthInfos["admin"].Impersonate != "legal-ai" {
		t.Errorf("%v %+v", err, written)
	}
}
