package main

import (
	"context"
	"os"
	"testing"
)

func TestADemoThatNobodyReadsEnds(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	ctx, end := context.WithCancelCause(t.Context())
	out := output{writer, end}
	if _, err := out.Write([]byte("a line")); err != nil || ctx.Err() != nil {
		t.Errorf("while somebody reads: %v, %v", err, ctx.Err())
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Write([]byte("another")); err == nil || context.Cause(ctx) != err {
		t.Errorf("when nobody reads: %v, the cause is %v", err, context.Cause(ctx))
	}
}
