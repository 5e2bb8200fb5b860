package operator

import (
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/controllers/admission"
	"github.com/ingot-dev/ingot/controllers/admission/certificate"
)

// addWebhook adds the admission webhook and the keeper of its certificate.
func addWebhook(mgr ctrl.Manager, s settings.Settings, managerLog *slog.Logger) error {
	if s.Webhook.Address == "0" {
		return nil
	}
	secret := client.ObjectKey{Namespace: s.Namespace, Name: s.Webhook.CertificateSecret}
	log := mgr.GetLogger().WithName("webhook")
	source := &certificate.Source{Reader: mgr.GetAPIReader(), Secret: secret, Clock: time.Now, Log: log}
	handler, err := admission.NewHandler(mgr)
	if err != nil {
		return err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: source.GetCertificate, NextProtos: []string{"http/1.1"}}
	if err := addEndpoint(mgr, "webhook.address", s.Webhook.Address, config, handler, managerLog.With("logger", "webhook")); err != nil {
		return err
	}
	keeper := &certificate.Rotator{
		Reader: mgr.GetAPIReader(), Writer: mgr.GetClient(), Secret: secret, Configuration: s.Webhook.Configuration,
		Clock: time.Now, Random: rand.Reader, Times: certificate.DefaultTimes(), Log: log,
	}
	if err := mgr.Add(keeper); err != nil {
		return fmt.Errorf("add the keeper of the webhook's certificate to the manager: %w", err)
	}
	return nil
}
