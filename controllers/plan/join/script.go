package join

import (
	"fmt"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Script is what was found of the script of a join.
type Script struct {
	// Text of the script; empty: the Secret or its key does not exist, or may not be read. It is secret.
	Text []byte
	// IsDenied is true where the Secret may not be read.
	IsDenied bool
	// Problem says why the text cannot run on a node; empty: nothing is known against it.
	Problem string
}

// ScriptProblem returns why nodes cannot join by the TenantCluster's script; both empty: they can, or it has none. The message quotes nothing of it.
func ScriptProblem(tenant *v1alpha1.TenantCluster, found Script) (reason, message string) {
	script := tenant.Spec.Join.Script
	if script == nil {
		return "", ""
	}
	where := fmt.Sprintf("spec.join.script: the key %s of Secret %s/%s ", v1alpha1.JoinScriptKey, tenant.Namespace, script.SecretRef.Name)
	switch {
	case found.IsDenied:
		return v1alpha1.ReasonJoinScriptMissing, where + "must not be read: bind ClusterRole ingot-manager-tenants to Ingot's service account by a RoleBinding in that namespace"
	case found.Text == nil:
		return v1alpha1.ReasonJoinScriptMissing, where + "is expected and not there: whoever owns the TenantCluster creates it with the script that joins a node"
	case found.Problem != "":
		return v1alpha1.ReasonJoinScriptInvalid, where + "cannot run on a node: " + found.Problem
	}
	return "", ""
}
