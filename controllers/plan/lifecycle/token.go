package lifecycle

import "github.com/ingot-dev/ingot/api/v1alpha1"

// keepToken makes, renews or deletes the bootstrap token, so that it is as it must be now. The notice is told with the action.
func (s situation) keepToken(n notice) result {
	token := s.Token
	switch {
	case !s.Tenant.Reachable:
		return next
	case !s.guards.needsToken(s.Facts) && token == nil:
		return next
	case !s.guards.needsToken(s.Facts):
		return act(Action{Kind: DeleteToken, TokenID: token.ID}, n)
	case token == nil:
		return s.createToken(n)
	}
	left, expires := token.Expires.Sub(s.Now), s.Now.Add(s.Timeouts.Token)
	if left <= s.Timeouts.TokenRenew {
		return act(Action{Kind: RenewToken, TokenID: token.ID, Expires: expires}, n).planAgain()
	}
	return next.lookAgain(left - s.Timeouts.TokenRenew)
}

func (s situation) createToken(n notice) result {
	create := Action{Kind: CreateToken, Expires: s.Now.Add(s.Timeouts.Token)}
	switch {
	case s.hasClaimSecret() && s.Secret.TokenID == "":
		return next // scrubbed: the node has joined, and the Machine was read from an older state
	case s.hasClaimSecret():
		// What the disk holds must work again: another token would not help.
		create.TokenID = s.Secret.TokenID
	case s.Machine.Status.Phase == v1alpha1.MachineJoining:
		return next
	}
	return act(create, n).planAgain()
}

// hasClaimSecret: the claim Secret is of this attempt.
func (s situation) hasClaimSecret() bool {
	return s.Secret.Found && s.Secret.Attempt == s.Machine.Status.Attempt
}

func (s situation) keepInstallToken() result { return s.keepToken(s.installerNotice(nil)) }

// keepJoinToken leaves it to the steps after it to say what the Machine waits for.
func (s situation) keepJoinToken() result { return s.keepToken(notice{}) }

// deleteToken is before everything else in a way out: from then on nothing of this Machine joins.
func (s situation) deleteToken() result {
	return s.dropToken(notice{reason: v1alpha1.ReasonEvicting, message: "the bootstrap token is being deleted"})
}

// deleteUsedToken deletes the token of a node that has joined.
func (s situation) deleteUsedToken() result { return s.dropToken(notice{}) }

func (s situation) dropToken(n notice) result {
	if s.Token == nil || !s.Tenant.Reachable {
		return next
	}
	return act(Action{Kind: DeleteToken, TokenID: s.Token.ID}, n).planAgain()
}
