package netboot

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func FuzzATokenThatVerifiesWasSignedByUs(f *testing.F) {
	key := bytes.Repeat([]byte{1}, 32)
	now := time.Unix(1_800_000_000, 0)
	good := signToken(key, claims{hostUID: "host-a", attempt: 3, boot: 1, expires: now.Add(time.Hour)})
	for _, seed := range []string{good, "", ".", "a.b", good[1:], good + "=", good + ".", "AAAA" + good} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		c, err := verifyToken(key, token, now)
		if err == nil && (c.hostUID != "host-a" || signToken(key, c) != token) {
			t.Errorf("%q passed as %+v", token, c)
		}
	})
}

func TestATokenHasAHostUIDOfAtMost256Bytes(t *testing.T) {
	key, now := bytes.Repeat([]byte{1}, 32), time.Unix(1_800_000_000, 0)
	for length, expected := range map[int]bool{0: false, 1: true, 256: true, 257: false} {
		token := signToken(key, claims{hostUID: strings.Repeat("u", length), attempt: 1, boot: 1, expires: now.Add(time.Second)})
		if _, err := verifyToken(key, token, now); (err == nil) != expected {
			t.Errorf("a host UID of %d bytes: %v, expected valid: %t", length, err, expected)
		}
	}
}

func FuzzAMACThatParsesIsCanonicalAndParsesAgain(f *testing.F) {
	for _, seed := range []string{"0c:42:a1:00:00:01", "0C-42-A1-00-00-01", "0c42a1000001", "0c:42-a1:00:00:01", "", "::::::::::::::::::", "0c:42:a1:00:00:0é"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		mac, err := ParseMAC(text)
		if err != nil {
			return
		}
		again, err := ParseMAC(mac)
		if err != nil || again != mac || len(mac) != 17 || mac[2] != ':' {
			t.Errorf("%q became %q, then %q, %v", text, mac, again, err)
		}
	})
}

func TestMACAddressesAreTakenInTheirUsualSpellings(t *testing.T) {
	for _, text := range []string{"0c:42:a1:00:00:0f", "0C-42-A1-00-00-0F", "0c42A100000f"} {
		if mac, err := ParseMAC(text); err != nil || mac != "0c:42:a1:00:00:0f" {
			t.Errorf("%s: %s, %v", text, mac, err)
		}
	}
	for _, text := range []string{"0c:42-a1:00:00:0f", "0c:42:a1:00:00", "0c:42:a1:00:00:0g", "0c42:a1:00:00:0f", "0c:42:a1:00:00:0f:00"} {
		if mac, err := ParseMAC(text); err == nil {
			t.Errorf("%s became %s", text, mac)
		}
	}
}
