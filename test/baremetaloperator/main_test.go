package baremetaloperator_test

import (
	"os"
	"testing"

	"github.com/ingot-dev/ingot/test/management"
)

// server is the API server of the package's tests.
var server *management.Server

func TestMain(m *testing.M) { os.Exit(management.Main(m, &server)) }
