package logbuffer

import (
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

// readAll returns the log as a boot service gets it that asks from the offset on.
func readAll(b *Buffer, offset int64) string {
	var out strings.Builder
	for {
		c := b.Chunk(offset)
		if c.Text == "" {
			return out.String()
		}
		out.WriteString(c.Text)
		offset = c.Offset + int64(len(c.Text))
	}
}

func TestTheLogIsReadFromAnyOffsetWithoutItsSecrets(t *testing.T) {
	b := &Buffer{}
	b.AddSecret("TOKEN-1")
	b.AddSecret("")
	fmt.Fprintln(b, "kernel: Unknown parameters ingot.token=TOKEN-1 are passed on")
	fmt.Fprintln(b, "esc \x1b[2J and \xff and ü")
	want := "kernel: Unknown parameters ingot.token=[secret] are passed on\nesc ?[2J and ? and ??\n"
	if got := readAll(b, 0); got != want {
		t.Errorf("%q", got)
	}
	if got := readAll(b, 8); got != want[8:] {
		t.Errorf("%q", got)
	}
	for _, offset := range []int64{-5, 1 << 60} {
		if c := b.Chunk(offset); c.Offset != min(max(offset, 0), int64(len(want))) {
			t.Errorf("%d: %+v", offset, c)
		}
	}
	if got := b.Tail(1); len(got) != 1 || got[0] != "esc ?[2J and ? and ??" {
		t.Errorf("%q", got)
	}
}

func TestALongLogKeepsItsEndAndSaysWhatIsLost(t *testing.T) {
	b := &Buffer{}
	var all strings.Builder
	for i := range 20000 {
		line := fmt.Sprintf("line %d of a log that nobody has asked for\n", i)
		all.WriteString(line)
		fmt.Fprint(b, line)
	}
	first := b.Chunk(0)
	if first.Oldest != first.Offset || first.Oldest == 0 || len(b.text) > limit || len(first.Text) > protocol.MaxLogChunk || !strings.HasSuffix(first.Text, "\n") {
		t.Errorf("offset %d, oldest %d, %d bytes, of %d", first.Offset, first.Oldest, len(first.Text), len(b.text))
	}
	got := readAll(b, 0)
	if got != all.String()[first.Oldest:] || len(got) < protocol.MaxLog {
		t.Errorf("%d bytes are not the end of the log", len(got))
	}
}

// records is /dev/kmsg: a read returns one record.
type records []string

func (r *records) Read(into []byte) (int, error) {
	if len(*r) == 0 {
		return 0, io.EOF
	}
	record := (*r)[0]
	*r = (*r)[1:]
	if record == "" {
		return 0, syscall.EPIPE
	}
	return copy(into, record), nil
}

func TestWarningsAndErrorsOfTheKernelAreKept(t *testing.T) {
	b := &Buffer{}
	err := b.FollowKernel(&records{
		"6,1,10,-;Linux version 6.1.0", "4,2,1500000,-;ACPI: warning\n SUBSYSTEM=acpi\n", "", "3,3,2000001,-;nvme nvme0: I/O timeout", "12,4,3,-;told by a program", "x,5,6,-;y", "4;z", "",
	})
	want := "kernel [1.500000] ACPI: warning\nkernel [2.000001] nvme nvme0: I/O timeout\nuser space [0.000003] told by a program\n"
	if got := readAll(b, 0); err != nil || got != want {
		t.Errorf("%v %q", err, got)
	}
}

func FuzzKernelLine(f *testing.F) {
	f.Add("4,2,1500000,-;ACPI: warning\n SUBSYSTEM=acpi\n")
	f.Fuzz(func(t *testing.T, record string) {
		if line := kernelLine(record); strings.Contains(line, "\n") {
			t.Errorf("%q", line)
		}
	})
}
