package cloudinit

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// licence is a token as bytes that no text could hold.
const (
	licence     = "licence\x00\xff token\r\n: {{ }}\n"
	licencePath = "/etc/nvidia/ClientConfigToken/client_configuration_token.tok"
)

// guest is a joining node whose GPU is virtual, with the licence token that its presentation asks for.
func guest(t testing.TB, kind v1alpha1.UserDataKind, system string) Input {
	t.Helper()
	baked := []string{"modprobe.blacklist=nouveau"}
	plan, err := presentation.Resolve(spec.Request{
		GPU: &v1alpha1.GPUSpec{Vendor: v1alpha1.VendorNVIDIA, Model: "A40-48GB", Count: 1, Presentation: v1alpha1.Presentation{
			Mode: v1alpha1.ModeVGPU, VGPU: &v1alpha1.VGPUSpec{Role: "Guest", Licence: &v1alpha1.VGPULicence{TokenSecretRef: v1alpha1.LocalReference{Name: "licence"}, FeatureType: 4}}}},
		Image: v1alpha1.OSImageSpec{KernelArguments: baked, Software: v1alpha1.OSImageSoftware{
			Kubelet: "1.37.0", Containerd: "2.2.0", ContainerToolkit: "1.18.0",
			GPUDriver: &v1alpha1.GPUDriverSoftware{Vendor: v1alpha1.VendorNVIDIA, Version: "550.163.01", Kind: "VGPUGuest"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	in := plain()
	in.Plan, in.Kind, in.OS, in.KernelArguments = plan, kind, system, baked
	in.Secrets = Secrets{Namespace: "metal", Contents: map[SecretKey][]byte{{Secret: "licence", Key: "client_configuration_token.tok"}: []byte(licence)}}
	return in
}

func guests(t testing.TB) map[string]Input {
	scripted := guest(t, v1alpha1.UserDataCloudInit, "debian")
	scripted.Layers = []Layer{{Name: "NodeType a40", Text: "#!/bin/sh\necho hello\n"}}
	return map[string]Input{
		"cloud-config": guest(t, "", ""), "mime": scripted, "fcos": guest(t, v1alpha1.UserDataIgnition, "fedora"),
		"flatcar": guest(t, v1alpha1.UserDataIgnition, "flatcar"), "openshift": guest(t, v1alpha1.UserDataIgnition, "rhcos"),
	}
}

// onNode is a file as the node gets it; ok is false where the user data has none of the path.
func onNode(t *testing.T, userData []byte, path string) (content, mode string, ok bool) {
	t.Helper()
	if bytes.HasPrefix(userData, []byte("{")) {
		return ignitionWrites(t, userData, path)
	}
	var doc struct {
		Files []struct{ Path, Permissions, Encoding, Content string } `yaml:"write_files"`
	}
	if err := yaml.Unmarshal(cloudConfig(t, userData), &doc); err != nil {
		t.Fatal(err)
	}
	for _, f := range doc.Files {
		if f.Path != path {
			continue
		}
		if f.Encoding != "b64" {
			t.Fatalf("%s has encoding %q", path, f.Encoding)
		}
		return decoded(t, f.Content), f.Permissions, true
	}
	return "", "", false
}

func ignitionWrites(t *testing.T, userData []byte, path string) (content, mode string, ok bool) {
	t.Helper()
	var doc struct {
		Storage struct {
			Files []struct {
				Path     string
				Mode     int
				Contents struct{ Source, Compression string }
			}
		}
	}
	if err := json.Unmarshal(userData, &doc); err != nil {
		t.Fatal(err)
	}
	for _, f := range doc.Storage.Files {
		if f.Path == path {
			text, is := strings.CutPrefix(f.Contents.Source, "data:;base64,")
			if !is || f.Contents.Compression != "" {
				t.Fatalf("%s is %+v", path, f.Contents)
			}
			return decoded(t, text), fmt.Sprintf("%04o", f.Mode), true
		}
	}
	return "", "", false
}

// cloudConfig of user data, alone or as the first part of a MIME message.
func cloudConfig(t testing.TB, userData []byte) []byte {
	t.Helper()
	if bytes.HasPrefix(userData, []byte(header)) {
		return userData
	}
	message, err := mail.ReadMessage(bytes.NewReader(userData))
	if err != nil {
		t.Fatal(err)
	}
	_, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	part, err := multipart.NewReader(message.Body, parameters["boundary"]).NextRawPart()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(base64.NewDecoder(base64.StdEncoding, part))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func decoded(t *testing.T, text string) string {
	t.Helper()
	out, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestALicenceTokenIsOnTheNodeByteForByteBeforeTheJoinAlone(t *testing.T) {
	for name, in := range guests(t) {
		t.Run(name, func(t *testing.T) {
			with, err := Render(in)
			if err != nil {
				t.Fatal(err)
			}
			if content, mode, _ := onNode(t, with.UserData, licencePath); content != licence || mode != "0600" {
				t.Errorf("the node gets %q with mode %s", content, mode)
			}
			in.Join = nil
			without, err := Render(in)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, ok := onNode(t, without.UserData, licencePath); ok {
				t.Error("after the join the user data still has the token")
			}
			in.Secrets = Secrets{}
			if again, err := Render(in); err != nil || !bytes.Equal(again.UserData, without.UserData) {
				t.Errorf("after the join the document depends on the Secret: %v", err)
			}
			if !bytes.Equal(with.MetaData, without.MetaData) {
				t.Error("cloud-init would take the node for another instance")
			}
		})
	}
}

func TestALicenceTokenThatIsMissingIsNamed(t *testing.T) {
	for name, in := range guests(t) {
		for what, contents := range map[string]map[SecretKey][]byte{
			"nothing": nil, "another key": {{Secret: "licence", Key: "token"}: []byte(licence)}, "nothing in it": {{Secret: "licence", Key: "client_configuration_token.tok"}: {}},
		} {
			in.Secrets.Contents = contents
			_, err := Render(in)
			var missing *SecretMissing
			want := SecretMissing{Namespace: "metal", Secret: "licence", Key: "client_configuration_token.tok", Path: licencePath}
			if !errors.As(err, &missing) || *missing != want || !strings.Contains(err.Error(), "client_configuration_token.tok of Secret metal/licence") {
				t.Errorf("%s, %s: error %v, want one that names Secret, key and namespace", name, what, err)
			}
		}
		in.Machine, in.Host, in.Join = MachineInput{}, HostInput{}, nil
		if err := Check(in); err != nil {
			t.Errorf("%s: what is right whatever the Secret holds is refused: %v", name, err)
		}
	}
}

func TestPeopleDoNotWriteTheLicenceToken(t *testing.T) {
	for _, in := range []Input{guest(t, "", ""), guest(t, v1alpha1.UserDataIgnition, "flatcar")} {
		in.Layers = []Layer{{Name: "NodeType a40", Text: "#cloud-config\nwrite_files:\n- path: " + licencePath + "\n  content: mine\n"}}
		if in.Kind == v1alpha1.UserDataIgnition {
			in.Layers[0].Text = teams["flatcar"] + "storage:\n  files:\n  - path: " + licencePath + "\n"
		}
		var conflict *Conflict
		if _, err := Render(in); !errors.As(err, &conflict) || strings.Contains(err.Error(), "licence\x00") {
			t.Errorf("error %v, want *Conflict", err)
		}
	}
}

func TestAnInputThatIsPrintedShowsNoSecretFile(t *testing.T) {
	in := guest(t, "", "")
	in.Secrets.Contents[SecretKey{Secret: "licence", Key: "client_configuration_token.tok"}] = []byte("LICENCE")
	bytesOf := strings.Trim(fmt.Sprint([]byte("LICENCE")), "[]")
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, in); strings.Contains(text, "LICENCE") || strings.Contains(text, bytesOf) || strings.Contains(text, "0x4c, 0x49") {
			t.Errorf("%s prints %s", format, text)
		}
	}
}
