package extent

import (
	"bytes"
	"testing"
	"testing/iotest"
)

func TestAFileOfPartsReadsAsOneFile(t *testing.T) {
	var inner, c Content
	inner.AppendBytes([]byte("inner"))
	inner.PadTo(8)
	c.AppendBytes([]byte("begin-"))
	c.AppendBytes(nil)
	c.Append(&inner, inner.Size())
	c.PadTo(20)
	c.AppendBytes([]byte("end"))
	if err := iotest.TestReader(c.Reader(), []byte("begin-inner\x00\x00\x00\x00\x00\x00\x00\x00\x00end")); err != nil {
		t.Error(err)
	}
}

// A kernel that is replaced by a shorter one while a server reads it must fail the read: zeros in its place would be another kernel.
func TestASourceThatHasBecomeShorterFailsTheRead(t *testing.T) {
	var c Content
	c.Append(bytes.NewReader([]byte("short")), 10)
	c.AppendBytes([]byte("end"))
	if n, err := c.ReadAt(make([]byte, 13), 0); n != 5 || err == nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}
